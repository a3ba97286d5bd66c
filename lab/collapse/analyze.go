package collapse

import (
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/head"
)

// fitOver fits a quantity over T for each gamma and layer of a configuration; log says
// that the observable is log₁₀ already. adjust fills in theory.
func (r *Result) fitOver(experiment, configuration, observable string, log bool, adjust func(f *Fit, last *Cell)) {
	type group struct {
		gamma        float64
		layer, depth int
	}
	var order []group
	groups := map[group][]*Cell{}
	for _, c := range r.find(experiment, configuration, observable) {
		g := group{c.Gamma, c.Layer, c.Depth}
		if groups[g] == nil {
			order = append(order, g)
		}
		groups[g] = append(groups[g], c)
	}
	for _, g := range order {
		cells := groups[g]
		var sizes []int
		var logs [][]float64
		for _, c := range cells {
			v := c.Stats[observable].Values
			if !log {
				v = logged(v)
			}
			if len(v) == c.Seeds && c.Seeds > 0 {
				sizes, logs = append(sizes, c.T), append(logs, v)
			}
		}
		if distinct(sizes) < 2 || len(sizes) != distinct(sizes) {
			continue
		}
		f := fitPower(sizes, logs)
		f.Experiment, f.Configuration, f.Gamma, f.Layer, f.Depth, f.Quantity = experiment, configuration, g.gamma, g.layer, g.depth, observable
		if log {
			f.Quantity = "10^" + observable
		}
		adjust(&f, cells[len(cells)-1])
		f.judge()
		r.Fits = append(r.Fits, f)
	}
}

func distinct(x []int) int {
	seen := map[int]bool{}
	for _, v := range x {
		seen[v] = true
	}
	return len(seen)
}

func logged(v []float64) []float64 {
	var out []float64
	for _, x := range v {
		if x > 0 {
			out = append(out, math.Log10(x))
		}
	}
	return out
}

func ptr(x float64) *float64 { return &x }

// largestCell returns the last cell of the largest T, at the first gamma that has it;
// nil if there is none. layer 0 stands for any.
func (r *Result) largestCell(experiment, configuration, observable string, layer int) *Cell {
	var best *Cell
	for _, c := range r.find(experiment, configuration, observable) {
		if (layer == 0 || c.Layer == layer) && (best == nil || c.T > best.T || c.T == best.T && c.Gamma == best.Gamma) {
			best = c
		}
	}
	return best
}

func analyzeGap(r *Result) {
	names, configs := r.configurations("gap")
	for i, name := range names {
		c := configs[i]
		causalMask := c.Mask.Kind == head.MaskCausal
		for _, observable := range []string{"sigma2", "lambda2"} {
			if causalMask && observable == "lambda2" {
				continue // the largest diagonal entry but one: of order one
			}
			r.fitOver("gap", name, observable, false, func(f *Fit, last *Cell) {
				if e, ok := c.sigma2Exponent(); ok && !causalMask {
					f.Theory = ptr(e)
				}
			})
		}
		last := r.largestCell("gap", name, "sigma1", 1)
		if last == nil {
			continue
		}
		if causalMask {
			r.causalGap(name, last)
			continue
		}
		if s := c.WeightSigma(last.T); s > 0 && c.Fix == NoFix {
			at := fmt.Sprintf("%s, T=%d: ", name, last.T)
			r.near("gap", at+"sr(A) tends to 1 + sigma^2, not to 1", last.Stats["attention_stable_rank"], 1+s*s, 0.03*(1+s*s))
			if s < 0.6 {
				r.near("gap", at+"sqrt(T)*s2 tends to 2*sigma", scaled1(last.Stats["sigma2"], math.Sqrt(float64(last.T))), 2*s, 0.06*s)
			}
			if l, ok := last.Stats["lambda2"]; ok && s < 1.2 {
				r.near("gap", at+"sqrt(T)*|l2| tends to sigma", scaled1(l, math.Sqrt(float64(last.T))), s, 0.08*s)
			}
			if gram := r.largestCell("gap", name, "log10_gram_excess", 1); gram != nil {
				v := gram.Stats["log10_gram_excess"]
				r.near("gap", fmt.Sprintf("%s, T=%d: T*(sr(AAt) - 1) tends to 2*sigma^4: this one goes to 1", name, gram.T),
					newStat(powers(v.Values, float64(gram.T))), 2*math.Pow(s, 4), 0.15*2*math.Pow(s, 4))
			}
		}
		if c.Attention == KeyQuery && c.Init == Xavier && c.Input == Isometric && c.Fix == NoFix && last.Gamma <= 1 {
			r.near("gap", fmt.Sprintf("%s, T=%d: T^1.5*s2 tends to the edge of key-query logits, not to the quarter circle", name, last.T),
				scaled1(last.Stats["sigma2"], math.Pow(float64(last.T), 1.5)), XavierEdge(last.Gamma), 0.1*XavierEdge(last.Gamma))
		}
	}
}

// sigma2Exponent is the power of T in σ₂ without a mask.
func (c Config) sigma2Exponent() (float64, bool) {
	switch {
	case c.Attention == Identity || c.Fix != NoFix && c.Fix != Center && c.Fix != Softmax1 && c.Fix != Differential:
		return 0, false
	case c.Fix == Center && c.Attention == KeyQuery:
		return 0, false
	case c.Attention == KeyQuery && c.Init == Xavier:
		return -1.5, true
	case c.Attention == KeyQuery && c.Init == LeCun:
		return 0, false
	}
	return -0.5 - c.LogitVar/2, true
}

func powers(logs []float64, f float64) []float64 {
	out := make([]float64, len(logs))
	for i, l := range logs {
		out[i] = f * math.Pow(10, l)
	}
	return out
}

// scaled1 is the statistic of f times the values.
func scaled1(s Stat, f float64) Stat {
	out := make([]float64, len(s.Values))
	for i, v := range s.Values {
		out[i] = f * v
	}
	return newStat(out)
}

// causalGap says what a causal mask changes: σ₁ rises with log T, σ₂ follows.
func (r *Result) causalGap(name string, last *Cell) {
	var first *Cell
	for _, c := range r.find("gap", name, "sigma1") {
		if c.Gamma == last.Gamma && (first == nil || c.T < first.T) {
			first = c
		}
	}
	s1, s2 := last.Stats["sigma1"], last.Stats["sigma2"]
	if last.Config.Attention == Gaussian && last.Config.Sigma <= 1 && last.Config.Fix == NoFix && last.T >= 2*first.T {
		r.statement("gap", fmt.Sprintf("%s: with a causal mask s1 rises only with log T and s2 follows, so there is no gap in width", name),
			"s1 and s2 creep toward 2 (1.69 and 1.17 at T=256, uniform rows)",
			fmt.Sprintf("s1 %s to %s, s2 %s to %s over T = %d to %d", short(first.Stats["sigma1"].Mean), short(s1.Mean),
				short(first.Stats["sigma2"].Mean), short(s2.Mean), first.T, last.T),
			s1.Mean < 2.2 && s2.Mean > first.Stats["sigma2"].Mean && s2.Mean/s1.Mean > 0.6)
	}
}

func analyzeBulk(r *Result) {
	for _, b := range r.Bulks {
		root := math.Sqrt(float64(b.Size.T))
		m2, m4 := 0.0, 0.0
		for _, s := range b.Sigma[1:] {
			x := root * s
			m2 += x * x / float64(b.Size.T)
			m4 += x * x * x * x / float64(b.Size.T)
		}
		s := b.Config.WeightSigma(b.Size.T)
		claim := fmt.Sprintf("%s, T=%d: moments of the bulk sqrt(T)*s", b.Configuration, b.Size.T)
		switch {
		case s > 0 && b.Config.Mask.Kind == head.MaskNone && (b.Config.Fix == NoFix || b.Config.Fix == Center):
			r.statement("bulk", claim+" are those of the quarter circle", fmt.Sprintf("%s, %s (sigma^2, 2*sigma^4)", short(s*s), short(2*math.Pow(s, 4))),
				fmt.Sprintf("%s, %s", short(m2), short(m4)), math.Abs(m2/(s*s)-1) < 0.1 && math.Abs(m4/(2*math.Pow(s, 4))-1) < 0.35)
		case b.Config.Attention == KeyQuery && b.Config.Init == Normal && b.Config.Fix == NoFix && b.Config.Mask.Kind == head.MaskNone && b.Config.Input == Isometric:
			s2 := math.E - 1
			r.statement("bulk", claim+": the fourth is above the quarter circle's by gamma", fmt.Sprintf("%s, %s (e - 1, 2(e-1)^2 + gamma)", short(s2), short(2*s2*s2+b.Size.Gamma)),
				fmt.Sprintf("%s, %s; quarter circle %s", short(m2), short(m4), short(2*s2*s2)), math.Abs(m2/s2-1) < 0.1 && math.Abs(m4/(2*s2*s2+b.Size.Gamma)-1) < 0.35)
		}
	}
}

func analyzeGradient(r *Result) {
	names, configs := r.configurations("gradient")
	for i, name := range names {
		c := configs[i]
		r.fitOver("gradient", name, "log10_gradient", true, func(f *Fit, last *Cell) {
			f.Published = ptr(PublishedGradientExponent(f.Depth))
			if c.Attention != Markov || c.LogitVar != 0 || last.Gamma != 1 || f.Layer != 1 || c.Mask.Kind != head.MaskNone {
				return
			}
			if c.Fix != NoFix {
				f.Published = nil
			}
			f.Theory = ptr(GradientExponent(f.Depth, c.Fix != Center, c.ValueVar == "1"))
			if c.ValueVar != "1" {
				f.Published = nil
			}
			if c.Fix != NoFix && c.Fix != Center {
				f.Theory = nil
			} else if c.ValueVar == "1" {
				power, sigma := *f.Theory, 1.0
				if c.Fix == Center {
					sigma = math.Pow(c.Sigma, 2*float64(f.Depth))
				}
				f.Constant = ptr(math.Pow(10, last.Stats["log10_gradient"].Mean-power*math.Log10(float64(last.T))) / sigma)
			}
		})
	}
	with, without := r.largestCell("gradient", "A", "log10_gradient", 1), r.largestCell("gradient", "A_perp", "log10_gradient", 1)
	if with != nil && without != nil && with.T == without.T && with.Depth == without.Depth {
		ratio := with.Stats["log10_gradient"].Mean - without.Stats["log10_gradient"].Mean
		want := float64(with.Depth-1) * math.Log10(float64(with.T))
		r.statement("gradient", fmt.Sprintf("T=%d, L=%d: removing the outlier divides the squared gradient by T^(L-1)", with.T, with.Depth),
			"10^"+short(want), "10^"+short(ratio), math.Abs(ratio-want) < 0.3)
	}
}

func analyzeFixes(r *Result) {
	base := r.largestCell("fixes", "A(G) [std 1]", "gap", 1)
	if base == nil {
		return
	}
	gap := base.Stats["gap"].Mean
	compare := func(name, claim, theory string, ok func(c *Cell) bool) {
		if c := r.largestCell("fixes", name, "gap", 1); c != nil {
			r.statement("fixes", claim, theory, fmt.Sprintf("s1 %s, s2 %s, gap %s (without %s)", short(c.Stats["sigma1"].Mean), short(c.Stats["sigma2"].Mean),
				short(c.Stats["gap"].Mean), short(gap)), ok(c))
		}
	}
	same := func(c *Cell) bool { return math.Abs(c.Stats["gap"].Mean-gap) < 0.1 }
	compare("A(G)_perp [std 1]", "A - 11t/T removes the outlier", "no gap", func(c *Cell) bool { return c.Stats["gap"].Mean < 0.4 })
	compare("A(G) + spectral-norm [std 1]", "A/|A| changes no ratio", "the same gap", same)
	compare("A(G) + softmax1 [std 1]", "softmax-1 has rows that sum to almost 1", "the same gap", same)
	compare("A(G) + differential [std 1]", "differential attention scales the outlier by 1 - lambda", "a gap as long as lambda is not 1", func(c *Cell) bool {
		return c.Stats["gap"].Mean > 0.3 && math.Abs(c.Stats["sigma1"].Mean-(1-lambdaInit(1))) < 0.1
	})
	compare("A(G) + second-softmax [std 1]", "a second softmax makes the gap anew, and larger", "s1 = 1, s2 ~ T^-1.5", func(c *Cell) bool { return c.Stats["gap"].Mean > gap })
}

// paperLines states how the published sweep compares.
func (r *Result) paperLines() {
	judged, beyond3, beyond5, values := 0, 0, 0, 0
	for _, d := range r.Published {
		if d.Z == nil {
			values++
			continue
		}
		judged++
		if math.Abs(*d.Z) > 3 {
			beyond3++
		}
		if math.Abs(*d.Z) > 5 {
			beyond5++
		}
	}
	if judged == 0 {
		return
	}
	r.statement("paper", "cells of the published table within 3 standard errors of the difference", "at least 97 %, none beyond 5",
		fmt.Sprintf("%d of %d (%.1f %%), %d beyond 5", judged-beyond3, judged, 100*float64(judged-beyond3)/float64(judged), beyond5),
		float64(judged-beyond3) >= 0.97*float64(judged) && beyond5 == 0)
	r.Lines = append(r.Lines, Line{Experiment: "paper", Claim: "cells where the published code gives nan and float64 gives a value", Theory: "all", Measured: fmt.Sprint(values)})
}
