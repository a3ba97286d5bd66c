package eigenhead_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eigenhead/eigenhead"
	"github.com/eigenhead/eigenhead/internal/testshared"
	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/measure"
	"github.com/eigenhead/eigenhead/report"
)

// expected is the outcome that a case of shared/cases states.
type expected struct {
	Command, Input, Tokens, Text, Outcome string
	Alternative                           *string
	Mentions                              []string
	Tolerance, Seconds                    float64
	Context                               int
	NLL                                   float64
	IDs                                   []json.RawMessage
	SpecialIDs                            []json.RawMessage `json:"special_ids"`
	BOS                                   *int
	Traps                                 map[string]any
}

// The measures in a case's file are plain numbers, not values with nulls.
type plainMeasures struct {
	Heads   []plain `json:"heads"`
	KVHeads []plain `json:"kv_heads"`
	Layers  []plain `json:"layers"`
}

type plain struct {
	Layer    int                `json:"layer"`
	Head     int                `json:"head"`
	KVHead   int                `json:"kv_head"`
	Measures map[string]float64 `json:"measures"`
}

func TestUnusualFilesHaveTheirRightOutcome(t *testing.T) {
	dir := testshared.Dir(t, "cases")
	folders, err := filepath.Glob(filepath.Join(dir, "*", "expected.json"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("no cases below %s: %v", dir, err)
	}
	for _, file := range folders {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) { checkCase(t, file) })
	}
}

func checkCase(t *testing.T, file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		expected
		plainMeasures
	}
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(filepath.Dir(file), name) }
	start := time.Now()
	switch {
	case want.Command == "tokenize":
		checkTokens(t, at(want.Input), at(want.Text), &want.expected)
	default:
		r, err := eigenhead.Scan(context.Background(), at(want.Input), &eigenhead.Options{Tokens: at(want.Tokens)})
		if want.Outcome == "refuse" && (err != nil || want.Alternative == nil || *want.Alternative != "value") {
			checkRefusal(t, err, want.Mentions)
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		checkNumbers(t, r, &want.expected, &want.plainMeasures)
	}
	if d := time.Since(start).Seconds(); d > 4*want.Seconds { // the machine of a test may be busy
		t.Errorf("took %.1f s, want %g", d, want.Seconds)
	}
}

func checkRefusal(t *testing.T, err error, mentions []string) {
	t.Helper()
	if err == nil || !xerr.Input(err) {
		t.Fatalf("got %v, want a refusal of the input", err)
	}
	text := strings.ToLower(err.Error() + " " + xerr.Hint(err))
	for _, m := range mentions {
		if !slices.ContainsFunc(strings.Split(strings.ToLower(m), "|"), func(w string) bool { return strings.Contains(text, w) }) {
			t.Errorf("refusal %q does not mention %q", err, m)
		}
	}
}

func checkNumbers(t *testing.T, r *report.Report, want *expected, m *plainMeasures) {
	t.Helper()
	if r.Input.Tokens != want.Context {
		t.Errorf("%d tokens, want %d", r.Input.Tokens, want.Context)
	}
	if r.Input.NLL == nil || !(math.Abs(*r.Input.NLL-want.NLL) <= want.Tolerance) {
		t.Errorf("nll %v, want %v (traps: %v)", r.Input.NLL, want.NLL, want.Traps)
	}
	if len(r.Heads) != len(m.Heads) || len(r.KVHeads) != len(m.KVHeads) || len(r.Layers) != len(m.Layers) {
		t.Fatalf("%d heads, %d KV heads, %d layers; want %d, %d, %d", len(r.Heads), len(r.KVHeads), len(r.Layers),
			len(m.Heads), len(m.KVHeads), len(m.Layers))
	}
	for i, w := range m.Heads {
		if h := r.Heads[i]; h.Layer != w.Layer || h.Head != w.Head || h.KVHead != w.KVHead {
			t.Errorf("head %d is %v of KV head %d, want %+v", i, h.ID, h.KVHead, w)
		}
		near(t, r.Heads[i].String(), r.Heads[i].Measures, w.Measures, want.Tolerance)
	}
	for i, w := range m.KVHeads {
		near(t, "KV head", r.KVHeads[i].Measures, w.Measures, want.Tolerance)
	}
	for i, w := range m.Layers {
		near(t, "layer", r.Layers[i].Measures, w.Measures, want.Tolerance)
	}
}

func near(t *testing.T, where string, got map[string]measure.Value, want map[string]float64, tolerance float64) {
	t.Helper()
	for name, w := range want {
		v, ok := got[name]
		if !ok {
			t.Errorf("%s: %s is absent, want %g", where, name, w)
			continue
		}
		if !(math.Abs(v.Value-w) <= tolerance*math.Max(math.Abs(w), 0.001)) {
			t.Errorf("%s: %s = %.6g, want %.6g", where, name, v.Value, w)
		}
	}
}

func checkTokens(t *testing.T, input, text string, want *expected) {
	t.Helper()
	for _, special := range []bool{false, true} {
		got, err := eigenhead.Tokenize(input, text, special)
		if err != nil {
			t.Fatal(err)
		}
		ids := unfold(t, want.IDs)
		if special {
			ids = unfold(t, want.SpecialIDs)
		}
		if !slices.Equal(got.IDs, ids) {
			t.Errorf("special %v: ids\n got %v\nwant %v (traps: %v)", special, got.IDs, ids, want.Traps)
		}
		if (got.BOS == nil) != (want.BOS == nil) || got.BOS != nil && *got.BOS != *want.BOS {
			t.Errorf("BOS %v, want %v", got.BOS, want.BOS)
		}
	}
}

// unfold reads ids in which [id, n] stands for n times id.
func unfold(t *testing.T, raw []json.RawMessage) (ids []int) {
	t.Helper()
	for _, r := range raw {
		var id int
		var run [2]int
		if json.Unmarshal(r, &id) == nil {
			ids = append(ids, id)
		} else if err := json.Unmarshal(r, &run); err == nil {
			ids = append(ids, slices.Repeat([]int{run[0]}, run[1])...)
		} else {
			t.Fatalf("ids: %s", r)
		}
	}
	return ids
}
