package measure

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/eigenhead/eigenhead/attention"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
)

func TestEveryMeasureIsDocumented(t *testing.T) {
	seen := make(map[string]bool)
	for _, m := range All {
		if seen[m.Name] {
			t.Errorf("%s stands twice in All", m.Name)
		}
		seen[m.Name] = true
		fields := map[string]string{"Name": m.Name, "Unit": m.Unit, "Source": m.Source, "Doc.Summary": m.Doc.Summary,
			"Doc.Formula": m.Doc.Formula, "Doc.Range": m.Doc.Range, "Doc.Meaning": m.Doc.Meaning}
		for name, text := range fields {
			if strings.TrimSpace(text) == "" {
				t.Errorf("%s: %s is empty", m.Name, name)
			}
		}
		if m.Compute == nil {
			t.Errorf("%s: no Compute", m.Name)
		}
		if (m.Null == nil) == (m.NoNull == "") || (m.Null == nil) == (m.Doc.Null != "") {
			t.Errorf("%s: want Null with Doc.Null, or NoNull with the reason", m.Name)
		}
	}
	if len(All) != 48 {
		t.Errorf("%d measures, want the 48 of design.md", len(All))
	}
}

func TestLookupSuggestsTheNearestName(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"energy.k9", "energy.k90"}, {"entropy", "attention.entropy"}, {"key.incoherense", "key.incoherence"}, {"overlap", "overlap.max"},
	} {
		_, err := Lookup(c.name)
		if u, ok := err.(*UnknownError); !ok || u.Nearest != c.want {
			t.Errorf("Lookup(%q): %v, want the suggestion %q", c.name, err, c.want)
		}
	}
	if m, err := Lookup("attention.gap"); err != nil || m != attentionGap {
		t.Errorf("Lookup(attention.gap) = %v, %v", m, err)
	}
}

func TestMatch(t *testing.T) {
	got, err := Match([]string{"key.incoherence", "output.*", "key.inc*"})
	if err != nil {
		t.Fatal(err)
	}
	if want := []*Measure{keyIncoherence, keyIncoherenceCentered, outputShare, outputPart}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %d measures, want %d", len(got), len(want))
	}
	if _, err := Match([]string{"energy.*", "nothing.*"}); err == nil {
		t.Error("a pattern that fits nothing passed")
	}
	if all, err := Match(nil); err != nil || len(all) != len(All) {
		t.Error("no patterns: want all")
	}
}

// tolerance: what the issue allows. Ratios and roots of differences carry the
// rounding of what was subtracted.
func tolerance(name string, want, maxZ float64, d int) float64 {
	logits := 4 * float64(d) * 0x1p-52 * maxZ
	tol := 1e-6*math.Abs(want) + logits + 1e-12
	switch name {
	case "attention.uniform_distance": // √ of a difference: compare squares
		tol += math.Sqrt(1e-14 + logits)
	case "weights.qk_trace", "weights.qk_variance", "output.part", "overlap.max":
		tol += 1e-10
	}
	return tol
}

func compareWithTwin(t rapid.TB, where string, got map[string]Value, want map[string]float64, maxZ float64, d int) {
	t.Helper()
	for name, w := range want {
		v, there := got[name]
		switch {
		case math.IsNaN(w) && there:
			t.Errorf("%s %s = %g, want none", where, name, v.Value)
		case !math.IsNaN(w) && !there:
			t.Errorf("%s %s is omitted, want %g", where, name, w)
		case math.IsNaN(w):
			continue
		}
		tol := tolerance(name, w, maxZ, d)
		switch {
		case name == "energy.sigma1" || name == "energy.frobenius":
			tol = 1e-10 * w
		case strings.HasPrefix(name, "attention.sigma"):
			tol = *v.Bound + 1e-14*math.Abs(w)
		case v.Bound != nil:
			tol += *v.Bound
		}
		if name == "energy.sigma1" && v.BoundKind != boundRounding {
			tol = max(tol, *v.Bound+1e-12*w)
		}
		if diff := math.Abs(v.Value - w); !(diff <= tol) {
			t.Errorf("%s %s = %.15g, twin %.15g: off by %.3g, allowed %.3g", where, name, v.Value, w, diff, tol)
		}
	}
	for name := range got {
		if _, known := want[name]; !known {
			t.Errorf("%s %s has no twin", where, name)
		}
	}
}

func TestEveryMeasureEqualsItsDenseTwin(t *testing.T) {
	for _, conv := range attention.Conventions {
		for _, c := range layerCases {
			t.Run(string(conv)+"/"+c.name, func(t *testing.T) {
				twinTest(t, c.make(rand.New(rand.NewPCG(7, 11))), conv)
			})
		}
	}
}

func twinTest(t rapid.TB, l *head.Layer, conv attention.Convention) {
	table, err := Run(context.Background(), l, &Options{Convention: conv})
	if err != nil {
		t.Fatal(err)
	}
	w := &twin{l: l, conv: conv}
	for h, r := range table.Heads {
		want := w.head(h)
		compareWithTwin(t, r.ID.String(), r.Measures, want, w.maxZ, l.Pairs[h].Dim())
		compareSpectrum(t, w, l.Pairs[h], conv, r)
		for name, v := range r.Measures {
			if v.Upper != nil && *v.Upper < want[name]*(1-1e-12) {
				t.Errorf("%v %s: upper bound %g is below %g", r.ID, name, *v.Upper, want[name])
			}
		}
	}
	for _, r := range table.KVHeads {
		for h, p := range l.Pairs {
			if p.KVHead == r.KVHead {
				compareWithTwin(t, fmt.Sprintf("L3KV%d", r.KVHead), r.Measures, w.keys(l.Pairs[h]), 0, p.Dim())
			}
		}
	}
	compareWithTwin(t, "L3", table.Layers[0].Measures, w.layer(), 0, 0)
}

// compareSpectrum holds every singular value to 1e-10 of the largest.
func compareSpectrum(t rapid.TB, w *twin, p head.Pair, conv attention.Convention, r HeadResult) {
	t.Helper()
	if conv == attention.Masked {
		if r.Spectrum != nil {
			t.Errorf("%v: a masked field has a spectrum of %d values", r.ID, len(r.Spectrum))
		}
		return
	}
	_, want, _ := w.field(p, conv).svd()
	if w.noise(p) == 0 {
		clear(want)
	}
	for c, s := range r.Spectrum {
		x := 0.0
		if c < len(want) {
			x = want[c]
		}
		if !(math.Abs(s-x) <= 1e-10*want[0]) {
			t.Fatalf("%v: σ_%d = %g, twin %g", r.ID, c+1, s, x)
		}
	}
	for c := len(r.Spectrum); c < len(want); c++ {
		if !(want[c] <= 1e-10*want[0]) {
			t.Fatalf("%v: σ_%d = %g is missing", r.ID, c+1, want[c])
		}
	}
}

func TestRandomShapesEqualTheirTwin(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		T, d := rapid.IntRange(1, 30).Draw(r, "T"), rapid.IntRange(1, 12).Draw(r, "d")
		kv := rapid.IntRange(1, 2).Draw(r, "kv")
		mask := rapid.SampledFrom([]head.Mask{{}, head.Causal, {Kind: head.MaskWindow, Window: 1}, {Kind: head.MaskWindow, Window: 4}}).Draw(r, "mask")
		size := rapid.SampledFrom([]float64{0.01, 1, 4, 30}).Draw(r, "size")
		l := randomLayer(rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1)), 2*kv, kv, T, d, mask, size)
		twinTest(r, l, rapid.SampledFrom(attention.Conventions).Draw(r, "convention"))
	})
}

func TestBitsDoNotDependOnCores(t *testing.T) {
	l := randomLayer(rand.New(rand.NewPCG(5, 5)), 6, 3, 70, 8, head.Causal, 1.3)
	run := func(cores int, memory int64) *Table {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		table, err := Run(context.Background(), l, &Options{Nulls: NewNulls(t.TempDir(), nil), Profiles: true, Memory: memory})
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	one := run(1, 0)
	for _, other := range []*Table{run(2, 0), run(2, -1)} {
		if !reflect.DeepEqual(one, other) {
			t.Error("the same layer gave other bits")
		}
	}
}

func TestPartsOfAllHeadsSumToOne(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(r, "heads")
		l := randomLayer(rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 2)), n, 1, 9, 4, head.Causal, 1)
		table, err := Run(context.Background(), l, &Options{Measures: []*Measure{outputPart}})
		if err != nil {
			r.Fatal(err)
		}
		sum := 0.0
		for _, h := range table.Heads {
			sum += h.Measures["output.part"].Value
		}
		if math.Abs(sum-1) > 1e-9 {
			r.Fatalf("parts sum to %.12g", sum)
		}
	})
}

// A common vector added to all keys moves whole rows of scores: softmax and the
// energy field do not see it, raw key measures do.
func TestACommonKeyVectorChangesNothingButRawKeys(t *testing.T) {
	l := randomLayer(rand.New(rand.NewPCG(8, 1)), 2, 2, 30, 6, head.Causal, 1)
	before, err := Run(context.Background(), l, nil)
	if err != nil {
		t.Fatal(err)
	}
	for h := range l.Pairs {
		l.Pairs[h].K = l.Pairs[h].K.Clone()
		each(l.Pairs[h].K, func(_, j int, v float64) float64 { return v + float64(j) })
	}
	after, err := Run(context.Background(), l, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw := map[string]bool{"attention.max_logit": true, "key.incoherence": true, "key.norm_min_median": true}
	same := func(where string, a, b map[string]Value) {
		for name, v := range a {
			diff := math.Abs(v.Value - b[name].Value)
			if raw[name] != (diff > 1e-3) && (raw[name] || diff > 1e-9*(1+math.Abs(v.Value))) {
				t.Errorf("%s %s: %g became %g", where, name, v.Value, b[name].Value)
			}
		}
	}
	for h := range before.Heads {
		same(before.Heads[h].ID.String(), before.Heads[h].Measures, after.Heads[h].Measures)
	}
	for k := range before.KVHeads {
		same("keys", before.KVHeads[k].Measures, after.KVHeads[k].Measures)
	}
}

func TestOverlapNamesTheTwinHead(t *testing.T) {
	l := randomLayer(rand.New(rand.NewPCG(3, 9)), 4, 4, 30, 6, head.Causal, 1)
	l.Pairs[3].Q, l.Pairs[3].K = l.Pairs[1].Q.Clone(), l.Pairs[1].K.Clone()
	l.Pairs[3].Scale *= -2
	l.Pairs[1].ID.Head, l.Pairs[3].ID.Head = 11, 13 // numbers need not be places
	table, err := Run(context.Background(), l, &Options{Measures: []*Measure{overlapMax}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ at, other int }{{1, 13}, {3, 11}} {
		o := table.Heads[c.at].Overlap
		if o == nil || o.Head != c.other || math.Abs(o.Cosine+1) > 1e-9 {
			t.Errorf("head %d: overlap %+v, want head %d with cosine -1", c.at, o, c.other)
		}
	}
}

func TestNonFiniteValuesAreLocatedAndOmitted(t *testing.T) {
	l := randomLayer(rand.New(rand.NewPCG(4, 4)), 4, 2, 12, 4, head.Causal, 1)
	for h := range l.Pairs {
		l.Pairs[h].V = linalg.New(12, 3)
	}
	l.Pairs[3].V = linalg.New(12, 3)
	l.Pairs[2].V = l.Pairs[3].V
	l.Pairs[2].V.Set(7, 1, math.Inf(-1))
	l.Pairs[0].Q.Set(5, 2, math.NaN())
	l.X.Row(1)[9] = float32(math.Inf(1))
	table, err := Run(context.Background(), l, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []NonFinite{{"L3", "x", 1, 9, "+Inf"}, {"L3KV1", "v", 7, 1, "-Inf"}, {"L3H0", "q", 5, 2, "NaN"}}
	if !reflect.DeepEqual(table.NonFinite, want) {
		t.Errorf("located %+v, want %+v", table.NonFinite, want)
	}
	for name := range table.Heads[0].Measures {
		if !strings.HasPrefix(name, "weights.") {
			t.Errorf("L3H0 has %s although q is not finite", name)
		}
	}
	if v, ok := table.Heads[1].Measures["attention.entropy"]; !ok || math.IsNaN(v.Value) {
		t.Error("L3H1 lost its entropy to its neighbor's fault")
	}
	if _, ok := table.Heads[1].Measures["output.share"]; ok {
		t.Error("output.share stands although v is not finite")
	}
	if len(table.Layers[0].Measures) != 0 {
		t.Errorf("the layer has %v although x is not finite", table.Layers[0].Measures)
	}
	for _, o := range table.Omitted {
		if o.Measure == "attention.entropy" && (o.Where != "L3H0" || o.Reason != "q of L3H0 is NaN at token 5, column 2") {
			t.Errorf("omission %+v", o)
		}
	}
}

func TestOmissionsSayWhy(t *testing.T) {
	l := randomLayer(rand.New(rand.NewPCG(4, 5)), 2, 2, 12, 4, head.Mask{}, 1)
	l.Tokens, l.WQ, l.WO, l.AV = nil, head.Weights{}, head.Weights{}, linalg.Matrix32{}
	reasons := func(t *testing.T, l *head.Layer) map[string]string {
		table, err := Run(context.Background(), l, nil)
		if err != nil {
			t.Fatal(err)
		}
		out := make(map[string]string)
		for _, o := range table.Omitted {
			out[o.Measure] = o.Where + ": " + o.Reason
		}
		return out
	}
	got := reasons(t, l)
	for name, want := range map[string]string{
		"attention.induction": "L3: the source holds no token ids",
		"attention.eigen_gap": "L3: without a mask the eigenvalues are not the diagonal",
		"attention.null_mass": "L3: the head has no learned sink",
		"output.share":        "L3: needs A·V and W_O, which the source does not hold",
		"weights.qk_k90":      "L3: needs W_Q and W_K, which the source does not hold",
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	l.Sparse = true
	got = reasons(t, l)
	for _, m := range All {
		group, _, _ := strings.Cut(m.Name, ".")
		_, omitted := got[m.Name]
		if want := group != "energy" && group != "key"; omitted != want {
			t.Errorf("sparse: %s omitted %v, want %v", m.Name, omitted, want)
		}
	}
}

func TestOnlyWhatIsAskedIsMeasured(t *testing.T) {
	l := randomLayer(rand.New(rand.NewPCG(4, 6)), 2, 2, 12, 4, head.Causal, 1)
	table, err := Run(context.Background(), l, &Options{Measures: []*Measure{keyIncoherence, energyK90}})
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Heads[0].Measures) != 1 || len(table.KVHeads[0].Measures) != 1 || len(table.Omitted) != 0 || len(table.Layers[0].Measures) != 0 {
		t.Errorf("measured %v, %v", table.Heads[0].Measures, table.KVHeads[0].Measures)
	}
}

func TestCompactSaysOnceWhatAllLayersShare(t *testing.T) {
	table := &Table{Layers: []LayerResult{{Layer: 0}, {Layer: 1}}, Omitted: []Omission{
		{"a", "L0", "why"}, {"b", "L0", "why"}, {"a", "L1", "why"}, {"b", "L1", "other"}, {"a", "L1H0", "why"},
	}}
	table.Compact()
	want := []Omission{{"a", "all", "why"}, {"b", "L0", "why"}, {"b", "L1", "other"}, {"a", "L1H0", "why"}}
	if !reflect.DeepEqual(table.Omitted, want) {
		t.Errorf("got %v, want %v", table.Omitted, want)
	}
}

func TestRunStopsWhenInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, randomLayer(rand.New(rand.NewPCG(1, 1)), 1, 1, 8, 4, head.Causal, 1), nil); err != context.Canceled {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

func TestProfilesSumToOneAndStayShort(t *testing.T) {
	l := randomLayer(rand.New(rand.NewPCG(2, 6)), 1, 1, 300, 8, head.Causal, 1)
	table, err := Run(context.Background(), l, &Options{Profiles: true, Nulls: NewNulls(t.TempDir(), nil)})
	if err != nil {
		t.Fatal(err)
	}
	p := table.Heads[0].Profile
	if len(p.Start) != ProfileBins || len(p.Entropy) != ProfileBins || len(p.Channels) != profileChannels {
		t.Fatalf("profile of %d bins, %d entropies, %d channels", len(p.Start), len(p.Entropy), len(p.Channels))
	}
	for _, c := range p.Channels {
		q, k := 0.0, 0.0
		for b := range c.Query {
			q, k = q+c.Query[b], k+c.Key[b]
		}
		if math.Abs(q-1) > 1e-12 || math.Abs(k-1) > 1e-12 {
			t.Errorf("channel weights sum to %g and %g", q, k)
		}
	}
	f := 0.0
	for _, s := range p.NullSigma {
		f += s * s
	}
	if want := table.Heads[0].Measures["energy.frobenius"].Value; math.Abs(math.Sqrt(f)/want-1) > 0.02 {
		t.Errorf("null spectrum has norm %g, the field %g", math.Sqrt(f), want)
	}
}
