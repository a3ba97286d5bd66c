package forward

import (
	"math"

	"github.com/eigenhead/eigenhead/internal/kernel"
	"github.com/eigenhead/eigenhead/linalg"
)

// A tile of logits has at most so many tokens and outputs.
const (
	tileTokens  = 1024
	tileOutputs = 1024
)

// logits computes the logits of every position by tiles, and keeps of each position only what the likelihood of the
// next token needs: the largest logit, Σe^(logit − largest) and its own logit.
func (p *pass) logits() (*Output, error) {
	normed := p.attnIn
	if err := p.norm(normed, p.x, p.m.FinalNorm); err != nil {
		return nil, err
	}
	if in := p.m.HeadIn; in != nil {
		projected := linalg.New32(normed.Rows, in.Out)
		if err := p.apply(projected, normed, *in); err != nil {
			return nil, err
		}
		normed = projected
	}
	bias, err := p.headBias()
	if err != nil {
		return nil, err
	}
	T, vocab := p.x.Rows, p.m.Vocab
	out := &Output{LogitsLast: make([]float32, vocab)}
	if p.opts.KeepLogits {
		out.Logits = linalg.New32(T, vocab)
	}
	sums := make([]logSum, T)
	read := p.m.Head.Reader()
	for from := 0; from < vocab; from += tileOutputs {
		to := min(vocab, from+tileOutputs)
		for row := 0; row < T; row += tileTokens {
			in := normed.RowSlice(row, min(T, row+tileTokens))
			tile := p.ha.matrix(in.Rows, to-from)
			err := linalg.MulTBRows32(tile, in, func(part linalg.Matrix32, row, col int) error {
				if err := p.ctx.Err(); err != nil {
					return err
				}
				return read(part, from+row, col)
			})
			if err != nil {
				return nil, err
			}
			p.work.add(products(in.Rows, (to-from)*in.Cols))
			p.finish(tile, bias, from)
			p.collect(out, sums, tile, row, from)
		}
		p.m.Head.Release()
	}
	out.NLL = make([]float64, T-1)
	for i := range out.NLL {
		out.NLL[i] = sums[i].nll()
	}
	return out, nil
}

// headBias returns the bias of the output head, nil where it has none.
func (p *pass) headBias() ([]float32, error) {
	if p.m.HeadBias == nil {
		return nil, nil
	}
	bias := make([]float32, p.m.Vocab)
	return bias, p.m.HeadBias.Load(bias)
}

// finish adds the bias to a tile of logits from column col on, and bounds them
// smoothly, where the model does so.
func (p *pass) finish(tile linalg.Matrix32, bias []float32, col int) {
	limit := p.m.LogitSoftcap
	if bias == nil && limit == 0 {
		return
	}
	rows(tile.Rows, func(i int) {
		z := tile.Row(i)
		if bias != nil {
			kernel.Add32(z, bias[col:col+len(z)])
		}
		if limit != 0 {
			kernel.Softcap32(z, float32(limit))
		}
	})
}

// collect takes what is needed out of a tile of logits whose first row and
// column are given.
func (p *pass) collect(out *Output, sums []logSum, tile linalg.Matrix32, row, col int) {
	T := len(p.tokens)
	if p.opts.KeepLogits {
		for i := range tile.Rows {
			copy(out.Logits.Row(row + i)[col:], tile.Row(i))
		}
	}
	if row+tile.Rows == T {
		copy(out.LogitsLast[col:], tile.Row(tile.Rows-1))
	}
	rows(tile.Rows, func(i int) {
		if row+i+1 == T {
			return // nothing comes after the last token
		}
		z := tile.Row(i)
		if next := p.tokens[row+i+1] - col; next >= 0 && next < len(z) {
			sums[row+i].own = float64(z[next])
		}
		sums[row+i].add(z)
	})
}

// logSum is a running log Σ e^z over tiles. The zero value is an empty sum.
type logSum struct {
	top float64 // largest so far
	sum float64 // Σ e^(z − top)
	own float64 // the logit of the token that came
}

// add takes a tile into the sum and overwrites it.
func (s *logSum) add(z []float32) {
	top := linalg.Max32(z)
	sum := linalg.ExpSum32(z, z, top)
	switch t := float64(top); {
	case s.sum == 0:
		s.top, s.sum = t, sum
	case t > s.top:
		s.top, s.sum = t, s.sum*math.Exp(s.top-t)+sum
	default:
		s.sum += sum * math.Exp(t-s.top)
	}
}

// nll returns −ln of the softmax at the token that came.
func (s *logSum) nll() float64 { return s.top + math.Log(s.sum) - s.own }
