package forward

import (
	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/linalg"
)

// tileNumbers is how many weights are in memory at a time, 32 MB of them: of a
// large model one matrix alone would take ten times that.
const tileNumbers = 8 << 20

// apply computes dst = x·Wᵀ + b. A large W is read a few of
// its rows at a time, which gives columns of dst; each number of dst is the same
// sum either way.
func (p *pass) apply(dst, x linalg.Matrix32, l arch.Linear) error {
	if l.Transposed() {
		return p.applyTransposed(dst, x, l)
	}
	step := l.Out
	if limit := p.tile(); l.InOrder() && l.Out*l.In > limit {
		step = max(1, limit/l.In)
		if step > 64 {
			step -= step % 64 // whole vectors in the product
		}
	}
	for from := 0; from < l.Out; from += step {
		to, part := min(l.Out, from+step), l
		if step < l.Out {
			part = l.Part(from, to)
		}
		w, bias, err := load(&p.wa, part)
		if err != nil {
			return err
		}
		if err := p.linear(dst.ColSlice(from, to), x, w, bias); err != nil {
			return err
		}
	}
	return nil
}

// applyTransposed is apply for a map that the file holds as [in, out]: it is
// multiplied as it lies there, whole, since a part of its columns is no part of the
// file.
func (p *pass) applyTransposed(dst, x linalg.Matrix32, l arch.Linear) error {
	w := p.wa.matrix(l.In, l.Out)
	if err := l.LoadTransposed(w); err != nil {
		return err
	}
	l.Release()
	var bias []float32
	if l.Bias != nil {
		bias = make([]float32, l.Out)
		if err := l.Bias.Load(bias); err != nil {
			return err
		}
	}
	return p.product(dst, x, w, bias, linalg.Mul32)
}

// applyStack is apply for several maps of one input whose results lie side by
// side. Small ones are stacked, as one large product is quicker than several.
func (p *pass) applyStack(dst, x linalg.Matrix32, parts []arch.Linear) error {
	if len(parts) > 1 && dst.Cols*x.Cols <= p.tile() {
		w := p.wa.matrix(dst.Cols, x.Cols)
		bias, err := stack(w, parts)
		if err != nil {
			return err
		}
		return p.linear(dst, x, w, bias)
	}
	from := 0
	for _, part := range parts {
		if err := p.apply(dst.ColSlice(from, from+part.Out), x, part); err != nil {
			return err
		}
		from += part.Out
	}
	return nil
}

func (p *pass) tile() int {
	if p.opts.tile > 0 {
		return p.opts.tile
	}
	return tileNumbers
}
