package linalg

import (
	"math"
	"sync"

	"github.com/eigenhead/eigenhead/internal/kernel"
	"github.com/eigenhead/eigenhead/internal/par"
)

// Tall matrices are factored through their Gram matrix, which is all products:
//
//	G = aᵀa = r₁ᵀr₁,  q₁ = a·r₁⁻¹,  then the same again on q₁
//
// The second round repairs the first as long as q₁ came out nearly orthonormal,
// which is measured, not guessed from pivots: ‖q₁ᵀq₁ − I‖_F ≤ ¼ bounds its
// condition number by 1.3. Where the first round fails (condition beyond about
// 1e7), G + s·I brings q₁ within reach of two more rounds; where that fails too
// (rank deficient to rounding), Householder reflections take over. Columns are
// first scaled by powers of two, so that differing column norms cost nothing.
//
// A long matrix goes by chunks of rows, each transposed to have long vectors and
// then taken as far as the triangles known so far bring it: only a is read, and
// nothing of its size but q is written.
// Source: Fukaya et al., arXiv 1809.11085 (the shift); Yamamoto et al. 2015
// (the error bounds). Scaling, chunks and the measured test are ours.

// choleskyQR returns q (if wanted) and r of a tall, finite matrix of any scale, or
// false if it is too near to rank deficiency.
func choleskyQR(c *chunked, wantQ bool) (q, r Matrix, ok bool) {
	defer c.release()
	if r, ok = c.factor(); !ok {
		return Matrix{}, Matrix{}, false
	}
	if wantQ {
		q = c.q()
	}
	return q, r, true
}

// factor returns r and leaves the triangles that take the matrix to q.
func (c *chunked) factor() (r Matrix, ok bool) {
	g, ok := c.scaledGram()
	if !ok {
		return Matrix{}, false
	}
	if r, ok = c.twice(g.Clone()); !ok {
		if r, ok = c.thrice(g); !ok {
			return Matrix{}, false
		}
	}
	for j, e := range c.exponents {
		half := math.Ldexp(1, e/2) // 2^e itself may overflow
		rest := math.Ldexp(1, e-e/2)
		for i := range j + 1 {
			r.Set(i, j, r.At(i, j)*half*rest)
		}
	}
	return r, true
}

// chunkRows is how many rows of a go together: with 64 columns their transpose fits
// into the second-level cache. Sums over chunks are taken within at most maxStrips
// strips and then in order, whatever the number of cores.
const (
	chunkRows = 1024
	maxStrips = 16
)

// chunked is a matrix on its way through the rounds.
type chunked struct {
	a         Matrix
	released  bool
	across    bool     // a holds its transpose
	exponents []int    // of the powers of two taken out of the columns; nil: none yet
	triangles []Matrix // applied one after the other: a·t₁⁻¹·t₂⁻¹ …
	only      *chunk   // kept between rounds where there is no other
}

// chunk is the transpose of some rows, as far as it has been taken.
type chunk struct {
	w       Matrix
	space   []float64
	scaled  bool
	applied int // triangles
}

var chunks sync.Pool

func (c *chunked) rows() int {
	if c.across {
		return c.a.Cols
	}
	return c.a.Rows
}

func (c *chunked) cols() int { return c.a.Rows + c.a.Cols - c.rows() }

func (c *chunked) count() int { return (c.rows() + chunkRows - 1) / chunkRows }

func (c *chunked) release() {
	c.released = true
	if c.only != nil {
		chunks.Put(c.only)
		c.only = nil
	}
}

// at calls f with chunk i, taken as far as is known.
func (c *chunked) at(i int, f func(w Matrix)) {
	k := c.only
	if k == nil {
		if k, _ = chunks.Get().(*chunk); k == nil {
			k = new(chunk)
		}
		c.load(k, i)
		if c.count() == 1 {
			c.only = k
		} else {
			defer chunks.Put(k)
		}
	}
	if c.exponents != nil && !k.scaled {
		for j, e := range c.exponents {
			scale(k.w.Row(j), -e)
		}
		k.scaled = true
	}
	for ; k.applied < len(c.triangles); k.applied++ {
		solve(c.triangles[k.applied], k.w)
	}
	f(k.w)
}

// load transposes the rows of chunk i, its own rows in lines of the cache of their own.
func (c *chunked) load(k *chunk, i int) {
	from, to := i*chunkRows, min((i+1)*chunkRows, c.rows())
	rows := to - from
	stride := (rows + 7) &^ 7
	if stride%64 == 0 {
		stride += 8
	}
	if len(k.space) < c.cols()*stride {
		k.space = make([]float64, c.cols()*stride)
	}
	k.w = Matrix{Rows: c.cols(), Cols: rows, Stride: stride, Data: k.space[:(c.cols()-1)*stride+rows]}
	k.scaled, k.applied = false, 0
	if !c.across {
		a := c.a.RowSlice(from, to)
		kernel.Transpose64(k.w.Data, stride, a.Data, a.Stride, rows, c.cols())
		return
	}
	for j := range c.cols() {
		copy(k.w.Row(j), c.a.Row(j)[from:to])
	}
}

// each calls f with every chunk of every strip, strips on all cores.
func (c *chunked) each(f func(strip, i int)) (strips int) {
	strips = min(c.count(), maxStrips)
	par.Do(strips, func(s int) {
		for i := s * c.count() / strips; i < (s+1)*c.count()/strips; i++ {
			f(s, i)
		}
	})
	return strips
}

// gram returns the Gram matrix of the columns as they are now.
func (c *chunked) gram() Matrix {
	n := c.cols()
	sums := make([]Matrix, maxStrips)
	strips := c.each(func(s, i int) {
		c.at(i, func(w Matrix) {
			g := New(n, n)
			kernel.GramRows64(n, w.Cols, w.Data, w.Stride, g.Data, g.Stride)
			if sums[s].Rows == 0 {
				sums[s] = g
			} else {
				Axpy(1, g.Data, sums[s].Data)
			}
		})
	})
	for _, g := range sums[1:strips] {
		Axpy(1, g.Data, sums[0].Data)
	}
	return sums[0]
}

// scaledGram scales columns to norm [½, 1) by powers of two and returns their Gram
// matrix; false if a column is zero. Norms are read off the Gram matrix, where
// scaling is exact as well, unless squares leave the safe range.
func (c *chunked) scaledGram() (g Matrix, ok bool) {
	g = c.gram()
	n := c.cols()
	norms := make([]float64, n)
	safe := true
	for j := range norms {
		norms[j] = math.Sqrt(g.At(j, j))
		safe = safe && norms[j] > 0x1p-300 && norms[j] < 0x1p300
	}
	if !safe {
		norms = c.norms()
	}
	exponents, factors := make([]int, n), make([]float64, n)
	for j, v := range norms {
		if v == 0 {
			return Matrix{}, false
		}
		_, exponents[j] = math.Frexp(v)
		factors[j] = math.Ldexp(1, -exponents[j])
	}
	c.exponents = exponents
	if !safe {
		return c.gram(), true
	}
	for i := range n {
		for j, f := range factors {
			g.Set(i, j, g.At(i, j)*factors[i]*f)
		}
	}
	return g, true
}

// norms returns the norms of the columns, of any size.
func (c *chunked) norms() []float64 {
	parts := make([][]float64, c.count())
	c.each(func(_, i int) {
		c.at(i, func(w Matrix) {
			parts[i] = make([]float64, w.Rows)
			for j := range w.Rows {
				parts[i][j] = Norm2(w.Row(j))
			}
		})
	})
	for _, p := range parts[1:] {
		for j, v := range p {
			parts[0][j] = math.Hypot(parts[0][j], v)
		}
	}
	return parts[0]
}

// twice is CholeskyQR2 from the first Gram matrix, which it overwrites.
func (c *chunked) twice(g Matrix) (r Matrix, ok bool) {
	if !cholesky(g) {
		return Matrix{}, false
	}
	was := len(c.triangles)
	c.triangles = append(c.triangles, g)
	r2 := c.gram()
	if !(offIdentity(r2) <= 0.25) || !cholesky(r2) { // NaN counts as far off
		c.restart(was)
		return Matrix{}, false
	}
	c.triangles = append(c.triangles, r2)
	r = New(g.Rows, g.Rows)
	Mul(r, r2, g)
	return r, true
}

// thrice is the shifted CholeskyQR3 from the first Gram matrix.
func (c *chunked) thrice(g Matrix) (r Matrix, ok bool) {
	n, m := float64(c.cols()), float64(c.rows())
	var trace float64 // ≥ ‖a‖₂², the norm that the source scales the shift by
	for i := range g.Rows {
		trace += g.At(i, i)
	}
	shift := 11 * (m*n + n*(n+1)) * 0x1p-53 * trace
	for i := range g.Rows {
		g.Set(i, i, g.At(i, i)+shift)
	}
	if !cholesky(g) {
		return Matrix{}, false
	}
	c.triangles = append(c.triangles, g)
	r2, ok := c.twice(c.gram())
	if !ok {
		return Matrix{}, false
	}
	r = New(g.Rows, g.Rows)
	Mul(r, r2, g)
	return r, true
}

// restart forgets all but the first n triangles.
func (c *chunked) restart(n int) {
	c.triangles = c.triangles[:n]
	if c.only != nil {
		c.load(c.only, 0)
	}
}

// q returns what the triangles make of a.
func (c *chunked) q() Matrix {
	q := New(c.rows(), c.cols())
	c.each(func(_, i int) {
		c.at(i, func(w Matrix) {
			kernel.Transpose64(q.Data[i*chunkRows*q.Stride:], q.Stride, w.Data, w.Stride, w.Rows, w.Cols)
		})
	})
	return q
}

// cholesky replaces a symmetric g, of which the upper triangle counts, by its upper
// factor, zeros below; false if g is not positive definite to rounding. Row by row,
// each a sum of those above it: for a few dozen columns several times as fast as
// LAPACK's, which packs blocks for products.
func cholesky(g Matrix) bool {
	n := g.Rows
	minus := make([]float64, n) // column of the factor
	for j := range n {
		for i := range j {
			minus[i] = -g.At(i, j)
		}
		lo := j &^ 7 // whole vectors: what lies between lo and j is cleared below
		kernel.RowSum64(j, g.Data[lo:], g.Stride, minus[:j], 1, g.Row(j)[lo:])
		pivot := g.At(j, j)
		if !(pivot > 0) || math.IsInf(pivot, 1) {
			return false
		}
		clear(g.Row(j)[:j])
		kernel.Times64(1/math.Sqrt(pivot), g.Row(j)[j:])
	}
	return true
}

// offIdentity returns ‖g − I‖_F.
func offIdentity(g Matrix) float64 {
	var s float64
	for i := range g.Rows {
		for j, v := range g.Row(i) {
			if i == j {
				v--
			}
			s += v * v
		}
	}
	return math.Sqrt(s)
}
