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

// mlpTokens is how many tokens pass the MLP at a time: enough to make reading the
// weights again for the next ones cheap, few enough to bound the hidden layer.
const mlpTokens = 2048

// mlp replaces each row of x by Down·(act(Gate·x) ⊙ Up·x), or Down·act(Up·x)
// where gate is nil.
func (p *pass) mlp(x linalg.Matrix32, gate *arch.Linear, up, down arch.Linear) error {
	for from := 0; from < x.Rows; from += mlpTokens {
		in := x.RowSlice(from, min(x.Rows, from+mlpTokens))
		hidden := p.ha.matrix(in.Rows, up.Out)
		if err := p.apply(hidden, in, up); err != nil {
			return err
		}
		if gate != nil {
			gated := p.hb.matrix(in.Rows, gate.Out)
			if err := p.apply(gated, in, *gate); err != nil {
				return err
			}
			rows(in.Rows, func(i int) { gateBy(hidden.Row(i), gated.Row(i), p.m.Activation) })
		} else {
			rows(in.Rows, func(i int) { activate(hidden.Row(i), p.m.Activation) })
		}
		if err := p.apply(in, hidden, down); err != nil { // the rows read have served
			return err
		}
	}
	weights := up.Out*up.In + down.Out*down.In
	if gate != nil {
		weights += gate.Out * gate.In
	}
	p.step(weights)
	return nil
}
