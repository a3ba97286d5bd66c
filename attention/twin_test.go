package attention

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
)

// The twins below are written by loops over [][]float64 and share no code with
// the package: they are the oracle.

func twinSees(m head.Mask, i, j int) bool {
	switch m.Kind {
	case head.MaskCausal:
		return j <= i
	case head.MaskWindow:
		return j <= i && i-j < m.Window
	}
	return true
}

func twinScores(p head.Pair) [][]float64 {
	s := make([][]float64, p.T())
	for i := range s {
		s[i] = make([]float64, p.T())
		for j := range s[i] {
			for c := range p.Dim() {
				s[i][j] += p.Q.At(i, c) * p.K.At(j, c)
			}
			s[i][j] *= p.Scale
		}
	}
	return s
}

// twinSoftmax returns A and, apart, the softmax over visible keys alone.
func twinSoftmax(p head.Pair) (a, alone [][]float64) {
	s := twinScores(p)
	for i := range s {
		top := math.Inf(-1)
		for j := range s[i] {
			if p.Softcap > 0 {
				s[i][j] = p.Softcap * math.Tanh(s[i][j]/p.Softcap)
			}
			s[i][j] -= p.ALiBi * float64(i-j)
			if twinSees(p.Mask, i, j) {
				top = math.Max(top, s[i][j])
			}
		}
		shift := top
		if p.Sink != nil {
			shift = math.Max(shift, *p.Sink)
		}
		visible, all := 0.0, 0.0
		for j := range s[i] {
			if twinSees(p.Mask, i, j) {
				visible += math.Exp(s[i][j] - top)
				all += math.Exp(s[i][j] - shift)
			}
		}
		if p.Sink != nil {
			all += math.Exp(*p.Sink - shift)
		}
		row, own := make([]float64, len(s)), make([]float64, len(s))
		for j := range s[i] {
			if twinSees(p.Mask, i, j) {
				row[j] = math.Exp(s[i][j]-shift) / all
				own[j] = math.Exp(s[i][j]-top) / visible
			}
		}
		a, alone = append(a, row), append(alone, own)
	}
	return a, alone
}

func dense(m [][]float64) linalg.Matrix {
	d := linalg.New(len(m), len(m))
	for i, row := range m {
		copy(d.Row(i), row)
	}
	return d
}

func gaussian(rng *rand.Rand, rows, cols int) linalg.Matrix {
	m := linalg.New(rows, cols)
	for i := range m.Data {
		m.Data[i] = rng.NormFloat64()
	}
	return m
}

func gaussianPair(seed uint64, T, d int, mask head.Mask) head.Pair {
	rng := rand.New(rand.NewPCG(seed, 1))
	return head.Pair{Q: gaussian(rng, T, d), K: gaussian(rng, T, d), Scale: 1 / math.Sqrt(float64(d)), Mask: mask}
}

// pairCase is one head that the tests run over.
type pairCase struct {
	name string
	p    head.Pair
}

func ptr(x float64) *float64 { return &x }

// pairCases covers masks, sinks, softcap, sizes around the block edge, scales.
func pairCases() []pairCase {
	window := func(n int) head.Mask { return head.Mask{Kind: head.MaskWindow, Window: n} }
	cases := []pairCase{
		{"causal", gaussianPair(1, 130, 16, head.Causal)},
		{"none", gaussianPair(2, 70, 8, head.Mask{})},
		{"window", gaussianPair(3, 200, 8, window(17))},
		{"window 1", gaussianPair(4, 65, 8, window(1))},
		{"window beyond T", gaussianPair(5, 20, 8, window(50))},
		{"one token", gaussianPair(6, 1, 8, head.Causal)},
		{"two tokens", gaussianPair(7, 2, 8, head.Causal)},
		{"block edge", gaussianPair(8, 64, 4, head.Causal)},
		{"past the edge", gaussianPair(9, 65, 4, head.Causal)},
	}
	add := func(name string, change func(*head.Pair)) {
		p := gaussianPair(uint64(len(cases)+10), 96, 16, head.Causal)
		change(&p)
		cases = append(cases, pairCase{name, p})
	}
	scale := func(m linalg.Matrix, f float64) {
		for i := range m.Data {
			m.Data[i] *= f
		}
	}
	add("learned sink", func(p *head.Pair) { p.Sink = ptr(2.5) })
	add("huge sink", func(p *head.Pair) { p.Sink = ptr(900) })
	add("vanishing sink", func(p *head.Pair) { p.Sink = ptr(-900) })
	add("softcap", func(p *head.Pair) { p.Softcap = 1.5 })
	add("softcap and sink", func(p *head.Pair) { p.Softcap, p.Sink = 2, ptr(0) })
	add("alibi", func(p *head.Pair) { p.ALiBi = 0.25 })
	add("alibi, window, softcap and sink", func(p *head.Pair) {
		p.ALiBi, p.Softcap, p.Sink, p.Mask = 0.0625, 2, ptr(0), window(80)
	})
	add("steep alibi", func(p *head.Pair) { p.ALiBi = 30 })
	add("alibi without a mask", func(p *head.Pair) { p.ALiBi, p.Mask = 0.125, head.Mask{} })
	add("sharp", func(p *head.Pair) { p.Scale = 10 })
	add("tiny", func(p *head.Pair) { scale(p.Q, 1e-60); scale(p.K, 1e-60) })
	add("huge", func(p *head.Pair) { scale(p.Q, 1e60); scale(p.K, 1e60) })
	add("balanced extremes", func(p *head.Pair) { scale(p.Q, 1e60); scale(p.K, 1e-60) })
	add("one key x 1e8", func(p *head.Pair) { scale(p.K.RowSlice(5, 6), 1e8) })
	add("equal keys", func(p *head.Pair) {
		for j := range p.K.Rows {
			copy(p.K.Row(j), p.K.Row(0))
		}
	})
	add("zero queries", func(p *head.Pair) { scale(p.Q, 0) })
	add("negative scale", func(p *head.Pair) { p.Scale = -1 })
	return cases
}

func TestTwinKnowsSoftmax(t *testing.T) {
	// Keys 0 and ln 3: row 1 is (1/4, 3/4) and with a sink logit of 0, (1/5, 3/5).
	q, k := linalg.New(2, 1), linalg.New(2, 1)
	q.Data[0], q.Data[1], k.Data[1] = 1, 1, math.Log(3)
	p := head.Pair{Q: q, K: k, Scale: 1, Mask: head.Causal}
	a, _ := twinSoftmax(p)
	p.Sink = ptr(0)
	b, alone := twinSoftmax(p)
	for _, c := range [][2]float64{{a[0][0], 1}, {a[1][0], .25}, {a[1][1], .75}, {b[1][0], .2}, {b[1][1], .6}, {b[0][0], .5}, {alone[1][1], .75}} {
		if math.Abs(c[0]-c[1]) > 1e-15 {
			t.Errorf("got %v, want %v", c[0], c[1])
		}
	}
}
