package collapse

import (
	"math"
	"math/rand/v2"

	"github.com/eigenhead/eigenhead/linalg"
)

// Thin coordinates. Where d is well above T, T tokens span a small part of the channels
// and Gaussian weights do not care which: all that stable ranks depend on (inner
// products, and means over channels for LayerNorm) has the same law when tokens are
// coordinates in an orthonormal basis of that part whose first vector is 1/√d. Then
//
//	X·W = L·(BᵀW),   BᵀW = [g | N₁ | G₂],   G₂ = Λ·Q
//
// with X = L·Bᵀ and everything independent N(0, 1): the part of G₂ outside of B is only
// known by its triangle Λ, with χ variables on the diagonal (Bartlett). d·d draws become
// about T², and no product is d wide. A test holds the law against the plain form.

// canBeThin reports whether thin coordinates are possible and worth it.
func (s *sim) canBeThin() bool {
	return 2*s.D >= 3*(s.T+2) && s.Heads == 1 && !s.MLP && s.Fix != SigmaReparam && s.Fix != Differential
}

// triangle returns Λ of a Gaussian [rows, cols] = Λ·Q, cols ≥ rows: independent N(0, sd²)
// below the diagonal, sd·χ of cols − i degrees on it.
func (s *stream) triangle(rows, cols int, sd float64) linalg.Matrix {
	i := -1
	return s.serial(rows, rows, func(row []float64, g *rand.Rand) {
		i++
		for j := range i {
			row[j] = sd * g.NormFloat64()
		}
		row[i] = sd * math.Sqrt(2*gammaVariate(g, float64(cols-i)/2))
	})
}

// serial is fill with one generator, for rows that depend on their number.
func (s *stream) serial(rows, cols int, f func(row []float64, g *rand.Rand)) linalg.Matrix {
	m := linalg.New(rows, cols)
	g := rand.New(rand.NewPCG(s.key, s.next<<24))
	s.next++
	for i := range rows {
		f(m.Row(i), g)
	}
	return m
}

// thinInput draws the tokens of layer 1 in thin coordinates.
func (s *sim) thinInput() tokens {
	rows := s.T
	if s.Input == Correlated {
		rows++ // what all tokens share
	}
	if s.Input == Isometric {
		return newTokens(s.thinIsometry(), 0)
	}
	sd := 1 / math.Sqrt(float64(s.D))
	x := beside(s.rng.normals(rows, 1, sd), s.rng.triangle(rows, s.D-1, sd))
	if s.Input == GaussianIn {
		return newTokens(x, 0)
	}
	own := newTokens(x.RowSlice(0, s.T).Clone(), 0).times(math.Sqrt(1 - s.Rho))
	own.C = own.C.plus(scaled{M: x.RowSlice(s.T, s.T+1).Clone()}.times(math.Sqrt(s.Rho)))
	return own
}

// thinIsometry has X·Xᵀ = I and X·u = p, the first T coordinates of a random unit
// vector of d: X = [p | I − (1 − √(1 − ‖p‖²))·p̂p̂ᵀ].
func (s *sim) thinIsometry() linalg.Matrix {
	p := s.rng.serial(1, s.T+1, func(row []float64, g *rand.Rand) {
		for j := range s.T {
			row[j] = g.NormFloat64()
		}
		row[s.T] = math.Sqrt(2 * gammaVariate(g, float64(s.D-s.T)/2))
	})
	total := linalg.Norm2(p.Data)
	own := p.Data[:s.T]
	length := linalg.Norm2(own)
	out := linalg.New(s.T, s.T+1)
	bend := 1 - math.Sqrt(max(0, 1-length*length/(total*total)))
	for i := range s.T {
		row := out.Row(i)
		row[0] = own[i] / total
		row[1+i] = 1
		linalg.Axpy(-bend*own[i]/(length*length), own, row[1:])
	}
	return out
}

// thinValues returns in·W_V in thin coordinates. With a skip the result must share the
// basis of in, which keeps its coordinates and gets new ones; without, it has its own.
func (s *sim) thinValues(in tokens, sd float64) tokens {
	w := in.R.M.Cols
	if s.Skip == NoSkip {
		return in.mul(beside(s.rng.normals(w, 1, sd), s.outside(w, s.D-1, sd)))
	}
	return in.mul(beside(s.rng.normals(w, w, sd), s.outside(w, s.D-w, sd)))
}

// outside returns a Gaussian [w, cols] up to a rotation of its columns, thin where it
// can be.
func (s *sim) outside(w, cols int, sd float64) linalg.Matrix {
	if cols <= w {
		return s.rng.normals(w, cols, sd)
	}
	return s.rng.triangle(w, cols, sd)
}

// beside joins columns.
func beside(a, b linalg.Matrix) linalg.Matrix {
	out := linalg.New(a.Rows, a.Cols+b.Cols)
	for i := range out.Rows {
		copy(out.Row(i), a.Row(i))
		copy(out.Row(i)[a.Cols:], b.Row(i))
	}
	return out
}

// widened adds zero coordinates.
func (t tokens) widened(cols int) tokens {
	missing := cols - t.R.M.Cols
	if missing == 0 {
		return t
	}
	return tokens{C: scaled{beside(t.C.M, linalg.New(1, missing)), t.C.E},
		R: scaled{beside(t.R.M, linalg.New(t.R.M.Rows, missing)), t.R.E}}
}

// compressed turns the basis, the first vector aside, so that T others suffice, where
// that leaves out a third of the coordinates.
func (t tokens) compressed() tokens {
	n, w := t.R.M.Rows, t.R.M.Cols
	if 2*w < 3*(n+2) {
		return t
	}
	// The rows of R sum to zero: one of them follows from the others, and without it the
	// decomposition has full rank.
	rows := linalg.New(n, w-1) // all rows of R but the last, then c
	for i := range n - 1 {
		copy(rows.Row(i), t.R.M.Row(i)[1:])
	}
	copy(rows.Row(n-1), t.C.M.Data[1:])
	l := linalg.R(rows.T()).T() // [n, n]
	rest := linalg.New(n, n+1)
	for i := range n - 1 {
		row := rest.Row(i)
		row[0] = t.R.M.Data[i*t.R.M.Stride]
		copy(row[1:], l.Row(i))
		linalg.Axpy(-1, row[1:], rest.Row(n - 1)[1:])
	}
	rest.Set(n-1, 0, t.R.M.At(n-1, 0))
	return tokens{C: scaled{beside(t.C.M.ColSlice(0, 1), l.RowSlice(n-1, n)), t.C.E}, R: scaled{rest, t.R.E}}
}

func dropFirst(m linalg.Matrix) {
	for i := range m.Rows {
		m.Row(i)[0] = 0
	}
}
