package forward

import (
	"math"
	"slices"

	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/linalg"
)

// mix replaces each row of ffnIn by the weighted sum of the MLPs of its experts.
// Experts come one after another, each with all of its tokens, so that only one
// is in memory; an expert that no token chose is not read.
func (p *pass) mix(e *arch.Experts) error {
	shares, err := p.route(e)
	if err != nil {
		return err
	}
	sum := linalg.New32(p.ffnIn.Rows, p.m.Width)
	in := linalg.New32(p.ffnIn.Rows, p.m.Width)
	for x := range e.Down {
		var tokens []int
		for i := range shares.Rows {
			if shares.Row(i)[x] != 0 {
				tokens = append(tokens, i)
			}
		}
		if len(tokens) == 0 {
			continue
		}
		part := in.RowSlice(0, len(tokens))
		rows(len(tokens), func(n int) { copy(part.Row(n), p.ffnIn.Row(tokens[n])) })
		if err := p.expert(part, e, x); err != nil {
			return err
		}
		rows(len(tokens), func(n int) {
			i := tokens[n]
			w, row := shares.Row(i)[x], sum.Row(i)
			for j, v := range part.Row(n) {
				row[j] += w * v
			}
		})
	}
	p.ffnIn = sum
	return nil
}

// expert replaces each row of in by what one expert makes of it.
func (p *pass) expert(in linalg.Matrix32, e *arch.Experts, x int) error {
	if e.GateUp != nil {
		return p.mlpByTurns(in, e.GateUp[x], e.Down[x])
	}
	return p.mlp(in, &e.Gate[x], e.Up[x], e.Down[x])
}

// route returns the weights [T, experts] of the experts for each token: the
// softmax of the router, 0 for all but the largest.
func (p *pass) route(e *arch.Experts) (linalg.Matrix32, error) {
	weights := linalg.New32(p.ffnIn.Rows, e.Router.Out)
	if err := p.apply(weights, p.ffnIn, e.Router); err != nil {
		return linalg.Matrix32{}, err
	}
	rows(weights.Rows, func(i int) { choose(weights.Row(i), e.Active, e.Normalize) })
	return weights, nil
}

// choose replaces z by the softmax of z at its n largest values, divided by
// their sum if they are to be normalized, and by 0 elsewhere. Of equal values
// the first is chosen.
func choose(z []float32, n int, normalize bool) {
	left := slices.Clone(z) // −∞ where chosen
	top := float64(slices.Max(z))
	all := 0.0
	for _, v := range z {
		all += math.Exp(float64(v) - top)
	}
	clear(z)
	chosen := make([]int, n)
	kept := 0.0
	for c := range chosen {
		best := 0
		for i, v := range left {
			if v > left[best] {
				best = i
			}
		}
		e := math.Exp(float64(left[best]) - top)
		z[best] = float32(e)
		kept += e
		chosen[c], left[best] = best, float32(math.Inf(-1))
	}
	if normalize {
		all = kept
	}
	for _, i := range chosen {
		z[i] = float32(float64(z[i]) / all)
	}
}
