package collapse

import (
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/head"
)

// Experiment is one question with the simulations that answer it.
type Experiment struct {
	Name     string
	Title    string
	Question string
	plan     func(o *Options) []unit
	analyze  func(r *Result)
	columns  []column // of the terminal table
}

// column is one observable in a table.
type column struct{ name, head string }

// Experiments is the one visible list, in the order that a report tells the story.
var Experiments = []*Experiment{gapExperiment, bulkExperiment, widthExperiment, depthExperiment, gradientExperiment, fixesExperiment}

func lookup(name string) *Experiment {
	for _, e := range Experiments {
		if e.Name == name {
			return e
		}
	}
	return nil
}

func experimentNames() (names []string) {
	for _, e := range Experiments {
		names = append(names, e.Name)
	}
	return names
}

// cast returns the configurations of an experiment: its own, or the chosen one with
// its twin that has no fix.
func (o *Options) cast(own ...Config) []Config {
	if o.Config == nil {
		return own
	}
	c := *o.Config
	c.Undoubled = c.Undoubled || o.Undoubled
	twin := c
	twin.Fix = NoFix
	if c.filled().Fix == NoFix {
		return []Config{c}
	}
	return []Config{twin, c}
}

// grid makes one unit for each configuration, gamma, size and seed.
func (o *Options) grid(u unit, cast []Config, sizes []int, seeds int) []unit {
	var plan []unit
	if u.kind == matrixKind {
		u.values = max(o.Values, 2)
	}
	for _, gamma := range orList(o.Gamma, []float64{1}) {
		for _, c := range cast {
			for _, t := range orList(o.T, sizes) {
				for n := range or(o.Seeds, seeds) {
					u.config, u.size, u.seed = c, Size{t, gamma}, o.seed(n)
					plan = append(plan, u)
				}
			}
		}
	}
	return plan
}

// The configurations that experiments share.
var (
	plainMarkov  = Config{}
	centered     = Config{Fix: Center}
	narrow       = Config{Attention: Gaussian, Sigma: 0.3}
	identityA    = Config{Attention: Identity}
	xavierQK     = Config{Attention: KeyQuery}
	xavierFixed  = Config{Attention: KeyQuery, Fix: Center}
	normalQK     = Config{Attention: KeyQuery, Init: Normal}
	causalNarrow = Config{Attention: Gaussian, Sigma: 0.3, Mask: head.Causal}
	causalWide   = Config{Attention: Gaussian, Mask: head.Causal}
	causalFixed  = Config{Attention: Gaussian, Sigma: 0.3, Mask: head.Causal, Fix: CenterCausal}
)

var gapExperiment = &Experiment{
	Name: "gap", Title: "The spectral gap of one attention matrix",
	Question: "How far is the largest singular value of A above the others, and how does that depend on T, on the law of the logits, on a causal mask?",
	columns: []column{{"sigma1", "s1"}, {"sigma2", "s2"}, {"lambda2", "|l2|"}, {"gap", "1-s2/s1"}, {"eigen_gap", "1-|l2|"},
		{"attention_stable_rank", "sr(A)"}, {"log10_gram_excess", "lg sr(AAt)-1"}, {"entropy", "entropy"}},
	plan: func(o *Options) []unit {
		return o.grid(unit{experiment: "gap", kind: matrixKind}, o.cast(narrow, plainMarkov, centered, normalQK, xavierQK, causalNarrow, causalWide),
			[]int{64, 128, 256, 512, 1024}, 3)
	},
	analyze: analyzeGap,
}

var bulkExperiment = &Experiment{
	Name: "bulk", Title: "The bulk of singular values",
	Question: "Do the other singular values follow the quarter circle? For independent weights yes; key-query logits add a low-rank-like part.",
	columns:  []column{{"sigma2", "s2"}, {"attention_stable_rank", "sr(A)"}},
	plan: func(o *Options) []unit {
		return o.grid(unit{experiment: "bulk", kind: matrixKind, whole: true}, o.cast(narrow, plainMarkov, normalQK, xavierQK), []int{512}, 1)
	},
	analyze: analyzeBulk,
}

var widthExperiment = &Experiment{
	Name: "width", Title: "Collapse in width",
	Question: "How does the stable rank of the token covariance X_l·X_lᵀ change with T, after one, two and three layers?",
	columns:  []column{{"stable_rank", "sr(S_l)"}, {"log10_excess", "lg sr-1"}, {"token_cosine", "cosine"}},
	plan: func(o *Options) []unit {
		return o.grid(unit{experiment: "width", kind: forwardKind, depth: or(o.Depth, 3)},
			o.cast(plainMarkov, Config{Sigma: 0.5, LogitVar: 1}, Config{Sigma: 0.5, LogitVar: 2}, normalQK, centered, identityA, causalNarrow),
			[]int{32, 64, 128, 256}, 8)
	},
	analyze: analyzeWidth,
}

var depthExperiment = &Experiment{
	Name: "depth", Title: "Collapse in depth",
	Question: "How fast do layers lose rank, and which of skip, norm, centering and mask slows it?",
	columns: []column{{"stable_rank", "sr(S_l)"}, {"log10_excess", "lg sr-1"}, {"log10_residual", "lg residual"}, {"token_cosine", "cosine"},
		{"entropy", "entropy"}, {"log2_scale", "lb scale"}},
	plan: func(o *Options) []unit {
		return o.grid(unit{experiment: "depth", kind: forwardKind, depth: or(o.Depth, 12)},
			o.cast(plainMarkov, centered, identityA, xavierQK, xavierFixed, Config{Skip: PlainSkip, Norm: PostNorm},
				Config{Skip: ScaledSkip, Norm: PostNorm}, Config{Skip: ScaledSkip, Norm: PreNorm, MLP: true, ValueVar: "1/d"},
				Config{Fix: Center, Skip: ScaledSkip, Norm: PostNorm}, causalNarrow, causalFixed),
			[]int{32, 64, 128}, 3)
	},
	analyze: analyzeDepth,
}

var gradientExperiment = &Experiment{
	Name: "gradient", Title: "Gradients of the first layer",
	Question: "How does the squared derivative of the output by the first value weights grow with T and depth, with and without the outlier?",
	columns:  []column{{"log10_gradient", "lg |dX/dW|^2"}, {"log10_gradient_operator", "lg operator"}, {"log10_query_gradient", "lg |dX/dWq|^2"}},
	plan: func(o *Options) []unit {
		var plan []unit
		depths := []int{2, 3, 4}
		if o.Depth > 0 {
			depths = []int{o.Depth}
		}
		for _, depth := range depths {
			u := unit{experiment: "gradient", kind: gradientKind, depth: depth, layer: or(o.Layer, 1)}
			if u.layer > depth {
				continue
			}
			small := Config{ValueVar: "1/d"}
			smallFixed := Config{ValueVar: "1/d", Fix: Center}
			if o.Config != nil {
				plan = append(plan, o.grid(u, o.cast(), []int{16, 32, 64}, 5)...)
				continue
			}
			plan = append(plan, o.grid(u, []Config{plainMarkov, centered, identityA, small, smallFixed}, []int{16, 32, 64, 128}, 8)...)
			plan = append(plan, o.grid(u, []Config{normalQKSmall, normalQKSmallFixed}, []int{12, 16, 24}, 4)...)
		}
		return plan
	},
	analyze: analyzeGradient,
}

var (
	normalQKSmall      = Config{Attention: KeyQuery, Init: Normal, ValueVar: "1/d"}
	normalQKSmallFixed = Config{Attention: KeyQuery, Init: Normal, ValueVar: "1/d", Fix: Center}
)

var fixesExperiment = &Experiment{
	Name: "fixes", Title: "What each fix does to the gap and to depth",
	Question: "Which changes remove the outlier, which only scale it, and which make it anew?",
	columns: []column{{"sigma1", "s1"}, {"sigma2", "s2"}, {"gap", "1-s2/s1"}, {"row_sum", "row sum"}, {"attention_stable_rank", "sr(A)"},
		{"stable_rank", "sr(S_1)"}},
	plan: func(o *Options) []unit {
		var own []Config
		for _, f := range Fixes {
			if f != SigmaReparam { // acts on weights: shown on key-query
				own = append(own, Config{Attention: Gaussian, Fix: f})
			}
		}
		own = append(own, normalQK, Config{Attention: KeyQuery, Init: Normal, Fix: SigmaReparam},
			Config{Attention: Gaussian, Mask: head.Causal}, Config{Attention: Gaussian, Mask: head.Causal, Fix: Center},
			Config{Attention: Gaussian, Mask: head.Causal, Fix: CenterCausal})
		for i := range own {
			if own[i].Fix == CenterCausal && own[i].Mask.Kind == head.MaskNone {
				own = append(own[:i], own[i+1:]...)
				break
			}
		}
		cast := o.cast(own...)
		plan := o.grid(unit{experiment: "fixes", kind: matrixKind}, cast, []int{128}, 5)
		return append(plan, o.grid(unit{experiment: "fixes", kind: forwardKind, depth: or(o.Depth, 6)}, cast, []int{128}, 5)...)
	},
	analyze: analyzeFixes,
}

// statement formats a judged line.
func (r *Result) statement(experiment, claim, theory, measured string, agrees bool) {
	r.Lines = append(r.Lines, Line{Experiment: experiment, Claim: claim, Theory: theory, Measured: measured, Agrees: &agrees})
}

// near adds a line that agrees where measured is within tolerance of theory, or within
// three standard errors.
func (r *Result) near(experiment, claim string, s Stat, theory, tolerance float64) {
	se := 0.0
	if s.Seeds > 1 {
		se = s.SD / math.Sqrt(float64(s.Seeds))
	}
	r.statement(experiment, claim, short(theory), short(s.Mean)+" ± "+short(se), math.Abs(s.Mean-theory) <= max(tolerance, 3*se))
}

func short(x float64) string { return fmt.Sprintf("%.4g", x) }
