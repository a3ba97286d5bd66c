package measure

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/eigenhead/eigenhead/attention"
	"github.com/eigenhead/eigenhead/head"
)

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol) {
		t.Errorf("%s = %.6g, want %.6g ± %.2g", what, got, want, tol)
	}
}

func TestClosedFormsOfUniformAttention(t *testing.T) {
	for _, T := range []int{2, 3, 17, 512} {
		harmonic := 0.0
		for i := 1; i <= T; i++ {
			harmonic += 1 / float64(i)
		}
		n := float64(T)
		for _, c := range []struct {
			name         string
			f            func(int, head.Mask) float64
			causal, none float64
		}{
			{"sink", uniformSink, (harmonic - 1) / (n - 1), 1 / n},
			{"previous", uniformPrevious, (harmonic - 1) / (n - 1), 1 / n},
			{"diagonal", uniformDiagonal, harmonic / n, 1 / n},
			{"distance", uniformDistance, (n - 1) / 4, (n*n - 1) / (3 * n)},
		} {
			near(t, c.name+" causal", c.f(T, head.Causal), c.causal, 1e-12*n)
			near(t, c.name+" without mask", c.f(T, head.Mask{}), c.none, 1e-12*n)
		}
	}
	// A window of 2 over 3 tokens: rows see 1, 2 and 2 keys; only row 1 sees key 0 late.
	w := head.Mask{Kind: head.MaskWindow, Window: 2}
	near(t, "sink in a window", uniformSink(3, w), 0.5, 0)
	near(t, "previous in a window", uniformPrevious(3, w), 0.5, 0)
	near(t, "diagonal in a window", uniformDiagonal(3, w), 2.0/3, 1e-15)
}

// The closed law of channel.* against random frames.
func TestIPRNullIsThatOfRandomFrames(t *testing.T) {
	const draws = 4000
	for _, sh := range []shape{{T: 12, Dim: 3}, {T: 40, Dim: 16}} {
		l := randomLayer(rand.New(rand.NewPCG(1, 1)), 1, 1, sh.T, sh.Dim, head.Causal, 1)
		n := mustNull(t, l, channelKeyIPR)
		m := min(leading, sh.Dim)
		sum, squares := 0.0, 0.0
		for i := range draws {
			q := randomFrame(source("test", sh, i), sh.T, m)
			x := 0.0
			for k := range m {
				x += ipr(q, k) / float64(m)
			}
			sum, squares = sum+x, squares+x*x
		}
		mean := sum / draws
		sd := math.Sqrt(squares/draws - mean*mean)
		near(t, "mean", n.Mean, mean, 4*sd/math.Sqrt(draws))
		near(t, "mean", n.Mean, 3*float64(sh.T-1)/float64(sh.T+1), 1e-12)
		near(t, "spread", n.SD, sd, 0.06*sd)
	}
}

func mustNull(t *testing.T, l *head.Layer, m *Measure) Null {
	t.Helper()
	table, err := Run(context.Background(), l, &Options{Measures: []*Measure{m}, Nulls: NewNulls(t.TempDir(), nil)})
	if err != nil {
		t.Fatal(err)
	}
	values := table.Heads[0].Measures
	if m.Per == PerKVHead {
		values = table.KVHeads[0].Measures
	}
	if values[m.Name].Null == nil {
		t.Fatalf("%s: no null: %q", m.Name, values[m.Name].NoNull)
	}
	return *values[m.Name].Null
}

// theory.md 1.4: mean μ_K of i.i.d. Gaussian keys over 60 repetitions, printed to
// two digits.
func TestKeyIncoherenceNullHasTheKnownMeans(t *testing.T) {
	table := map[int]map[int]float64{
		32:  {64: 1.66, 128: 1.72, 256: 1.86, 512: 1.96, 1024: 2.05},
		64:  {64: 1.46, 128: 1.52, 256: 1.58, 512: 1.63, 1024: 1.68},
		80:  {64: 1.41, 128: 1.47, 256: 1.50, 512: 1.54, 1024: 1.60},
		128: {64: 1.32, 128: 1.35, 256: 1.41, 512: 1.43, 1024: 1.46},
		256: {64: 1.23, 128: 1.23, 256: 1.27, 512: 1.28, 1024: 1.31},
	}
	n := NewNulls(t.TempDir(), nil)
	for d, row := range table {
		for T, want := range row {
			c, err := n.factorCell(context.Background(), T, d)
			if err != nil {
				t.Fatal(err)
			}
			m, err := c.at("key.incoherence", 0)
			if err != nil {
				t.Fatal(err)
			}
			// Four standard errors of their 60 draws and our 64 or more, and their rounding.
			near(t, "μ_K", m.Mean, want, 4*m.SD*math.Sqrt(1.0/60+1.0/64)+0.005)
		}
	}
}

func TestSpectrumNullsHaveTheKnownValues(t *testing.T) {
	c, err := NewNulls(t.TempDir(), nil).spectrumCell(context.Background(), 512, 64)
	if err != nil {
		t.Fatal(err)
	}
	m, _ := c.at("energy.top20", 0)
	near(t, "top20 at T=512, d=64 (theory.md 1.4)", m.Mean, 0.515, 2*m.SD+0.0005)
	m, _ = c.at("key.condition", 0)
	near(t, "condition against the Marchenko–Pastur edges", m.Mean, (1+math.Sqrt(1./8))/(1-math.Sqrt(1./8)), 0.1)
}

// Values of theory.md 1.5 and 2.2 at T = 256.
func TestAttentionNullsHaveTheKnownValues(t *testing.T) {
	n := NewNulls(t.TempDir(), nil)
	at := func(name string, d int, mask head.Mask, s float64) moment {
		c, err := n.attentionCell(context.Background(), shape{T: 256, Dim: d, Mask: mask}, false)
		if err != nil {
			t.Fatal(err)
		}
		m, err := c.at(name, s)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	near(t, "entropy, s=1", at("attention.entropy", 256, head.Mask{}, 1).Mean, 0.912, 0.003)
	near(t, "entropy, s=2", at("attention.entropy", 256, head.Mask{}, 2).Mean, 0.682, 0.01)
	// Theirs are means of 3 to 6 heads, printed to two digits.
	for d, want := range map[int]float64{16: 0.40, 64: 0.26} {
		m := at("attention.sigma2", d, head.Mask{}, 1)
		near(t, "sigma2", m.Mean, want, 2*m.SD/math.Sqrt(3)+0.005)
	}
	near(t, "spread of the sink, s=.5", at("attention.sink", 64, head.Causal, 0.5).SD, 0.0012, 0.0003)
	// Heavy tails: theory.md has .010, 150 heads of a naive loop gave .007.
	near(t, "spread of the sink, s=4", at("attention.sink", 64, head.Causal, 4).SD, 0.008, 0.003)
	near(t, "causal σ₁, s=0", at("attention.sigma1", 64, head.Causal, 0).Mean, 1.686, 0.001)
	near(t, "causal σ₂, s=0", at("attention.sigma2", 64, head.Causal, 0).Mean, 1.168, 0.001)
	f := at("attention.frobenius", 64, head.Mask{}, 1).Mean
	// The closed form is that of large T; at T = 256 a row's mean e^2z is 2 % short.
	near(t, "‖A‖_F², s=1, d=64", f*f, math.Pow(1-2./64, -32), 0.1)
}

// A sample of midpoints; tools/nulltable -check visits all.
func TestTableKeepsItsPromiseBetweenNodes(t *testing.T) {
	for _, sh := range []shape{{T: 45, Dim: 10, Mask: head.Causal}, {T: 45, Dim: 78}, {T: 91, Dim: 20}, {T: 91, Dim: 39, Mask: head.Causal}} {
		nodes := []float64{0.125, 0.8, 1.9, 3.25, 5.5, 9}
		check := func(m Midpoint) {
			if m.Excess() > 1 {
				t.Errorf("%s at T=%d d=%d %s s=%g: table %g, simulated %g ± %.2g, spread %.2g: off by %.2f of what is promised",
					m.Measure, m.T, m.Dim, m.Mask, m.S, m.Table, m.Simulated, m.Sampling, m.SD, m.Excess())
			}
		}
		if err := checkAttention(context.Background(), sh, nodes, 48, check); err != nil {
			t.Fatal(err)
		}
		if err := checkFactors(context.Background(), sh.T, sh.Dim, 48, check); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheTableIsExactOnItsNodesAndSurvivesEncoding(t *testing.T) {
	table := loadTable()
	data, err := table.encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := decodeTable(data)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, nullData) || !reflect.DeepEqual(table.T, again.T) {
		t.Error("encoding what was decoded gives other bytes")
	}
	if len(nullData) > 400<<10 {
		t.Errorf("the table takes %d bytes, want at most 400 KiB", len(nullData))
	}
	c := tableAttention(shape{T: table.T[1], Dim: table.Dim[2], Mask: head.Causal})
	got, err := c.at("attention.entropy", table.S[3])
	if err != nil {
		t.Fatal(err)
	}
	k := ((1*len(table.Dim)+2)*len(table.Attention))*len(table.S) + 3 // mask causal first, entropy first
	near(t, "entropy on a node", got.Mean, float64(table.attention[2*k]), 0)
	for _, cut := range []int{0, 5, len(data) / 2, len(data) - 1} {
		if _, err := decodeTable(data[:cut]); err == nil {
			t.Errorf("a table cut to %d bytes is accepted", cut)
		}
	}
}

// Gaussian heads must look like chance: z of mean 0 and spread 1.
func TestGaussianHeadsHaveOrdinaryZ(t *testing.T) {
	const heads = 48
	l := randomLayer(rand.New(rand.NewPCG(21, 3)), heads, heads, 64, 16, head.Causal, 2)
	table, err := Run(context.Background(), l, &Options{Nulls: NewNulls(t.TempDir(), nil)})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range All {
		var z []float64
		for _, h := range table.Heads {
			if v := h.Measures[m.Name].Z; v != nil {
				z = append(z, *v)
			}
		}
		for _, k := range table.KVHeads {
			if v := k.Measures[m.Name].Z; v != nil {
				z = append(z, *v)
			}
		}
		if len(z) < 2 {
			continue
		}
		sum, squares := 0.0, 0.0
		for _, x := range z {
			sum, squares = sum+x, squares+x*x
		}
		n := float64(len(z))
		average := sum / n
		spread := math.Sqrt(squares/n - average*average)
		// Half a spread is what the table may be off; 4/√48 is sampling.
		if math.Abs(average) > 0.5+4/math.Sqrt(n) || spread < 0.5 || spread > 1.7 {
			t.Errorf("%s: z of Gaussian heads has mean %.2f and spread %.2f", m.Name, average, spread)
		}
	}
}

func TestOverlapNullIsThatOfGaussianHeads(t *testing.T) {
	for _, kv := range []int{1, 2, 6} {
		const draws = 60
		sum, n := 0.0, Null{}
		for i := range draws {
			l := randomLayer(rand.New(rand.NewPCG(uint64(i), 77)), 6, kv, 64, 8, head.Causal, 1)
			table, err := Run(context.Background(), l, &Options{Measures: []*Measure{overlapMax}, Nulls: NewNulls(t.TempDir(), nil)})
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range table.Heads {
				sum += h.Measures["overlap.max"].Value / draws / 6
			}
			n = *table.Heads[0].Measures["overlap.max"].Null
		}
		near(t, "overlap.max", n.Mean, sum, 4*n.SD/math.Sqrt(draws*6)+0.03*n.Mean)
	}
}

func TestSimulatedNullsDependOnShapeAlone(t *testing.T) {
	sh := shape{T: 14, Dim: 3, Mask: head.Mask{Kind: head.MaskWindow, Window: 6}}
	get := func(cores int) map[string][]moment {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		c, err := NewNulls(t.TempDir(), nil).attentionCell(context.Background(), sh, false)
		if err != nil {
			t.Fatal(err)
		}
		return c.Moments
	}
	one := get(1)
	if len(one) != len(attentionNames) {
		t.Errorf("%d moments, want %d", len(one), len(attentionNames))
	}
	if !reflect.DeepEqual(one, get(2)) {
		t.Error("two cores gave other numbers than one")
	}
}

func TestTheCacheChangesNoNumber(t *testing.T) {
	dir := t.TempDir()
	var told atomic.Int64
	get := func() map[string][]moment {
		told.Store(0)
		n := NewNulls(dir, func(string, int, int) { told.Add(1) })
		c, err := n.factorCell(context.Background(), 20, 5)
		if err != nil {
			t.Fatal(err)
		}
		return c.Moments
	}
	first := get()
	if told.Load() == 0 {
		t.Error("no progress was reported")
	}
	if !reflect.DeepEqual(first, get()) || told.Load() != 0 {
		t.Error("the cache gave other numbers, or was not used")
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(files) != 1 {
		t.Fatalf("files %v, want one", files)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Replace(data, []byte(`"SD":0.`), []byte(`"SD":1.`), 1)
	if bytes.Equal(changed, data) {
		t.Fatal("nothing to change in the cache file")
	}
	for _, broken := range [][]byte{nil, []byte("{"), data[:len(data)/2], changed} {
		if err := os.WriteFile(files[0], broken, 0o600); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(first, get()) || told.Load() == 0 {
			t.Errorf("a broken cache file of %d bytes was believed", len(broken))
		}
	}
}

func TestShapesWithoutANullSayWhy(t *testing.T) {
	sink := 1.0
	for _, c := range []struct {
		name   string
		change func(*head.Pair)
		reason string
	}{
		{"learned sink", func(p *head.Pair) { p.Sink = &sink }, "the null has no learned sink"},
		{"softcap", func(p *head.Pair) { p.Softcap = 30 }, "the null has no softcap"},
		{"ALiBi", func(p *head.Pair) { p.ALiBi = 0.5 }, "the null has no bias of distance"},
		{"huge logits", func(p *head.Pair) { p.Scale = 1e4 }, "is beyond 120"},
	} {
		l := randomLayer(rand.New(rand.NewPCG(6, 2)), 1, 1, 16, 4, head.Causal, 1)
		c.change(&l.Pairs[0])
		table, err := Run(context.Background(), l, &Options{Nulls: NewNulls(t.TempDir(), nil)})
		if err != nil {
			t.Fatal(err)
		}
		v := table.Heads[0].Measures["attention.entropy"]
		if v.Null != nil || v.Z != nil || !strings.Contains(v.NoNull, c.reason) {
			t.Errorf("%s: null %v, reason %q, want %q", c.name, v.Null, v.NoNull, c.reason)
		}
		if table.KVHeads[0].Measures["key.incoherence"].Null == nil {
			t.Errorf("%s: key.incoherence has lost its null", c.name)
		}
	}
}

func TestNullsOfOtherConventions(t *testing.T) {
	for _, conv := range []attention.Convention{attention.CausalMean, attention.Masked} {
		l := randomLayer(rand.New(rand.NewPCG(6, 3)), 1, 1, 24, 4, head.Causal, 1)
		energy, err := Match([]string{"energy.*"})
		if err != nil {
			t.Fatal(err)
		}
		table, err := Run(context.Background(), l, &Options{Convention: conv, Measures: energy, Nulls: NewNulls(t.TempDir(), nil)})
		if err != nil {
			t.Fatal(err)
		}
		v := table.Heads[0].Measures["energy.stable_rank"]
		if v.Z == nil || math.Abs(*v.Z) > 5 {
			t.Errorf("%s: stable rank %+v of a Gaussian head", conv, v)
		}
		if r, ok := table.Heads[0].Measures["energy.rank"]; ok && (r.Value != 5 || r.Null.Mean != 5 || r.NoZ == "") {
			t.Errorf("%s: rank %+v, want d + 1 = 5", conv, r)
		}
	}
}

func BenchmarkNullsOfAHead(b *testing.B) {
	l := randomLayer(rand.New(rand.NewPCG(6, 3)), 1, 1, 100, 20, head.Causal, 1)
	nulls := NewNulls(b.TempDir(), nil)
	if _, err := Run(context.Background(), l, &Options{Nulls: nulls}); err != nil {
		b.Fatal(err)
	}
	r := newRun(context.Background(), l, &Options{Nulls: nulls})
	s := &Subject{Layer: l, run: r}
	for b.Loop() {
		for _, m := range All {
			if m.Null != nil && m.Per == PerHead {
				if _, err := m.Null(s); err != nil {
					b.Fatal(m.Name, err)
				}
			}
		}
	}
}
