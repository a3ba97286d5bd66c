package report

import (
	"slices"

	"github.com/eigenhead/eigenhead/measure"
)

// merged returns a profile of at most bins points: runs of neighboring bins become
// one, weights are added, entropy and sink averaged, the largest logit kept.
func merged(p *measure.Profile, bins int) *measure.Profile {
	if len(p.Start) <= bins || bins == 0 {
		return p
	}
	size := (len(p.Start) + bins - 1) / bins
	sum := func(run []float64) float64 {
		total := 0.0
		for _, v := range run {
			total += v
		}
		return total
	}
	mean := func(run []float64) float64 { return sum(run) / float64(len(run)) }
	out := &measure.Profile{NullSigma: p.NullSigma, RowsAbsent: p.RowsAbsent,
		MaxLogit: runs(p.MaxLogit, size, slices.Max[[]float64]), Entropy: runs(p.Entropy, size, mean), Sink: runs(p.Sink, size, mean)}
	for i := 0; i < len(p.Start); i += size {
		out.Start = append(out.Start, p.Start[i])
	}
	for _, c := range p.Channels {
		out.Channels = append(out.Channels, measure.Channel{Sigma: c.Sigma, Share: c.Share, Query: runs(c.Query, size, sum), Key: runs(c.Key, size, sum)})
	}
	return out
}

func runs(list []float64, size int, f func([]float64) float64) []float64 {
	var out []float64
	for run := range slices.Chunk(list, size) {
		out = append(out, f(run))
	}
	return out
}

// thin returns at most about limit indices below n: all of the first half of the
// limit, evenly spread ones after it.
func thin(n, limit int) []int {
	at := []int{}
	if n <= limit {
		for i := range n {
			at = append(at, i)
		}
		return at
	}
	dense := limit / 2
	for i := range dense {
		at = append(at, i)
	}
	for i := range limit - dense {
		at = append(at, dense+(n-1-dense)*i/max(limit-dense-1, 1))
	}
	return slices.Compact(at)
}

// pickAt returns the elements at those indices that there are.
func pickAt(list []float64, at []int) []float64 {
	var out []float64
	for _, i := range at {
		if i < len(list) {
			out = append(out, list[i])
		}
	}
	return out
}
