package collapse

import (
	"math"

	"github.com/eigenhead/eigenhead/linalg"
)

// mixing is an attention matrix in parts that keep their relative accuracy when the
// matrix comes close to 11ᵀ/T, or to zero:
//
//	A = (Const·1 + Dev)·1ᵀ/T + 1·Qᵀ + D,   D·1 = 0 or acting on centered tokens only
//
// so that on tokens X = 1·cᵀ + R with 1ᵀR = 0
//
//	A·X = 1·(Const·c + RᵀQ)ᵀ + Dev·cᵀ + D·R
//
// Removing 11ᵀ/T sets Const to zero and cancels nothing.
type mixing struct {
	Const float64   // row sum
	Dev   []float64 // row sums minus Const; nil: none
	Q     scaled    // [1, T] common row minus 1/T
	D     scaled    // [T, T]
}

// apply returns A·X. Cost: one product of D.
func (a *mixing) apply(x tokens) tokens {
	common := x.C.times(a.Const).plus(a.Q.of(x.R))
	rest := a.D.of(x.R)
	if a.Dev != nil {
		outer := linalg.New(len(a.Dev), x.C.M.Cols)
		for i, d := range a.Dev {
			linalg.Axpy(d, x.C.M.Data[:x.C.M.Cols], outer.Row(i))
		}
		rest = rest.plus(normalized(outer, x.C.E))
	}
	return tokens{C: common, R: rest}.centered()
}

// of returns s·t.
func (s scaled) of(t scaled) scaled {
	out := linalg.New(s.M.Rows, t.M.Cols)
	linalg.Mul(out, s.M, t.M)
	return normalized(out, s.E+t.E)
}

// times returns f·A.
func (a *mixing) times(f float64) *mixing {
	b := &mixing{Const: f * a.Const, Q: a.Q.times(f), D: a.D.times(f)}
	for _, d := range a.Dev {
		b.Dev = append(b.Dev, f*d)
	}
	return b
}

// dense returns A as a plain matrix.
func (a *mixing) dense() linalg.Matrix {
	b := *a
	b.D = a.D.clone()
	return b.takeDense()
}

// linearBelow is the size of logits, as a power of two, below which the softmax is
// its linear limit: the relative error of e^x − 1 ≈ x is then below 2⁻⁶⁰.
const linearBelow = -60

// expBelow is the size of logits up to which e^x − 1 is the better start; above it
// a row is far from uniform and nothing is lost by forming the softmax itself.
const expBelow = 1

// softmax returns the mixing of logits a_j + b_ij over all keys. With p = softmax(a),
// e = e^b − 1 and ē_i = Σ_j p_j·e_ij
//
//	A = 1·pᵀ + D,   D_ij = p_j(e_ij − ē_i)/(1 + ē_i)
//
// which cancels nothing when b is small, and leaves to the common row what all
// queries share, however large. Shapes: a [1, T], b [T, T].
func softmax(a, b scaled) *mixing {
	n := b.M.Cols
	p, q := commonRow(a)
	size := maxExponent(b.M) + b.E
	switch {
	case size > expBelow:
		return plainSoftmax(a, b)
	case size < linearBelow:
		d := b.M.Clone()
		for i := range d.Rows {
			row := d.Row(i)
			mean := linalg.Dot(p, row)
			for j := range row {
				row[j] = p[j] * (row[j] - mean)
			}
		}
		return &mixing{Const: 1, Q: q, D: normalized(d, b.E)}
	}
	e := b.M.Clone()
	scaleBy(e, b.E)
	for i := range e.Rows {
		row := e.Row(i)
		for j, x := range row {
			row[j] = math.Expm1(x)
		}
		mean := linalg.Dot(p, row)
		for j := range n {
			row[j] = p[j] * (row[j] - mean) / (1 + mean)
		}
	}
	return &mixing{Const: 1, Q: q, D: normalized(e, 0)}
}

// commonRow returns p = softmax(a) and p − 1/T, the latter without cancellation.
func commonRow(a scaled) (p []float64, q scaled) {
	n := a.M.Cols
	p = make([]float64, n)
	diff := a.M.Clone()
	size := maxExponent(a.M) + a.E
	switch {
	case size < linearBelow:
		mean := sum(a.M.Data) / float64(n)
		for j, x := range a.M.Data {
			p[j] = 1 / float64(n)
			diff.Data[j] = (x - mean) / float64(n)
		}
		return p, normalized(diff, a.E)
	case size > expBelow:
		scaleBy(diff, a.E)
		softmaxRow(diff.Data)
		copy(p, diff.Data)
		for j := range diff.Data {
			diff.Data[j] -= 1 / float64(n)
		}
	default:
		scaleBy(diff, a.E)
		for j, x := range diff.Data {
			diff.Data[j] = math.Expm1(x)
		}
		mean := sum(diff.Data) / float64(n)
		for j, e := range diff.Data {
			diff.Data[j] = (e - mean) / (float64(n) * (1 + mean))
			p[j] = (1 + e) / (float64(n) * (1 + mean))
		}
	}
	return p, normalized(diff, 0)
}

// plainSoftmax forms A itself: D = A − 11ᵀ/T.
func plainSoftmax(a, b scaled) *mixing {
	x := logits(a, b)
	for i := range x.Rows {
		row := x.Row(i)
		softmaxRow(row)
		for j := range row {
			row[j] -= 1 / float64(len(row))
		}
	}
	return &mixing{Const: 1, Q: scaled{M: linalg.New(1, x.Cols)}, D: normalized(x, 0)}
}

// logits returns a_j + b_ij minus the largest of the row, as plain numbers.
func logits(a, b scaled) linalg.Matrix {
	e := max(a.E, b.E)
	x := b.M.Clone()
	fa, fb := math.Ldexp(1, a.E-e), math.Ldexp(1, b.E-e)
	for i := range x.Rows {
		row := x.Row(i)
		top := math.Inf(-1)
		for j := range row {
			row[j] = fa*a.M.Data[j] + fb*row[j]
			top = max(top, row[j])
		}
		for j := range row {
			row[j] = math.Ldexp(row[j]-top, e)
		}
	}
	return x
}

// softmaxRow replaces logits by their softmax.
func softmaxRow(row []float64) {
	top := math.Inf(-1)
	for _, x := range row {
		top = max(top, x)
	}
	linalg.Exp(row, row, top)
	total := sum(row)
	for j := range row {
		row[j] /= total
	}
}

// fromExcess returns the Markov matrix of weights w = 1 + e, in place of e.
func fromExcess(e linalg.Matrix) *mixing {
	n := float64(e.Cols)
	eachRow(e.Rows, e.Cols, func(i int) {
		row := e.Row(i)
		mean := sum(row) / n
		for j := range row {
			row[j] = (row[j] - mean) / (n * (1 + mean))
		}
	})
	return &mixing{Const: 1, Q: scaled{M: linalg.New(1, e.Cols)}, D: normalized(e, 0)}
}

// causal returns the mixing of weights e^x or 1 + e over the visible keys j ≤ i.
// Here D is A − C + (C − 11ᵀ/T), C_ij = 1[j ≤ i]/i, or A − C alone: rows of A are not
// near 1/T, so only the second needs care, and gets it.
func causal(excess linalg.Matrix, centered bool) *mixing {
	n := excess.Cols
	d := linalg.New(n, n)
	for i := range n {
		seen := excess.Row(i)[:i+1]
		mean := sum(seen) / float64(i+1)
		row := d.Row(i)
		for j, e := range seen {
			row[j] = (e - mean) / (float64(i+1) * (1 + mean))
		}
		if centered {
			continue
		}
		for j := range row {
			if j <= i {
				row[j] += 1 / float64(i+1)
			}
			row[j] -= 1 / float64(n)
		}
	}
	a := &mixing{Const: 1, Q: scaled{M: linalg.New(1, n)}, D: normalized(d, 0)}
	if centered {
		a.Const = 0
	}
	return a
}

func sum(x []float64) float64 {
	s := 0.0
	for _, v := range x {
		s += v
	}
	return s
}
