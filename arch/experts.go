package arch

import (
	"fmt"
	"strings"

	"github.com/eigenhead/eigenhead/checkpoint"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// experts finds the router and the MLPs of a layer that has several.
func (b *builder) experts() *Experts {
	m, n, p := b.m, b.n, b.m.plan
	if p.active > p.experts && b.err == nil {
		b.err = &xerr.Format{File: b.c.Path, What: "active experts", Found: p.active, Want: fmt.Sprintf("at most %d, the number of experts", p.experts)}
	}
	e := &Experts{Active: p.active, Normalize: p.normalize}
	e.Router = b.linear(b.at+n.router, "experts × "+n.words.width, p.experts, m.Width, p.routerBias)
	for i := 0; i < p.experts && b.err == nil; i++ {
		if n.expertGateUp != "" {
			e.GateUp = append(e.GateUp, b.rawExpert(n.expertGateUp, i, 2*m.FFN, m.Width))
			e.Down = append(e.Down, b.rawExpert(n.expertDown, i, m.Width, m.FFN))
			continue
		}
		e.Gate = append(e.Gate, b.expert(n.expertGate, i, m.FFN, m.Width))
		e.Up = append(e.Up, b.expert(n.expertUp, i, m.FFN, m.Width))
		e.Down = append(e.Down, b.expert(n.expertDown, i, m.Width, m.FFN))
	}
	return e
}

// expert finds one linear map of expert i: a tensor of its own, or a slice of
// one that holds all experts.
func (b *builder) expert(name string, i, out, in int) Linear {
	why := b.n.words.ffn + " and " + b.n.words.width
	if strings.Contains(name, "%d") {
		return b.linear(b.at+fmt.Sprintf(name, i), why, out, in, b.m.plan.mlpBias)
	}
	l := Linear{Weight: Weight{Out: out, In: in, c: b.c}}
	l.tensor = b.slice(b.at+name+".weight", "experts × "+why, i, b.m.plan.experts, out, in)
	if bias := b.at + name + ".bias"; b.m.plan.mlpBias.has || b.has(bias) {
		l.Bias = &Vector{N: out, c: b.c, tensor: b.slice(bias, "experts × "+why, i, b.m.plan.experts, out)}
	}
	return l
}

// rawExpert finds one linear map of expert i as gpt-oss stores it: a parameter
// [experts, in, out] with its bias beside it.
func (b *builder) rawExpert(name string, i, out, in int) Linear {
	why := "experts, " + b.n.words.width + ", " + b.n.words.ffn
	l := Linear{Weight: Weight{Out: out, In: in, c: b.c, transposed: true}}
	if blocks := b.at + name + "_blocks"; b.has(blocks) {
		l.transposed = false // packed rows are outputs
		l.tensor = b.packed(blocks, b.at+name+"_scales", why, i, out, in)
	} else {
		l.tensor = b.slice(b.at+name, why, i, b.m.plan.experts, in, out)
	}
	l.Bias = &Vector{N: out, c: b.c, tensor: b.slice(b.at+name+"_bias", why, i, b.m.plan.experts, out)}
	return l
}

// packed returns one expert [out, in] of a stack in MXFP4.
func (b *builder) packed(blocks, scales, why string, i, out, in int) *checkpoint.Tensor {
	const size = 32
	if in%size != 0 && b.err == nil {
		b.err = &xerr.Format{File: b.c.Path, What: "tensor " + quote(blocks), Found: fmt.Sprintf("%d inputs", in), Want: "a multiple of 32"}
	}
	data := b.raw(blocks, why, b.m.plan.experts, out, in/size, size/2)
	exponents := b.raw(scales, why, b.m.plan.experts, out, in/size)
	if b.err != nil {
		return nil
	}
	joined, err := data.Scaled(exponents)
	if err != nil {
		b.err = err
		return nil
	}
	return joined.Slice(i)
}

// slice returns element i of a tensor along its first dimension.
func (f *finder) slice(name, why string, i int, shape ...int) *checkpoint.Tensor {
	t := f.tensor(name, why, shape...)
	if f.err != nil {
		return nil
	}
	return t.Slice(i)
}
