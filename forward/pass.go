package forward

import (
	"context"
	"slices"

	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/internal/kernel"
	"github.com/eigenhead/eigenhead/internal/par"
	"github.com/eigenhead/eigenhead/linalg"
)

// rowBlock is how many tokens pass a transposed weight at a time.
const rowBlock = 512

// pass is the state of one run.
type pass struct {
	ctx    context.Context
	m      *arch.Model
	opts   *Options
	tokens []int

	x        linalg.Matrix32 // [T, width] residual stream
	attnIn   linalg.Matrix32 // [T, width] what attention reads, then what it writes
	ffnIn    linalg.Matrix32 // [T, width] the same of the MLP
	qkv      linalg.Matrix32 // [T, (heads + 2·kv heads)·head_dim]
	av       linalg.Matrix32 // [T, heads·head_dim]
	turnings map[*arch.Rope]turning

	wa     buffer // transposed weights of the step at hand
	ha, hb buffer // [mlpTokens, ffn] hidden layer of the MLP

	work work
}

// buffer is memory that matrices of one step after another share.
type buffer struct{ data []float32 }

// matrix returns a matrix over the buffer, grown if need be, with rows so far
// apart that products can read many at once. Its numbers are what was left there.
func (b *buffer) matrix(rows, cols int) linalg.Matrix32 {
	stride := kernel.RowStride32(cols)
	if n := rows * stride; len(b.data) < n {
		b.data = make([]float32, n)
	}
	return linalg.Matrix32{Rows: rows, Cols: cols, Stride: stride, Data: b.data[:rows*stride]}
}

// newPass embeds the tokens and prepares the rotations.
func newPass(ctx context.Context, m *arch.Model, tokens []int, opts *Options) (*pass, error) {
	T, d := len(tokens), m.HeadDim
	p := &pass{ctx: ctx, m: m, opts: opts, tokens: tokens,
		x:      linalg.New32(T, m.Width),
		attnIn: linalg.New32(T, m.Width),
		qkv:    linalg.New32(T, (m.Heads+2*m.KVHeads)*d),
		av:     linalg.New32(T, m.Heads*d),

		turnings: map[*arch.Rope]turning{},
	}
	p.ffnIn = p.attnIn // one serves after the other
	if slices.ContainsFunc(m.Blocks, func(b arch.Block) bool { return b.Parallel }) {
		p.ffnIn = linalg.New32(T, m.Width)
	}
	return p, p.embed()
}

// embed fills x with the embeddings of the tokens, and of their places where
// those are learned.
func (p *pass) embed() error {
	m := p.m
	x := p.x
	if m.EmbeddingIn != nil {
		x = linalg.New32(p.x.Rows, m.Embedding.In)
	}
	for i, id := range p.tokens {
		if err := m.Embedding.LoadRows(x.RowSlice(i, i+1), id); err != nil {
			return err
		}
	}
	if scale := float32(m.EmbeddingScale); scale != 1 {
		rows(x.Rows, func(i int) {
			for j := range x.Row(i) {
				x.Row(i)[j] *= scale
			}
		})
	}
	if m.EmbeddingIn != nil {
		if err := p.apply(p.x, x, *m.EmbeddingIn); err != nil {
			return err
		}
	}
	if m.TokenTypes != nil {
		kind := linalg.New32(1, m.Width)
		if err := m.TokenTypes.LoadRows(kind, 0); err != nil {
			return err
		}
		rows(p.x.Rows, func(i int) { kernel.Add32(p.x.Row(i), kind.Row(0)) })
	}
	if m.Positions != nil {
		positions := linalg.New32(p.x.Rows, m.Width)
		if err := m.Positions.LoadRows(positions, m.FirstPosition); err != nil {
			return err
		}
		rows(p.x.Rows, func(i int) { kernel.Add32(p.x.Row(i), positions.Row(i)) })
	}
	return p.norm(p.x, p.x, m.EmbeddingNorm)
}

// logitsWanted reports whether there are logits and they are asked for.
func (p *pass) logitsWanted() bool { return p.m.Head != nil && !p.opts.NoLogits }

// rows runs f over n rows on all cores, a few rows to a task.
func rows(n int, f func(i int)) {
	const each = 16
	par.Do((n+each-1)/each, func(b int) {
		for i := b * each; i < min(n, (b+1)*each); i++ {
			f(i)
		}
	})
}
