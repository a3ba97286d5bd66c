package forward

import (
	"slices"

	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/internal/kernel"
	"github.com/eigenhead/eigenhead/linalg"
)

// Between products of so many tokens with so many weights, some 30 GFLOP, the
// file's pages leave memory. Each product reads its weights anew, which so many
// tokens make cheap.
const (
	tokenBlock  = 2016 // rows of A that the kernel packs at once, or weights would be read twice
	tileNumbers = 8 << 20
)

// apply computes dst = x·Wᵀ + b.
func (p *pass) apply(dst, x linalg.Matrix32, l arch.Linear) error {
	if l.Transposed() {
		return p.applyTransposed(dst, x, l)
	}
	return p.applyRows(dst, x, []arch.Linear{l})
}

// applyStack is apply for several maps of one input whose results lie side by
// side: one large product is quicker than several.
func (p *pass) applyStack(dst, x linalg.Matrix32, parts []arch.Linear) error {
	if !slices.ContainsFunc(parts, func(l arch.Linear) bool { return l.Transposed() }) {
		return p.applyRows(dst, x, parts)
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

// applyRows is applyStack for maps that the file holds row by row, in whatever
// order. A core reads the rows that it multiplies by; as float32 they are never in
// memory together.
func (p *pass) applyRows(dst, x linalg.Matrix32, parts []arch.Linear) error {
	bias, err := biases(dst.Cols, parts)
	if err != nil {
		return err
	}
	read := reader(parts)
	step := max(1, p.tile()/x.Cols)
	if step > 64 {
		step -= step % 64 // whole vectors in the product
	}
	for row := 0; row < x.Rows; row += tokenBlock {
		in, out := x.RowSlice(row, min(x.Rows, row+tokenBlock)), dst.RowSlice(row, min(x.Rows, row+tokenBlock))
		for from := 0; from < dst.Cols; from += step {
			cols := out.ColSlice(from, min(dst.Cols, from+step))
			err := linalg.MulTBRows32(cols, in, func(part linalg.Matrix32, row, col int) error {
				if err := p.ctx.Err(); err != nil {
					return err
				}
				return read(part, from+row, col)
			})
			if err != nil {
				return err
			}
			for _, l := range parts {
				l.Release()
			}
			p.work.add(products(in.Rows, cols.Cols*in.Cols))
		}
		if bias != nil {
			rows(out.Rows, func(i int) { kernel.Add32(out.Row(i), bias) })
		}
	}
	return nil
}

// reader returns a function that reads from linear maps of one input as if they
// were one, each below the one before.
func reader(parts []arch.Linear) func(dst linalg.Matrix32, row, col int) error {
	var reads []func(dst linalg.Matrix32, row, col int) error
	for _, l := range parts {
		reads = append(reads, l.Reader())
	}
	return func(dst linalg.Matrix32, row, col int) error {
		for i, l := range parts {
			if row < l.Out && dst.Rows > 0 {
				n := min(dst.Rows, l.Out-row)
				if err := reads[i](dst.RowSlice(0, n), row, col); err != nil {
					return err
				}
				dst, row = dst.RowSlice(n, dst.Rows), row+n
			}
			row -= l.Out
		}
		return nil
	}
}

// biases returns the biases of linear maps one after the other, n numbers, zeros
// for a map without one; nil if none has one.
func biases(n int, parts []arch.Linear) ([]float32, error) {
	var bias []float32
	from := 0
	for _, l := range parts {
		if l.Bias != nil {
			if bias == nil {
				bias = make([]float32, n)
			}
			if err := l.Bias.Load(bias[from : from+l.Out]); err != nil {
				return nil, err
			}
		}
		from += l.Out
	}
	return bias, nil
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
	bias, err := biases(l.Out, []arch.Linear{l})
	if err != nil {
		return err
	}
	for from := 0; from < x.Rows; from += rowBlock {
		if err := p.ctx.Err(); err != nil {
			return err
		}
		to := min(x.Rows, from+rowBlock)
		out := dst.RowSlice(from, to)
		linalg.Mul32(out, x.RowSlice(from, to), w)
		if bias != nil {
			rows(out.Rows, func(i int) { kernel.Add32(out.Row(i), bias) })
		}
		p.work.add(products(out.Rows, w.Rows*w.Cols))
	}
	return nil
}

func (p *pass) tile() int {
	if p.opts.tile > 0 {
		return p.opts.tile
	}
	return tileNumbers
}
