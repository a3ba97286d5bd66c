package arch

import (
	"fmt"
	"strings"
)

// norm returns the norm of a whole row under a full name, nil if the part of it
// is empty.
func (b *builder) norm(name, part string) *Norm {
	if part == "" {
		return nil
	}
	return b.normOf(name, b.n.words.width, b.m.Width)
}

func (b *builder) layerNorm(part string) *Norm { return b.norm(b.at+part, part) }

// headNorm returns the norm of q or of k: over a head, with gains that all heads
// share or with gains for each, or over the whole row, as the shape of the gains
// tells.
func (b *builder) headNorm(part string, heads int) *Norm {
	d := b.m.HeadDim
	name := b.at + part
	if part == "" {
		return nil
	}
	if strings.Contains(part, "%d") {
		n := &Norm{RMS: b.m.Norm == "rms", Eps: b.m.NormEps, Width: d, Gain: Vector{N: heads * d, c: b.c}}
		for h := range heads {
			n.Gain.parts = append(n.Gain.parts, b.vector(fmt.Sprintf(name, h)+".weight", b.n.words.headDim, d))
		}
		return n
	}
	t, _ := b.c.Tensor(name + ".weight")
	switch {
	case t != nil && len(t.Shape) == 2: // a row for each head
		gains := b.tensor(name+".weight", b.n.words.heads+" × "+b.n.words.headDim, heads, d)
		return &Norm{RMS: b.m.Norm == "rms", Eps: b.m.NormEps, Width: d, Gain: Vector{N: heads * d, c: b.c, tensor: gains}}
	case t != nil && len(t.Shape) == 1 && t.Shape[0] == heads*d:
		d *= heads
	}
	return b.normOf(name, b.n.words.headDim, d)
}

// normOf returns a norm over width values with as many gains.
func (b *builder) normOf(name, why string, width int) *Norm {
	gain, shift := ".weight", ".bias"
	if !b.has(name+gain) && b.has(name+".gamma") { // the first BERTs
		gain, shift = ".gamma", ".beta"
	}
	n := &Norm{RMS: b.m.Norm == "rms", Eps: b.m.NormEps, Width: width, Gain: b.vector(name+gain, why, width)}
	if b.m.plan.plusOne {
		n.Gain.plus = 1
	}
	if !n.RMS {
		bias := b.vector(name+shift, why, width)
		n.Bias = &bias
	}
	return n
}
