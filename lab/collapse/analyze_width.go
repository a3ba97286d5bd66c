package collapse

import (
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/randmat"
)

func analyzeWidth(r *Result) {
	names, configs := r.configurations("width")
	for i, name := range names {
		c := configs[i]
		switch law := c.widthLaw(); law {
		case outlierKept:
			r.fitOver("width", name, "log10_excess", true, func(f *Fit, last *Cell) {
				f.Theory, f.Published = ptr(ExcessExponent(f.Layer, c.LogitVar)), ptr(PublishedExponent(f.Layer))
				if c.Attention == KeyQuery { // deeper layers have input-dependent scales: no closed form
					f.Theory = nil
					if f.Layer == 1 {
						f.Theory = ptr(-1)
					}
					return
				}
				s := c.Sigma
				if c.Attention == Gaussian {
					s = randmat.LognormalSigma(c.Sigma)
				}
				log := log10ExcessLaw(s*math.Pow(float64(last.T), -c.LogitVar/2), f.Gamma, last.T, f.Layer)
				f.Constant = ptr(math.Pow(10, last.Stats["log10_excess"].Mean-log))
			})
		case outlierGone:
			r.fitOver("width", name, "stable_rank", false, func(f *Fit, last *Cell) {
				f.Theory = ptr(1)
				f.Constant = ptr(last.Stats["stable_rank"].Mean / (CenteredShare(f.Layer, f.Gamma, c.Attention == Identity) * float64(last.T)))
			})
		case causalLaw:
			r.fitOver("width", name, "log10_excess", true, func(*Fit, *Cell) {})
			r.causalWidth(name)
		default:
			r.fitOver("width", name, "log10_excess", true, func(*Fit, *Cell) {})
		}
	}
	r.widthLines()
}

type widthKind int

const (
	noLaw widthKind = iota
	outlierKept
	outlierGone
	causalLaw
)

// widthLaw says which closed form holds for the stable rank over T.
func (c Config) widthLaw() widthKind {
	plain := c.Skip == NoSkip && c.Norm == NoNorm && !c.MLP && c.Heads == 1 && c.Input == Isometric
	switch {
	case !plain:
		return noLaw
	case c.Attention == Identity || c.Fix == Center && c.Attention == Markov && c.Mask.Kind == head.MaskNone:
		return outlierGone
	case c.Mask.Kind == head.MaskCausal && c.Fix == NoFix:
		return causalLaw
	case c.Fix == NoFix && c.Mask.Kind == head.MaskNone && (c.Attention != KeyQuery || c.Init == Normal):
		return outlierKept
	}
	return noLaw
}

func (r *Result) causalWidth(name string) {
	first, last := r.find("width", name, "stable_rank"), r.largestCell("width", name, "stable_rank", 1)
	if len(first) == 0 || last == nil || last.T < 2*first[0].T {
		return
	}
	a, b := first[0].Stats["stable_rank"], last.Stats["stable_rank"]
	r.statement("width", name+": with a causal mask sr(S_1) does not tend to 1", "it rises, to 1.49 at T=1024",
		fmt.Sprintf("%s at T=%d, %s at T=%d", short(a.Mean), first[0].T, short(b.Mean), last.T), b.Mean > 1.1 && b.Mean > a.Mean-a.SD)
}

// widthLines states what summaries of the literature get wrong, on the largest size.
func (r *Result) widthLines() {
	c := r.largestCell("width", "A", "stable_rank", 1)
	if c == nil {
		return
	}
	s := c.Stats["stable_rank"]
	r.statement("width", fmt.Sprintf("A, T=%d: sr(S_1) tends to 1, from T at the input", c.T), "1 + "+short(ExcessLaw(1, c.Gamma, c.T, 1)),
		short(s.Mean)+" ± "+short(s.SD/math.Sqrt(float64(max(s.Seeds, 1)))), s.Mean < 1+2*ExcessLaw(1, c.Gamma, c.T, 1))
	three := r.largestCell("width", "A", "log10_excess", 3)
	if three != nil {
		want := log10ExcessLaw(1, three.Gamma, three.T, 3)
		r.statement("width", fmt.Sprintf("A, T=%d: lg(sr(S_3) - 1), the power law of layer 3", three.T), short(want), short(three.Stats["log10_excess"].Mean),
			math.Abs(three.Stats["log10_excess"].Mean-want) < 0.4)
	}
}

func analyzeDepth(r *Result) {
	names, configs := r.configurations("depth")
	for i, name := range names {
		last := r.largestCell("depth", name, "stable_rank", 5)
		if last == nil {
			continue
		}
		s, c := last.Stats["stable_rank"], configs[i]
		at := fmt.Sprintf("%s, T=%d: ", name, last.T)
		plain := c.Skip == NoSkip && c.Norm == NoNorm && !c.MLP
		switch {
		case c.Mask.Kind == head.MaskCausal && c.Fix == NoFix && c.Attention == Gaussian && c.Sigma <= 0.5 && plain:
			r.statement("depth", at+"with a causal mask collapse in depth remains", "sr(S_5) about 1.001", fmt.Sprintf("%.6g", s.Mean), s.Mean < 1.02)
		case plain && c.Fix == NoFix && c.Mask.Kind == head.MaskNone && c.Attention != Identity:
			r.statement("depth", at+"five layers leave rank one", "sr(S_5) = 1", fmt.Sprintf("1 + 10^%s", short(last.Stats["log10_excess"].Mean)), s.Mean < 1.001)
		case plain && (c.Attention == Identity || c.Fix == Center && c.Attention == Markov):
			share := CenteredShare(5, last.Gamma, c.Attention == Identity) * float64(last.T)
			r.statement("depth", at+"without the outlier rank is lost slowly", fmt.Sprintf("sr(S_5) above its large-T limit %s", short(share)), short(s.Mean), s.Mean > share && s.Mean > 1.2)
		}
	}
}
