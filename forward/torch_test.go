package forward_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/checkpoint"
	"github.com/eigenhead/eigenhead/linalg"
)

// Small random models for which PyTorch's q, k, v and logits are stored beside
// the weights; tools/archfixtures/make.py made them. Where llama.cpp has the
// family, model.gguf holds the same weights under its names and order.
func TestAgainstTorch(t *testing.T) {
	for _, name := range fixtures(t) {
		dir := filepath.Join("testdata", name)
		want := readExpected(t, filepath.Join(dir, "expected.safetensors"))
		t.Run(name, func(t *testing.T) { againstTorch(t, filepath.Join(dir, "model.safetensors"), want) })
		if gguf := filepath.Join(dir, "model.gguf"); exists(gguf) {
			t.Run(name+"/gguf", func(t *testing.T) { againstTorch(t, gguf, want) })
		}
	}
}

// againstTorch runs one file and compares everything that was recorded.
func againstTorch(t *testing.T, path string, want map[string]linalg.Matrix) {
	modelAgainstTorch(t, open(t, path), want)
}

func modelAgainstTorch(t *testing.T, m *arch.Model, want map[string]linalg.Matrix) {
	const (
		qkvTol    = 1e-4 // float32 through a few layers of unit scale, summed in another order
		logitsTol = 1e-3
	)
	tokens := idsOf(want)
	for _, w := range m.Warnings {
		if !strings.HasPrefix(w, "ALiBi: ") {
			t.Errorf("warning %q", w)
		}
	}
	layers, out := run(t, m, tokens)
	if ref, ok := want["logits"]; ok {
		near(t, "logits", out.Logits.Float64(), ref, logitsTol)
		t.Logf("logits differ by up to %.1e", farthest(out.Logits.Float64(), ref))
	}
	worst := 0.0
	for l, layer := range layers {
		if want[fmt.Sprintf("scale.%d", l)].Rows == 0 {
			t.Fatalf("layer %d was not recorded", l)
		}
		if scale := want[fmt.Sprintf("scale.%d", l)].At(0, 0); !(math.Abs(layer.Pairs[0].Scale-scale) <= 1e-6*scale) {
			t.Errorf("layer %d: scale %g, want %g", l, layer.Pairs[0].Scale, scale)
		}
		for _, p := range layer.Pairs {
			for _, c := range []struct {
				what string
				got  linalg.Matrix
				head int
			}{{"q", p.Q, p.ID.Head}, {"k", p.K, p.KVHead}, {"v", p.V, p.KVHead}} {
				ref := want[fmt.Sprintf("%s.%d", c.what, l)].RowSlice(c.head*p.T(), (c.head+1)*p.T())
				near(t, fmt.Sprintf("%v %s", p.ID, c.what), c.got, ref, qkvTol)
				worst = max(worst, farthest(c.got, ref))
			}
		}
	}
	t.Logf("q, k and v differ by up to %.1e", worst)
}

// farthest returns the largest absolute difference.
func farthest(a, b linalg.Matrix) float64 {
	d := 0.0
	for i := range min(a.Rows, b.Rows) {
		for j, v := range a.Row(i) {
			d = max(d, math.Abs(v-b.At(i, j)))
		}
	}
	return d
}

func idsOf(want map[string]linalg.Matrix) []int {
	var tokens []int
	for _, v := range want["ids"].Data {
		tokens = append(tokens, int(v))
	}
	return tokens
}

// fixtures returns the folders that have an answer.
func fixtures(t testing.TB) []string {
	t.Helper()
	answers, err := filepath.Glob(filepath.Join("testdata", "*", "expected.safetensors"))
	if err != nil || len(answers) == 0 {
		t.Fatalf("no fixture found (%v)", err)
	}
	var names []string
	for _, a := range answers {
		names = append(names, filepath.Base(filepath.Dir(a)))
	}
	return names
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// readExpected reads every tensor of a file as a matrix of its last dimension.
func readExpected(t *testing.T, path string) map[string]linalg.Matrix {
	t.Helper()
	c, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	all := map[string]linalg.Matrix{}
	for _, name := range c.Names() {
		tensor, _ := c.Tensor(name)
		cols := tensor.Shape[len(tensor.Shape)-1]
		m := linalg.New32(tensor.Elements()/cols, cols)
		if err := tensor.Float32s(m.Data); err != nil {
			t.Fatal(err)
		}
		all[name] = m.Float64()
	}
	return all
}

// The bits of every family do not depend on the number of cores.
func TestFamiliesHaveTheSameBitsOnAnyCores(t *testing.T) {
	for _, name := range fixtures(t) {
		m := open(t, filepath.Join("testdata", name, "model.safetensors"))
		tokens := idsOf(readExpected(t, filepath.Join("testdata", name, "expected.safetensors")))
		want, wantOut := run(t, m, tokens)
		before := runtime.GOMAXPROCS(3)
		got, out := run(t, m, tokens)
		runtime.GOMAXPROCS(before)
		for l := range want {
			sameLayer(t, want[l], got[l], 0)
		}
		if !slices.Equal(out.NLL, wantOut.NLL) {
			t.Errorf("%s: NLL differs", name)
		}
	}
}
