package forward

import (
	"context"

	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/internal/par"
	"github.com/eigenhead/eigenhead/linalg"
)

// rowBlock is how many tokens pass a weight at a time: between blocks the
// context is looked at, and the widest buffer, that of the MLP, has so many rows.
const rowBlock = 256

// pass is the state of one run.
type pass struct {
	ctx    context.Context
	m      *arch.Model
	opts   *Options
	tokens []int

	x        linalg.Matrix32 // [T, width] residual stream
	normed   linalg.Matrix32 // [T, width]
	qkv      linalg.Matrix32 // [T, (heads + 2·kv heads)·head_dim]
	av       linalg.Matrix32 // [T, heads·head_dim]
	cos, sin linalg.Matrix32 // [T, head_dim/2]; empty without RoPE

	wa, wb, wc buffer // weights of the step at hand
	ha, hb     buffer // [rowBlock, ffn] hidden layer of the MLP

	done, total int
}

// buffer is memory that matrices of one step after another share.
type buffer struct{ data []float32 }

// matrix returns a matrix over the buffer, grown if need be. Its numbers are
// what was left there.
func (b *buffer) matrix(rows, cols int) linalg.Matrix32 {
	if n := rows * cols; len(b.data) < n {
		b.data = make([]float32, n)
	}
	return linalg.Matrix32{Rows: rows, Cols: cols, Stride: cols, Data: b.data[:rows*cols]}
}

// newPass embeds the tokens and prepares the rotations.
func newPass(ctx context.Context, m *arch.Model, tokens []int, opts *Options) (*pass, error) {
	T, d := len(tokens), m.HeadDim
	p := &pass{ctx: ctx, m: m, opts: opts, tokens: tokens,
		x:      linalg.New32(T, m.Width),
		normed: linalg.New32(T, m.Width),
		qkv:    linalg.New32(T, (m.Heads+2*m.KVHeads)*d),
		av:     linalg.New32(T, m.Heads*d),
		total:  int(m.Parameters),
	}
	if m.Tied && !opts.NoLogits { // the embedding works twice
		p.total += m.Vocab * m.Width
	}
	if err := p.embed(); err != nil {
		return nil, err
	}
	if m.Rope != nil {
		freqs, err := m.Rope.Frequencies()
		if err != nil {
			return nil, err
		}
		p.cos, p.sin = rotations(freqs, T)
	}
	return p, nil
}

// embed fills x with the embeddings of the tokens, and of their places where
// those are learned.
func (p *pass) embed() error {
	for i, id := range p.tokens {
		if err := p.m.Embedding.LoadRows(p.x.RowSlice(i, i+1), id); err != nil {
			return err
		}
	}
	if p.m.Positions == nil {
		return nil
	}
	positions := linalg.New32(p.x.Rows, p.m.Width)
	if err := p.m.Positions.LoadRows(positions, 0); err != nil {
		return err
	}
	for i := range p.x.Rows {
		add(p.x.Row(i), positions.Row(i))
	}
	return nil
}

// step reports progress after so many weights.
func (p *pass) step(weights int) {
	p.done = min(p.done+weights, p.total)
	if p.opts.Progress != nil {
		p.opts.Progress(p.done, p.total)
	}
}

// linear computes dst = x·Wᵀ + b by blocks of rows.
func (p *pass) linear(dst, x, w linalg.Matrix32, bias []float32) error {
	for from := 0; from < x.Rows; from += rowBlock {
		if err := p.ctx.Err(); err != nil {
			return err
		}
		to := min(x.Rows, from+rowBlock)
		out := dst.RowSlice(from, to)
		linalg.MulTB32(out, x.RowSlice(from, to), w)
		if bias != nil {
			rows(out.Rows, func(i int) { add(out.Row(i), bias) })
		}
	}
	return nil
}

// load reads a linear map into a buffer, and its bias.
func load(b *buffer, l arch.Linear) (w linalg.Matrix32, bias []float32, err error) {
	w = b.matrix(l.Out, l.In)
	if err := l.Weight.Load(w); err != nil {
		return w, nil, err
	}
	if l.Bias == nil {
		return w, nil, nil
	}
	bias = make([]float32, l.Out)
	return w, bias, l.Bias.Load(bias)
}

// rows runs f over n rows on all cores, a few rows to a task.
func rows(n int, f func(i int)) {
	const each = 16
	par.Do((n+each-1)/each, func(b int) {
		for i := b * each; i < min(n, (b+1)*each); i++ {
			f(i)
		}
	})
}

// add adds y to x.
func add(x, y []float32) {
	for i, v := range y {
		x[i] += v
	}
}
