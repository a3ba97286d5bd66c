package specialize

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/eigenhead/eigenhead/internal/par"
	"github.com/eigenhead/eigenhead/linalg"
)

// Eval is one evaluation of the loss at a state.
type Eval struct {
	Loss  float64
	Error float64       // standard error of Loss over the replicates; 0 for quadrature
	K     linalg.Matrix // ∂E/∂K [H, F+H]
	B     []float64     // ∂E/∂b [H]; zeros where b does not act
	Noise linalg.Matrix // E Σ_l g_hl g_h'l [H, H], of the finite-step term; empty unless asked for
}

// want says what an evaluation is for.
type want int

const (
	lossOnly want = iota
	withGradient
	withNoise
)

// Loss returns E and its error without a gradient.
func (s *Samples) Loss(m Model, st State) *Eval { return s.evaluate(m, st, lossOnly) }

// Gradient returns E and its derivatives,
//
//	∂E/∂K_h = E[Σ_l g_hl x_l],  g_hl = ∂loss/∂χ_hl,  χ_hl = K_h·x_l
//
// exact for these samples. It panics where the state's columns or heads do not
// fit. Cost: about 6 ns of one core a sample, head and token.
func (s *Samples) Gradient(m Model, st State) *Eval { return s.evaluate(m, st, withGradient) }

// Noisy is Gradient with the covariance of the finite-step noise.
func (s *Samples) Noisy(m Model, st State) *Eval { return s.evaluate(m, st, withNoise) }

// partial is what one block adds.
type partial struct {
	loss        float64
	k, b, noise []float64
}

func (s *Samples) evaluate(m Model, st State, w want) *Eval {
	H, P := st.K.Rows, s.Columns
	if st.K.Cols != P || len(st.B) != H {
		panic(fmt.Sprintf("specialize: state [%d, %d] with %d biases, samples have %d columns", H, st.K.Cols, len(st.B), P))
	}
	if H == 0 { // every head pruned: w = 0
		return &Eval{Loss: 1, K: linalg.New(0, P)}
	}
	parts := make([]partial, len(s.blocks))
	par.Do((len(s.blocks)+taskBlocks-1)/taskBlocks, func(task int) {
		buf := takeBuffer(H, s.Tokens, w)
		defer buffers.Put(buf)
		for i := task * taskBlocks; i < min((task+1)*taskBlocks, len(s.blocks)); i++ {
			parts[i] = buf.block(m, st, &s.blocks[i], w)
		}
	})
	return s.reduce(parts, H, w)
}

// reduce adds the blocks in their order.
func (s *Samples) reduce(parts []partial, H int, w want) *Eval {
	e := &Eval{K: linalg.New(H, s.Columns), B: make([]float64, H)}
	groups := make([]float64, s.groups)
	if w == withNoise {
		e.Noise = linalg.New(H, H)
	}
	for i, p := range parts {
		groups[i/s.perGroup] += p.loss
		e.Loss += p.loss
		if w == lossOnly {
			continue
		}
		linalg.Axpy(1, p.k, e.K.Data)
		linalg.Axpy(1, p.b, e.B)
		if w == withNoise {
			linalg.Axpy(1, p.noise, e.Noise.Data)
		}
	}
	e.Error = spread(groups, e.Loss)
	return e
}

// spread returns the standard error of a mean over replicates that each hold
// their share of it.
func spread(groups []float64, total float64) float64 {
	n := float64(len(groups))
	if n < 2 {
		return 0
	}
	sum := 0.0
	for _, g := range groups {
		d := g*n - total
		sum += d * d
	}
	return math.Sqrt(sum / (n - 1) / n)
}

// buffer is the scratch of one task.
type buffer struct {
	heads, tokens int
	p             linalg.Matrix // [H, L·blockSize]: scores, then weights, then gradients
	inv           []float64     // [H·blockSize] or [blockSize]: denominators
	w             []float64     // [L·blockSize]
	inner         []float64     // [blockSize]
	corner        [linalg.Few * linalg.Few]float64
	unweighted    linalg.Matrix
}

var buffers sync.Pool

func takeBuffer(heads, tokens int, w want) *buffer {
	b, ok := buffers.Get().(*buffer)
	if !ok || b.heads != heads || b.tokens != tokens {
		b = &buffer{heads: heads, tokens: tokens, p: linalg.New(heads, tokens*blockSize), inv: make([]float64, heads*blockSize),
			w: make([]float64, tokens*blockSize), inner: make([]float64, blockSize)}
	}
	if w == withNoise && b.unweighted.Rows == 0 {
		b.unweighted = linalg.New(heads, tokens*blockSize)
	}
	return b
}

// safeScore bounds |χ + b| so that neither e^χ nor a sum of them overflows, nor
// e^χ over such a sum underflows to 0/0.
const safeScore = 300

// block evaluates blockSize samples.
func (f *buffer) block(m Model, st State, b *block, w want) partial {
	f.scores(st, b)
	if f.bound(m, st, b) > safeScore {
		return f.slow(m, st, b, w)
	}
	f.exponentials(m, st)
	f.weigh(m)
	loss := f.loss(b)
	if w == lossOnly {
		return partial{loss: loss}
	}
	f.gradients(m)
	return f.collect(m, b, loss, w)
}

// scores fills p with χ = K·x, four heads at a time. The products are so thin that
// packing them for a blocked product takes longer than they do.
func (f *buffer) scores(st State, b *block) {
	clear(f.p.Data)
	h := 0
	for ; h+linalg.Few <= f.heads; h += linalg.Few {
		linalg.AddMulFewT(f.p.RowSlice(h, h+linalg.Few), st.K.RowSlice(h, h+linalg.Few), b.x)
	}
	for ; h < f.heads; h++ {
		for p, k := range st.K.Row(h) {
			linalg.Axpy(k, b.x.Row(p), f.p.Row(h))
		}
	}
}

// bound returns a bound on |χ_hl + b_h| in the block.
func (f *buffer) bound(m Model, st State, b *block) float64 {
	worst := 0.0
	for h := range f.heads {
		sum := 0.0
		if m.Activation != Softmax {
			sum = math.Abs(st.B[h])
		}
		for p, k := range st.K.Row(h) {
			sum += math.Abs(k) * b.top[p]
		}
		worst = max(worst, sum)
	}
	return worst
}

// exponentials turns p into e^(χ+b) and fills the denominators.
func (f *buffer) exponentials(m Model, st State) {
	clear(f.inv)
	if m.Activation == Softmax1 {
		for h := range f.heads {
			copy(f.denominator(m, h), ones)
		}
	}
	for h := range f.heads {
		row, shift := f.p.Row(h), 0.0
		if m.Activation != Softmax {
			shift = -st.B[h]
		}
		linalg.Exp(row, row, shift)
		sum := f.denominator(m, h)
		for l := range f.tokens {
			linalg.Axpy(1, row[l*blockSize:(l+1)*blockSize], sum)
		}
	}
}

// denominator is where head h's sums go: Bayes-softmax has one for all heads.
func (f *buffer) denominator(m Model, h int) []float64 {
	if m.Activation == Bayes {
		h = 0
	}
	return f.inv[h*blockSize:][:blockSize]
}

// lane returns the block's numbers of one head and token.
func (f *buffer) lane(h, l int) []float64 { return f.p.Data[h*f.p.Stride+l*blockSize:][:blockSize] }

// weigh turns p into a·p and sums it over heads into w.
func (f *buffer) weigh(m Model) {
	a := m.scale(f.heads)
	n := f.heads
	if m.Activation == Bayes {
		n = 1
	}
	linalg.Over(a, f.inv[:n*blockSize])
	clear(f.w)
	for h := range f.heads {
		for l := range f.tokens {
			linalg.ScaleAdd(f.lane(h, l), f.denominator(m, h), f.u(l))
		}
	}
}

// loss turns w into u·weight = −2(e_0 − w)·weight and returns Σ weight·|e_0 − w|².
func (f *buffer) loss(b *block) float64 {
	first, sum := f.u(0), 0.0
	for i := range first {
		first[i]--
	}
	for l := range f.tokens {
		w := f.u(l)
		clear(f.inner)
		linalg.MulAdd(f.inner, w, b.weight)
		sum += linalg.Dot(f.inner, w)
		clear(w)
		linalg.Axpy(2, f.inner, w)
	}
	return sum
}

// gradients turns a·p into ∂loss/∂χ, each times its sample's weight.
func (f *buffer) gradients(m Model) {
	if m.Activation == Bayes {
		clear(f.inner)
		for h := range f.heads {
			f.addInner(h)
		}
		for h := range f.heads {
			f.gradient(h)
		}
		return
	}
	over := 1 / m.scale(f.heads) // f.p holds a·p, the inner sum wants p
	for h := range f.heads {
		clear(f.inner)
		f.addInner(h)
		if over != 1 {
			linalg.Axpy(over-1, f.inner, f.inner)
		}
		f.gradient(h)
	}
}

// addInner adds Σ_l p·u of head h to inner.
func (f *buffer) addInner(h int) {
	for l := range f.tokens {
		linalg.MulAdd(f.inner, f.lane(h, l), f.u(l))
	}
}

// gradient turns head h's p into p·(u − inner).
func (f *buffer) gradient(h int) {
	for l := range f.tokens {
		linalg.MulDiff(f.lane(h, l), f.u(l), f.inner)
	}
}

// u returns the block's numbers of one token over all heads.
func (f *buffer) u(l int) []float64 { return f.w[l*blockSize:][:blockSize] }

// collect reduces the block's gradients over samples and tokens.
func (f *buffer) collect(m Model, b *block, loss float64, w want) partial {
	H, P := f.heads, b.x.Rows
	out := partial{loss: loss, k: make([]float64, H*P), b: make([]float64, H)}
	f.factorGradient(linalg.Matrix{Rows: H, Cols: P, Stride: P, Data: out.k}, b.x)
	if m.Activation != Softmax {
		for h := range H {
			for l := range f.tokens {
				out.b[h] += linalg.Dot(f.lane(h, l), ones)
			}
		}
	}
	if w == withNoise {
		out.noise = make([]float64, H*H)
		for h := range H {
			row, un := f.p.Row(h), f.unweighted.Row(h)
			for i, v := range row {
				un[i] = 0
				if g := b.weight[i%blockSize]; g > 0 {
					un[i] = v / g
				}
			}
		}
		linalg.MulTB(linalg.Matrix{Rows: H, Cols: H, Stride: H, Data: out.noise}, f.p, f.unweighted)
	}
	return out
}

// factorGradient fills dst with p·xᵀ, four heads and rows of x at a time; the last
// four rows may be some that were done before.
func (f *buffer) factorGradient(dst, x linalg.Matrix) {
	const few = linalg.Few
	h := 0
	if x.Rows >= few {
		for ; h+few <= f.heads; h += few {
			for p := 0; p < x.Rows; p += few {
				at := min(p, x.Rows-few)
				out := linalg.Matrix{Rows: few, Cols: few, Stride: few, Data: f.corner[:]}
				clear(out.Data)
				linalg.AddMulFew(out, f.p.RowSlice(h, h+few), x.RowSlice(at, at+few))
				for i := range few {
					copy(dst.Row(h + i)[at:], out.Row(i))
				}
			}
		}
	}
	for ; h < f.heads; h++ {
		for p := range x.Rows {
			dst.Set(h, p, linalg.Dot(f.p.Row(h), x.Row(p)))
		}
	}
}

// ones turns a dot product into a sum that does not wait for itself.
var ones = slices.Repeat([]float64{1}, blockSize)

// slow evaluates a block sample by sample; f.p holds the scores.
func (f *buffer) slow(m Model, st State, b *block, w want) partial {
	loss := 0.0
	chi := make([][]float64, f.heads)
	for h := range chi {
		chi[h] = make([]float64, f.tokens)
	}
	for i, weight := range b.weight {
		for h := range chi {
			for l := range chi[h] {
				chi[h][l] = f.p.At(h, l*blockSize+i)
			}
		}
		s := plain(m, chi, st.B)
		loss += weight * s.loss
		for h := range chi {
			for l, g := range s.grad[h] {
				f.p.Set(h, l*blockSize+i, weight*g)
			}
		}
	}
	if w == lossOnly {
		return partial{loss: loss}
	}
	return f.collect(m, b, loss, w)
}
