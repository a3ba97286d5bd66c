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
	return p.through(x, down, func(in linalg.Matrix32) (linalg.Matrix32, error) {
		hidden := p.ha.matrix(in.Rows, up.Out)
		if err := p.apply(hidden, in, up); err != nil {
			return hidden, err
		}
		if gate == nil {
			rows(in.Rows, func(i int) { activate(hidden.Row(i), p.m.Activation) })
			return hidden, nil
		}
		gated := p.hb.matrix(in.Rows, gate.Out)
		err := p.apply(gated, in, *gate)
		rows(in.Rows, func(i int) { gateBy(hidden.Row(i), gated.Row(i), p.m.Activation) })
		return hidden, err
	})
}

// mlpByTurns is mlp where the outputs of Gate and Up come by turns from one map.
func (p *pass) mlpByTurns(x linalg.Matrix32, gateUp, down arch.Linear) error {
	return p.through(x, down, func(in linalg.Matrix32) (linalg.Matrix32, error) {
		both := p.hb.matrix(in.Rows, gateUp.Out)
		hidden := p.ha.matrix(in.Rows, gateUp.Out/2)
		err := p.apply(both, in, gateUp)
		rows(in.Rows, func(i int) {
			pair, up := both.Row(i), hidden.Row(i)
			gate := pair[:len(up)] // the half that is read before it is written
			for j := range up {
				gate[j], up[j] = pair[2*j], pair[2*j+1]
			}
			gateBy(up, gate, p.m.Activation)
		})
		return hidden, err
	})
}

// through replaces each row of x by Down of its hidden layer, some rows at a time.
func (p *pass) through(x linalg.Matrix32, down arch.Linear, hidden func(in linalg.Matrix32) (linalg.Matrix32, error)) error {
	for from := 0; from < x.Rows; from += mlpTokens {
		in := x.RowSlice(from, min(x.Rows, from+mlpTokens))
		h, err := hidden(in)
		if err != nil {
			return err
		}
		if err := p.apply(in, h, down); err != nil { // the rows read have served
			return err
		}
	}
	return nil
}
