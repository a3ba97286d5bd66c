package finding

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/measure"
)

// drawValue draws a value of any size, with or without null and z.
func drawValue(t *rapid.T) measure.Value {
	v := measure.Value{Value: rapid.OneOf(rapid.Float64Range(-1, 1), rapid.Float64Range(-1e6, 1e6), rapid.Just(0.0)).Draw(t, "value")}
	if rapid.Bool().Draw(t, "has null") {
		v.Null = &measure.Null{Mean: rapid.Float64Range(0, 10).Draw(t, "mean"), SD: rapid.Float64Range(0, 1).Draw(t, "sd")}
		if v.Null.SD > 0 {
			z := max(min((v.Value-v.Null.Mean)/v.Null.SD, 1e300), -1e300)
			v.Z = &z
		}
	}
	return v
}

func drawTable(t *rapid.T) *measure.Table {
	draw := func(names []string) map[string]measure.Value {
		m := make(map[string]measure.Value)
		for _, n := range names {
			if rapid.Bool().Draw(t, n) {
				m[n] = drawValue(t)
			}
		}
		return m
	}
	table := &measure.Table{}
	heads := rapid.IntRange(1, 3).Draw(t, "heads")
	for l := range rapid.IntRange(0, 3).Draw(t, "layers") {
		for h := range heads {
			r := measure.HeadResult{ID: head.ID{Layer: l, Head: h}, Measures: draw([]string{"attention.max_logit", "attention.entropy", "attention.sink",
				"attention.sink_max", "attention.previous", "attention.induction", "channel.key_ipr", "overlap.max", "output.share"})}
			if heads > 1 {
				r.Overlap = &measure.Overlap{Head: (h + 1) % heads, Cosine: rapid.Float64Range(-1, 1).Draw(t, "cosine")}
			}
			table.Heads = append(table.Heads, r)
		}
		table.KVHeads = append(table.KVHeads, measure.KVResult{Layer: l, Measures: draw([]string{"key.incoherence"})})
		table.Layers = append(table.Layers, measure.LayerResult{Layer: l, Measures: draw([]string{"residual.token_residual", "residual.cosine"})})
		if rapid.IntRange(0, 9).Draw(t, "non-finite") == 0 {
			table.NonFinite = append(table.NonFinite, measure.NonFinite{Where: fmt.Sprintf("L%dH0", l), Tensor: "q", Value: "NaN"})
		}
	}
	return table
}

// TestRunProperties: whatever the numbers, findings are sorted, placed, in words
// and with finite evidence; a dependent rule is silent where its cause fires; the
// same table gives the same findings.
func TestRunProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := &Input{Table: drawTable(t), Model: Model{Tokens: rapid.IntRange(1, 4096).Draw(t, "tokens"), QKNorm: rapid.Bool().Draw(t, "qk norm")}}
		found := Run(in)
		if !slices.IsSortedFunc(found, order) {
			t.Fatal("not sorted")
		}
		for _, f := range found {
			rule := Lookup(f.Code)
			if rule == nil || f.Severity.Rank() < 0 || f.Severity.Rank() > rule.Severity.Rank() {
				t.Fatalf("%+v: unknown code, or a severity above the rule's own", f)
			}
			if layer, _ := Place(f.Where); layer < 0 || !strings.HasPrefix(f.Text, f.Where+" ") {
				t.Fatalf("%+v: no place, or a text that does not begin with it", f)
			}
			for name, e := range f.Evidence {
				if x, ok := e.(float64); ok && (math.IsNaN(x) || math.IsInf(x, 0)) {
					t.Fatalf("%+v: evidence %s is not finite", f, name)
				}
			}
			for _, cause := range rule.DependsOn {
				if slices.ContainsFunc(found, func(g Finding) bool { return g.Code == cause.Code && g.Where == f.Where }) {
					t.Fatalf("%s at %s beside its cause %s", f.Code, f.Where, cause.Code)
				}
			}
		}
		if again := Run(in); fmt.Sprint(again) != fmt.Sprint(found) {
			t.Fatal("a second run differs")
		}
	})
}

// TestThresholdsMoveFindings: raising the warn threshold never adds a max-logit finding.
func TestThresholdsMoveFindings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t)
		low, high := Default(), Default()
		low.MaxLogit.Warn = rapid.Float64Range(0, 500).Draw(t, "low")
		high.MaxLogit.Warn = low.MaxLogit.Warn + rapid.Float64Range(0, 500).Draw(t, "more")
		count := func(th *Thresholds) int { return len(MaxLogit.Check(&Input{Table: table, Thresholds: th})) }
		if count(high) > count(low) {
			t.Fatalf("%d findings above %g, %d above %g", count(high), high.MaxLogit.Warn, count(low), low.MaxLogit.Warn)
		}
	})
}
