package forward

import (
	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/linalg"
)

// feedForward adds the write of the MLP, or of the experts, to the stream.
func (p *pass) feedForward(b *arch.Block) error {
	if b.Experts != nil {
		if err := p.mix(b.Experts); err != nil {
			return err
		}
	} else if err := p.mlp(p.ffnIn, b.Gate, b.Up, b.Down); err != nil {
		return err
	}
	return p.addWrite(p.ffnIn, b.FFNWriteNorm, b.FFNAddNorm)
}

// mlp replaces each row of x by Down·(act(Gate·x) ⊙ Up·x), or Down·act(Up·x)
// where gate is nil, rowBlock tokens at a time.
func (p *pass) mlp(x linalg.Matrix32, gate *arch.Linear, up, down arch.Linear) error {
	wUp, upBias, err := load(&p.wa, up)
	if err != nil {
		return err
	}
	wDown, downBias, err := load(&p.wb, down)
	if err != nil {
		return err
	}
	var wGate linalg.Matrix32
	var gateBias []float32
	if gate != nil {
		if wGate, gateBias, err = load(&p.wc, *gate); err != nil {
			return err
		}
	}
	for from := 0; from < x.Rows; from += rowBlock {
		in := x.RowSlice(from, min(x.Rows, from+rowBlock))
		hidden := p.ha.matrix(in.Rows, up.Out)
		if err := p.linear(hidden, in, wUp, upBias); err != nil {
			return err
		}
		if gate != nil {
			gated := p.hb.matrix(in.Rows, gate.Out)
			if err := p.linear(gated, in, wGate, gateBias); err != nil {
				return err
			}
			rows(in.Rows, func(i int) { gateBy(hidden.Row(i), gated.Row(i), p.m.Activation) })
		} else {
			rows(in.Rows, func(i int) { activate(hidden.Row(i), p.m.Activation) })
		}
		if err := p.linear(in, hidden, wDown, downBias); err != nil { // the rows read have served
			return err
		}
	}
	p.step(len(wUp.Data) + len(wGate.Data) + len(wDown.Data))
	return nil
}
