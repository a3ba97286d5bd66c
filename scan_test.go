package eigenhead_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead"
	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/testshared"
	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/measure"
	"github.com/eigenhead/eigenhead/report"
)

func scan(t *testing.T, source string, opts *eigenhead.Options) *report.Report {
	t.Helper()
	if opts == nil {
		opts = &eigenhead.Options{}
	}
	if opts.CacheDir == "" {
		opts.CacheDir = t.TempDir()
	}
	r, err := eigenhead.Scan(context.Background(), source, opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSmolLM2IsTheHealthyModelThatOthersMeasured(t *testing.T) {
	if testing.Short() {
		t.Skip("short: SmolLM2 takes ten seconds")
	}
	r := scan(t, testshared.SmolLM2(t), &eigenhead.Options{Text: testshared.Dir(t, "texts", "wikitext2-test.txt"), Context: 512})
	if r.Input.Available != 312144 {
		t.Errorf("the text has %d tokens, want 312144", r.Input.Available)
	}
	if math.Abs(*r.Input.NLL-2.8320) > 0.0010 {
		t.Errorf("nll %.5f, want 2.8320 ± 0.0010", *r.Input.NLL)
	}
	if len(r.Heads) != 270 || len(r.KVHeads) != 90 || len(r.Layers) != 30 {
		t.Fatalf("%d heads, %d KV heads, %d layers", len(r.Heads), len(r.KVHeads), len(r.Layers))
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, h := range r.Heads {
		if v := h.Measures["energy.rank"].Value; v != 64 {
			t.Errorf("%v: rank %g, want 64", h.ID, v)
		}
		low, high = math.Min(low, h.Measures["energy.k90"].Value), math.Max(high, h.Measures["energy.k90"].Value)
	}
	if low != 3 || high != 22 {
		t.Errorf("k90 from %g to %g, want 3 to 22", low, high)
	}
	sum := 0.0
	for _, h := range r.KVHeads {
		sum += h.Measures["key.incoherence"].Value
	}
	if mean := sum / 90; math.Abs(mean-1.639) > 0.002 {
		t.Errorf("mean key incoherence %.4f, want 1.639 ± 0.002", mean)
	}
	for _, f := range r.Findings {
		if f.Severity != finding.Info {
			t.Errorf("a healthy model gets %s %s at %s: %s", f.Severity, f.Code, f.Where, f.Text)
		}
	}
}

// The two files hold the same weights: the GGUF's q and k rows are permuted.
func TestSafetensorsAndGGUFGiveTheSameMeasures(t *testing.T) {
	dir := testshared.Dir(t, "models", "stories260K")
	ids := writeIDs(t, "[1, 403, 407, 261, 378, 9, 10, 11, 12, 403, 407, 261, 20, 21, 22, 23, 24, 25, 403, 407, 261, 30, 31, 32]")
	a := scan(t, filepath.Join(dir, "model.safetensors"), &eigenhead.Options{Tokens: ids})
	b := scan(t, filepath.Join(dir, "stories260K.gguf"), &eigenhead.Options{Tokens: ids})
	if len(a.Heads) != 40 || len(b.Heads) != 40 {
		t.Fatalf("%d and %d heads, want 40", len(a.Heads), len(b.Heads))
	}
	for i := range a.Heads {
		sameValues(t, a.Heads[i].String(), a.Heads[i].Measures, b.Heads[i].Measures)
	}
	for i := range a.KVHeads {
		sameValues(t, "KV head", a.KVHeads[i].Measures, b.KVHeads[i].Measures)
	}
}

func sameValues(t *testing.T, where string, a, b map[string]measure.Value) {
	t.Helper()
	if len(a) != len(b) || len(a) == 0 {
		t.Errorf("%s: %d and %d measures", where, len(a), len(b))
	}
	for name, x := range a {
		y := b[name].Value
		if !(math.Abs(x.Value-y) <= 1e-6*math.Max(1, math.Abs(y))) {
			t.Errorf("%s: %s is %.12g and %.12g", where, name, x.Value, y)
		}
	}
}

func writeIDs(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ids.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestSameInputGivesTheSameBytesOnAnyNumberOfCores(t *testing.T) {
	var first []byte
	for _, cores := range []int{1, 2, 3} {
		old := runtime.GOMAXPROCS(cores)
		r := scan(t, eigenhead.Demo, &eigenhead.Options{Context: 160})
		runtime.GOMAXPROCS(old)
		var b bytes.Buffer
		if err := report.WriteJSON(&b, r); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = b.Bytes()
		} else if !bytes.Equal(first, b.Bytes()) {
			t.Fatalf("GOMAXPROCS=%d gives other bytes than 1", cores)
		}
	}
}

func TestCaptureOfAModelMeasuresAsTheModelDoes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "demo.safetensors")
	model := scan(t, eigenhead.Demo, &eigenhead.Options{Context: 96, Layers: "1-2", Capture: file})
	captured := scan(t, file, nil)
	if len(captured.Heads) != len(model.Heads) {
		t.Fatalf("%d heads from the capture, %d from the model", len(captured.Heads), len(model.Heads))
	}
	for i, h := range captured.Heads {
		for name, v := range h.Measures {
			if w := model.Heads[i].Measures[name]; v.Value != w.Value { // q, k are float32 in both
				t.Errorf("%v: %s is %g from the capture, %g from the model", h.ID, name, v.Value, w.Value)
			}
		}
	}
	differences, err := eigenhead.Verify(context.Background(), eigenhead.Demo, file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(differences) != 2*4 { // q, k, v, x of two layers
		t.Errorf("%d differences, want 8", len(differences))
	}
	for _, d := range differences {
		if d.Max != 0 || d.Scale == 0 {
			t.Errorf("layer %d %s differs by %g (largest %g)", d.Layer, d.Tensor, d.Max, d.Scale)
		}
	}
}

func TestWindowsAreAveraged(t *testing.T) {
	opts := func(windows int) *eigenhead.Options {
		return &eigenhead.Options{Context: 64, Windows: windows, Layers: "3", Measures: []string{"attention.entropy", "residual.cosine"}}
	}
	one, three := scan(t, eigenhead.Demo, opts(1)), scan(t, eigenhead.Demo, opts(3))
	a, b := one.Heads[0].Measures["attention.entropy"], three.Heads[0].Measures["attention.entropy"]
	if a.Windows != nil || b.Windows == nil || b.Windows.Count != 3 || !(b.Windows.SD > 0) || a.Value == b.Value {
		t.Errorf("one window gives %+v, three give %+v", a, b)
	}
	if three.Input.Windows != 3 || *one.Input.NLL == *three.Input.NLL || !strings.Contains(three.Input.Protocol, "3 consecutive windows") {
		t.Errorf("input %+v", three.Input)
	}
}

// A damaged weight beyond the layers asked for is never read.
func TestFirstLayersReadNothingBeyond(t *testing.T) {
	dir := testshared.Dir(t, "models", "stories260K")
	copied := t.TempDir()
	for _, name := range []string{"config.json", "model.safetensors"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "model.safetensors" {
			damage(t, data, "model.layers.4.mlp.up_proj.weight")
		}
		if err := os.WriteFile(filepath.Join(copied, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ids := writeIDs(t, "[1, 403, 407, 261, 378]")
	r := scan(t, copied, &eigenhead.Options{Tokens: ids, Layers: "0-1"})
	if len(r.Heads) != 16 || r.Input.NLL != nil || !strings.Contains(r.Input.Protocol, "stops after layer 1") {
		t.Errorf("%d heads, nll %v, protocol %q", len(r.Heads), r.Input.NLL, r.Input.Protocol)
	}
	_, err := eigenhead.Scan(context.Background(), copied, &eigenhead.Options{Tokens: ids})
	if err == nil || !strings.Contains(err.Error(), "model.layers.4.mlp.up_proj.weight") || !strings.Contains(err.Error(), "NaN") {
		t.Errorf("a scan of all layers says %v", err)
	}
}

// damage makes the first number of a tensor of a safetensors file NaN.
func damage(t *testing.T, file []byte, tensor string) {
	t.Helper()
	n := binary.LittleEndian.Uint64(file)
	var header map[string]struct {
		Offsets []int `json:"data_offsets"`
	}
	if err := json.Unmarshal(file[8:8+n], &header); err != nil {
		t.Fatal(err)
	}
	at := 8 + int(n) + header[tensor].Offsets[0]
	binary.LittleEndian.PutUint32(file[at:], math.Float32bits(float32(math.NaN())))
}

func TestOptionsAreCheckedAgainstTheSource(t *testing.T) {
	text := filepath.Join(t.TempDir(), "short.txt")
	if err := os.WriteFile(text, []byte("Light is a ray."), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		opts eigenhead.Options
		want []string
	}{
		{"layer beyond the last", eigenhead.Options{Layers: "0-40"}, []string{"--layers 0-40", "layer 40", "0-3"}},
		{"no layer", eigenhead.Options{Layers: "first"}, []string{"--layers first"}},
		{"context of one", eigenhead.Options{Context: 1}, []string{"--context", "at least 2"}},
		{"context beyond the text", eigenhead.Options{Text: text, Context: 400}, []string{"--context", "tokens that the text has"}},
		{"windows beyond the text", eigenhead.Options{Text: text, Context: 4, Windows: 30}, []string{"--windows", "30"}},
		{"capture of windows", eigenhead.Options{Context: 16, Windows: 2, Capture: "x.safetensors"}, []string{"--capture", "--windows"}},
		{"text and tokens", eigenhead.Options{Text: text, Tokens: "ids.json"}, []string{"--tokens", "--text"}},
		{"ids of another model", eigenhead.Options{Tokens: writeIDs(t, "[1, 999999]")}, []string{"999999", "vocabulary"}},
		{"ids that are none", eigenhead.Options{Tokens: writeIDs(t, `{"ids": [1]}`)}, []string{"JSON list"}},
		{"absent text", eigenhead.Options{Text: filepath.Join(t.TempDir(), "none.txt")}, []string{"--text"}},
		{"unknown measure", eigenhead.Options{Measures: []string{"energy.k9"}}, []string{"energy.k9", "energy.k90"}},
	} {
		_, err := eigenhead.Scan(context.Background(), eigenhead.Demo, &c.opts)
		if err == nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", c.name, err, w)
			}
		}
	}
}

func TestInterruptIsNoInputError(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	file := filepath.Join(t.TempDir(), "demo.safetensors")
	_, err := eigenhead.Scan(ctx, eigenhead.Demo, &eigenhead.Options{Capture: file})
	if !errors.Is(err, context.Canceled) || xerr.Input(err) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(file)); len(entries) != 0 {
		t.Errorf("%d files left behind", len(entries))
	}
}
