package collapse

import (
	"context"
	"math"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
	"github.com/eigenhead/eigenhead/spectrum"
)

// sim is one network at initialization while it is being drawn.
type sim struct {
	Config
	T, D int
	thin bool // tokens are coordinates in a basis of fewer than D vectors: see thin.go
	rng  *stream
}

// project returns x·W for a fresh W of independent N(0, sd²) entries, [d, cols].
func (s *sim) project(x tokens, cols int, sd float64) tokens {
	w := s.rng.normals(x.R.M.Cols, cols, sd)
	if s.Fix == SigmaReparam {
		w = unitNorm(w)
	}
	return x.mul(w)
}

// unitNorm returns w/σ₁(w).
func unitNorm(w linalg.Matrix) linalg.Matrix {
	f := 1 / largest(w)
	for i := range w.Data {
		w.Data[i] *= f
	}
	return w
}

// largest returns σ₁.
func largest(m linalg.Matrix) float64 {
	if m.Rows <= 512 {
		s, err := linalg.SingularValues(m)
		if err == nil {
			return s[0]
		}
	}
	top, err := spectrum.Top(context.Background(), dense{m}, spectrum.TopOptions{K: 1, Tol: 1e-8})
	if err != nil {
		return math.NaN()
	}
	return top.Sigma[0]
}

// attention draws the attention matrices of one layer, one for each head; layer
// counts from 1. For KeyQuery they depend on the tokens x.
func (s *sim) attention(x tokens, layer int) []*mixing {
	heads := make([]*mixing, s.Heads)
	for h := range heads {
		heads[h] = s.fixed(s.one(x), x, layer)
	}
	return heads
}

// headDim is the width of queries and keys.
func (s *sim) headDim() int {
	d := s.D / s.Heads
	if s.Fix == Differential { // two pairs of queries and keys share a head
		d /= 2
	}
	return max(d, 1)
}

// one draws one attention matrix before any fix of the matrix itself.
func (s *sim) one(x tokens) *mixing {
	causalMask := s.Mask.Kind == head.MaskCausal
	sigma := s.Sigma * math.Pow(float64(s.T), -s.LogitVar/2)
	switch s.Attention {
	case Identity:
		return nil
	case Markov:
		e := s.rng.excesses(s.T, s.T, s.Law, sigma)
		sums := logSums(e, causalMask)
		if causalMask {
			return s.sunk(causal(e, s.Fix == CenterCausal), sums, nil)
		}
		return s.sunk(fromExcess(e), sums, nil)
	case Gaussian:
		b := normalized(s.rng.normals(s.T, s.T, sigma), 0)
		return s.fromLogits(scaled{M: linalg.New(1, s.T)}, b, nil)
	}
	width := s.headDim()
	sd := map[Init]float64{Normal: 1, LeCun: 1 / math.Sqrt(float64(s.D)), Xavier: math.Sqrt(2 / float64(s.D+s.D/s.Heads))}[s.Init]
	q, k := s.queriesAndKeys(x, width, sd)
	scale := 1 / math.Sqrt(float64(width))
	a, b := q.C.ofT(k.R).times(scale), q.R.ofT(k.R).times(scale)
	var shift []float64 // what a whole row of logits shares: only a sink sees it
	if s.Fix == Softmax1 {
		shift = rowShifts(q, k, scale)
	}
	return s.fromLogits(a, b, shift)
}

// queriesAndKeys returns x·W_Q and x·W_K, or in thin coordinates two matrices whose
// products with each other have the same law.
func (s *sim) queriesAndKeys(x tokens, width int, sd float64) (q, k tokens) {
	if w := x.R.M.Cols; s.thin && w < width {
		return x.mul(s.rng.triangle(w, width, sd)), x.mul(s.rng.normals(w, w, sd))
	}
	return s.project(x, width, sd), s.project(x, width, sd)
}

// ofT returns s·tᵀ.
func (s scaled) ofT(t scaled) scaled {
	out := linalg.New(s.M.Rows, t.M.Rows)
	linalg.MulTB(out, s.M, t.M)
	return normalized(out, s.E+t.E)
}

// rowShifts returns scale·q_i·k̄.
func rowShifts(q, k tokens, scale float64) []float64 {
	common, own := q.C.ofT(k.C), q.R.ofT(k.C)
	shift := make([]float64, q.R.M.Rows)
	for i := range shift {
		shift[i] = scale * (math.Ldexp(common.M.Data[0], common.E) + math.Ldexp(own.M.Data[i], own.E))
	}
	return shift
}

// fromLogits applies temperature, mask, softmax and sink to logits a_j + b_ij + shift_i.
func (s *sim) fromLogits(a, b scaled, shift []float64) *mixing {
	if s.Fix == Temperature {
		a, b = a.times(1/s.Tau), b.times(1/s.Tau)
	}
	if s.Mask.Kind == head.MaskCausal {
		e, sums := causalExcess(a, b)
		m := causal(e, s.Fix == CenterCausal)
		return s.sunk(m, sums, shift)
	}
	m := softmax(a, b)
	if s.Fix != Softmax1 {
		return m
	}
	x := logits(a, b)
	tops := rowTops(a, b)
	sums := make([]float64, x.Rows)
	for i := range sums {
		for _, v := range x.Row(i) {
			sums[i] += math.Exp(v)
		}
		sums[i] = math.Log(sums[i]) + tops[i]
	}
	return s.sunk(m, sums, shift)
}

// sunk adds the sink where the fix is one.
func (s *sim) sunk(m *mixing, logSums, shift []float64) *mixing {
	if s.Fix != Softmax1 {
		return m
	}
	for i := range shift {
		logSums[i] += shift[i]
	}
	return withSink(m, logSums, s.Sink)
}

// rowTops returns the largest logit of each row.
func rowTops(a, b scaled) []float64 {
	tops := make([]float64, b.M.Rows)
	fa, fb := math.Ldexp(1, a.E), math.Ldexp(1, b.E)
	for i := range tops {
		tops[i] = math.Inf(-1)
		for j, v := range b.M.Row(i) {
			tops[i] = max(tops[i], fa*a.M.Data[j]+fb*v)
		}
	}
	return tops
}

// causalExcess returns e^x − 1 of the visible logits, and ln Σ e^x of each row. A row
// of large logits is shifted so that its largest weight is 1.
func causalExcess(a, b scaled) (e linalg.Matrix, sums []float64) {
	e = linalg.New(b.M.Rows, b.M.Cols)
	sums = make([]float64, b.M.Rows)
	fa, fb := math.Ldexp(1, a.E), math.Ldexp(1, b.E)
	for i := range e.Rows {
		row, from := e.Row(i)[:i+1], b.M.Row(i)
		top, size := math.Inf(-1), 0.0
		for j := range row {
			row[j] = fa*a.M.Data[j] + fb*from[j]
			top, size = max(top, row[j]), max(size, math.Abs(row[j]))
		}
		if size <= 1 {
			top = 0
		}
		total := 0.0
		for j := range row {
			row[j] = math.Expm1(row[j] - top)
			total += 1 + row[j]
		}
		sums[i] = math.Log(total) + top
	}
	return e, sums
}

// logSums returns ln Σ_j w_ij of the visible weights w = 1 + e.
func logSums(e linalg.Matrix, causalMask bool) []float64 {
	sums := make([]float64, e.Rows)
	for i := range sums {
		row := e.Row(i)
		if causalMask {
			row = row[:i+1]
		}
		sums[i] = math.Log(float64(len(row)) + sum(row))
	}
	return sums
}

// withSink gives the logit S a share of every row: rows of A then sum to
// m_i = 1/(1 + e^(S − ln Σ e^x)).
func withSink(a *mixing, logSums []float64, sink float64) *mixing {
	mass := make([]float64, len(logSums))
	for i, l := range logSums {
		mass[i] = 1 / (1 + math.Exp(sink-l))
	}
	mean := sum(mass) / float64(len(mass))
	out := &mixing{Const: a.Const * mean, Dev: make([]float64, len(mass)), Q: a.Q.times(mean)}
	d := a.D.clone()
	extra := linalg.New(d.M.Rows, d.M.Cols)
	for i, m := range mass {
		out.Dev[i] = a.Const * (m - mean)
		row := d.M.Row(i)
		for j := range row {
			row[j] *= m
		}
		linalg.Axpy(m-mean, a.Q.M.Data, extra.Row(i))
	}
	out.D = normalized(d.M, d.E).plus(normalized(extra, a.Q.E))
	return out
}
