package specialize

import (
	"context"
	"math"
)

// Removal is one step of pruning.
type Removal struct {
	Head        int      `json:"head"` // that went, counted from 0 among the trained ones; −1: none yet
	Left        int      `json:"left"`
	Loss        float64  `json:"loss"`
	Error       float64  `json:"loss_error"`
	Reoptimized *float64 `json:"reoptimized,omitempty"` // loss after the heads that are left were trained on
}

// Subset is the best choice of heads of one size.
type Subset struct {
	Heads []int   `json:"heads"`
	Loss  float64 `json:"loss"`
}

// Pruning is what taking heads out of one trained state costs.
type Pruning struct {
	Start    uint64    `json:"start"` // of the run
	Greedy   []Removal `json:"greedy"`
	Exact    []Subset  `json:"exact,omitempty"` // by number removed; absent above exactHeads heads
	Free     int       `json:"free"`            // heads that greedy removal takes within the tolerance
	FreeBest int       `json:"free_best"`       // the same of the exact subsets; −1 without them
	Jump     float64   `json:"jump"`            // rise of the loss as the next head goes
}

// exactHeads is the most heads for which all subsets are tried: 2^12 evaluations.
const exactHeads = 12

// PruneOptions of Prune. The zero value: no re-optimization, DefaultPruneTolerance.
type PruneOptions struct {
	Tolerance  float64  // relative rise of the loss that counts as none; 0: DefaultPruneTolerance
	Reoptimize bool     // also train what is left after each removal
	Exact      int      // most heads for which all subsets are tried; 0: exactHeads
	Train      *Samples // that heads are trained on; nil: those of the losses
}

// DefaultPruneTolerance is the relative rise of the loss that counts as none:
// chosen, not derived; a few times the error of the loss.
const DefaultPruneTolerance = 0.02

// Prune takes heads out one after the other, each time the one whose loss costs
// least, and for up to 12 heads also finds the best subset of every size. What is
// left keeps its weights; the mean is over the heads that are left. Re-optimized
// losses start from what greedy removal left. Errors: ctx's.
func Prune(ctx context.Context, m Model, s *Samples, st State, opts PruneOptions) (*Pruning, error) {
	if opts.Tolerance == 0 {
		opts.Tolerance = DefaultPruneTolerance
	}
	if opts.Exact == 0 {
		opts.Exact = exactHeads
	}
	if opts.Train == nil {
		opts.Train = s
	}
	H := st.K.Rows
	e := s.Loss(m, st)
	p := &Pruning{Greedy: []Removal{{Head: -1, Left: H, Loss: e.Loss, Error: e.Error}}, FreeBest: -1}
	heads := make([]int, H)
	for h := range heads {
		heads[h] = h
	}
	trained := st
	for left := H - 1; left >= 1; left-- {
		best, at := (*Eval)(nil), 0
		for i := range heads {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if e := s.Loss(m, st.Keep(without(heads, i))); best == nil || e.Loss < best.Loss {
				best, at = e, i
			}
		}
		r := Removal{Head: heads[at], Left: left, Loss: best.Loss, Error: best.Error}
		heads = without(heads, at)
		if opts.Reoptimize {
			trained = trained.Without(at)
			o, err := Optimize(ctx, m, opts.Train, trained, 1e-4, 60)
			if err != nil {
				return nil, err
			}
			loss := s.Loss(m, o.State).Loss
			r.Reoptimized, trained = &loss, o.State
		}
		p.Greedy = append(p.Greedy, r)
	}
	if H <= opts.Exact {
		if err := p.subsets(ctx, m, s, st); err != nil {
			return nil, err
		}
		p.FreeBest = free(len(p.Exact), func(i int) float64 { return p.Exact[i].Loss }, opts.Tolerance)
	}
	p.Free = free(len(p.Greedy), func(i int) float64 { return p.Greedy[i].Loss }, opts.Tolerance)
	if next := p.Free + 1; next < len(p.Greedy) {
		p.Jump = p.Greedy[next].Loss - p.Greedy[p.Free].Loss
	}
	return p, nil
}

func without(list []int, i int) []int {
	return append(append(make([]int, 0, len(list)-1), list[:i]...), list[i+1:]...)
}

// free returns the largest number of removals that leave the loss within
// (1 + tolerance) of that of all heads. Fewer can cost more: under the mean an odd
// number of heads of two signs does worse than one fewer.
func free(n int, loss func(i int) float64, tolerance float64) int {
	most := 0
	for i := 1; i < n; i++ {
		if loss(i) <= loss(0)*(1+tolerance) {
			most = i
		}
	}
	return most
}

func (p *Pruning) subsets(ctx context.Context, m Model, s *Samples, st State) error {
	H := st.K.Rows
	p.Exact = make([]Subset, H)
	for i := range p.Exact {
		p.Exact[i].Loss = math.Inf(1)
	}
	for mask := 1; mask < 1<<H; mask++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		var keep []int
		for h := range H {
			if mask>>h&1 == 1 {
				keep = append(keep, h)
			}
		}
		at := &p.Exact[H-len(keep)]
		if v := s.Loss(m, st.Keep(keep)).Loss; v < at.Loss {
			*at = Subset{Heads: keep, Loss: v}
		}
	}
	return nil
}

// Needed is the number of heads that a law asks for.
type Needed struct {
	Heads  int    `json:"heads"`
	Reason string `json:"reason"`
}

// HeadsNeeded says how many heads the law needs and why, so that the others can
// go: F where one head for each feature does (H − F can go), 2F where features
// come with both signs (H − 2F can go). It is a rule for the number that can go
// at little cost, not for reaching the Bayes risk: that takes one head for each
// point of the support, 2^F for independent signs, and no finite number under a
// Gaussian law.
func HeadsNeeded(law *Law) Needed {
	F := law.Features()
	if law.Kind == Flipped {
		return Needed{min(2, 2*F), "one head for each of the two signs of the common direction"}
	}
	if law.Kind == Gaussian || law.Kind == Rademacher {
		mean, second := law.Moments()
		heads := 0
		for f := range F {
			switch v := second.At(f, f); {
			case v == 0:
			case mean[f]*mean[f] > 0.75*v: // hardly ever the other sign
				heads++
			default:
				heads += 2
			}
		}
		if heads == 2*F {
			return Needed{heads, "features come with both signs: one head for each sign, H − 2F can go"}
		}
		return Needed{heads, "one head for each feature, two where its sign varies"}
	}
	points, _, _ := law.Points()
	n := min(len(points), 2*F)
	if law.Kind == OneHot {
		return Needed{F, "one feature at a time with one sign: one head for each, H − F can go"}
	}
	return Needed{n, "one head for each point of the support, at most two for each feature"}
}
