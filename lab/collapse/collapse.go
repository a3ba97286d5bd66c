// Package collapse simulates attention layers at initialization and shows when and
// why they lose rank: the spectral gap of a softmax matrix, the stable rank of the
// token covariance in width and depth, gradients, what published fixes change and
// what a causal mask changes, each beside what theory predicts. It draws its own
// matrices, or takes layers that somebody measured, and knows nothing of files,
// model families or forward passes: an oracle shares no code with what it tests.
package collapse

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// Attention is the ensemble that attention matrices are drawn from.
type Attention string

// The ensembles.
const (
	Markov   Attention = "markov"   // rows of i.i.d. positive weights, divided by their sum
	KeyQuery Attention = "keyquery" // softmax(X·W_Q·(X·W_K)ᵀ/√d_h)
	Identity Attention = "identity" // A = I: what the value weights do alone
	Gaussian Attention = "gaussian" // softmax of i.i.d. Gaussian logits
)

// Fix is a change of the attention matrix or its weights that is said to help.
type Fix string

// The fixes. What each can and cannot do is in docs/lab-collapse.md.
const (
	NoFix         Fix = "none"
	Center        Fix = "center"         // A − 11ᵀ/T
	CenterCausal  Fix = "center-causal"  // A − C, C_ij = 1[j ≤ i]/i
	Differential  Fix = "differential"   // A₁ − λA₂, head-wise RMSNorm, 1 − λ_init
	Softmax1      Fix = "softmax1"       // one more logit: 0, or the learned sink
	SpectralNorm  Fix = "spectral-norm"  // A/σ₁(A): changes no ratio
	SigmaReparam  Fix = "sigma-reparam"  // W/σ₁(W) for W_Q, W_K and W_V
	Temperature   Fix = "temperature"    // logits divided by Config.Tau
	SecondSoftmax Fix = "second-softmax" // softmax(8·(A − 11ᵀ/T)): a mistake that some make
)

// Fixes lists them in the order that reports print them.
var Fixes = []Fix{NoFix, Center, CenterCausal, Differential, Softmax1, SpectralNorm, SigmaReparam, Temperature, SecondSoftmax}

// Norm says where a LayerNorm (eps 1e-5, no affine part) stands.
type Norm string

// The places of the norm.
const (
	NoNorm   Norm = "none"
	PreNorm  Norm = "pre"  // of the input of the attention branch
	PostNorm Norm = "post" // after the skip
)

// Skip is the residual connection around attention.
type Skip string

// The skips.
const (
	NoSkip     Skip = "none"
	PlainSkip  Skip = "plain"  // X + branch; doubled after, as the published code does
	ScaledSkip Skip = "scaled" // X + branch/√d
)

// Init is the law of W_Q and W_K.
type Init string

// The laws of W_Q and W_K; W_V is always N(0, Config.ValueVar).
const (
	Xavier Init = "xavier" // N(0, 2/(fan_in + fan_out))
	Normal Init = "normal" // N(0, 1)
	LeCun  Init = "lecun"  // N(0, 1/fan_in)
)

// Law is the law of a Markov weight; mean 1, standard deviation Sigma.
type Law string

// The laws.
const (
	LogNormal Law = "lognormal"
	Gamma     Law = "gamma"
	Uniform   Law = "uniform"  // needs Sigma ≤ 1/√3
	TwoPoint  Law = "twopoint" // 1 ± Sigma; needs Sigma < 1
)

// Input is the law of the tokens that enter layer 1.
type Input string

// The inputs.
const (
	Isometric  Input = "isometric"  // orthonormal rows; orthonormal columns times √(T/d) where T > d
	GaussianIn Input = "gaussian"   // N(0, 1/d)
	Correlated Input = "correlated" // rows of norm about 1 with cosine Rho
)

// Config is one architecture at initialization. The zero value of a field means
// what its comment says; Check fills these in.
type Config struct {
	Attention Attention // "": Markov
	Law       Law       // of Markov weights; "": LogNormal
	Sigma     float64   // Markov: standard deviation of a weight over its mean; Gaussian: of a logit; 0: 1
	LogitVar  float64   // exponent a: σ² is divided by T^a; 0: σ does not depend on T
	Init      Init      // of W_Q and W_K; "": Xavier
	ValueVar  string    // "1" or "1/d": variance of W_V; "": "1"
	Input     Input     // "": Isometric
	Rho       float64   // cosine of Correlated tokens; 0: 0.5
	Heads     int       // above 1 with W_O ~ N(0, 1/d); 0: 1, W_O = I
	Mask      head.Mask
	Norm      Norm    // "": NoNorm
	Skip      Skip    // "": NoSkip
	Undoubled bool    // a plain skip without the published code's doubling
	MLP       bool    // X + W₂·relu(X·W₁) after attention, four times as wide
	Fix       Fix     // "": NoFix
	Tau       float64 // Temperature; 0: 0.5
	Sink      float64 // logit of Softmax1's sink; 0 is the published value
}

// Check fills in defaults and refuses what makes no sense, naming the flag.
func (c Config) Check() (Config, error) {
	c = c.filled()
	lists := []struct {
		flag, found string
		want        []string
	}{
		{"--attention", string(c.Attention), []string{string(Markov), string(KeyQuery), string(Identity), string(Gaussian)}},
		{"--law", string(c.Law), []string{string(LogNormal), string(Gamma), string(Uniform), string(TwoPoint)}},
		{"--init", string(c.Init), []string{string(Xavier), string(Normal), string(LeCun)}},
		{"--value-variance", c.ValueVar, []string{"1", "1/d"}},
		{"--input", string(c.Input), []string{string(Isometric), string(GaussianIn), string(Correlated)}},
		{"--norm", string(c.Norm), []string{string(NoNorm), string(PreNorm), string(PostNorm)}},
		{"--skip", string(c.Skip), []string{string(NoSkip), string(PlainSkip), string(ScaledSkip)}},
		{"--fix", string(c.Fix), fixNames()},
	}
	for _, l := range lists {
		if !slices.Contains(l.want, l.found) {
			return c, &xerr.Usage{Flag: l.flag, Found: l.found, Want: strings.Join(l.want, ", ")}
		}
	}
	if err := c.checkNumbers(); err != nil {
		return c, err
	}
	return c, c.checkTogether()
}

func (c Config) filled() Config {
	c.Attention = or(c.Attention, Markov)
	c.Law = or(c.Law, LogNormal)
	c.Sigma = or(c.Sigma, 1)
	c.Init = or(c.Init, Xavier)
	c.ValueVar = or(c.ValueVar, "1")
	c.Input = or(c.Input, Isometric)
	c.Rho = or(c.Rho, 0.5)
	c.Heads = or(c.Heads, 1)
	c.Norm = or(c.Norm, NoNorm)
	c.Skip = or(c.Skip, NoSkip)
	c.Fix = or(c.Fix, NoFix)
	c.Tau = or(c.Tau, 0.5)
	return c
}

func or[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}

func fixNames() (names []string) {
	for _, f := range Fixes {
		names = append(names, string(f))
	}
	return names
}

func (c Config) checkNumbers() error {
	limit := map[Law]float64{Uniform: 1 / math.Sqrt(3), TwoPoint: 1}[c.Law]
	switch {
	case !(c.Sigma > 0) || math.IsInf(c.Sigma, 0):
		return &xerr.Usage{Flag: "--sigma", Found: c.Sigma, Want: "a number above 0"}
	case c.Attention == Gaussian && c.Sigma > 20:
		return &xerr.Usage{Flag: "--sigma", Found: c.Sigma, Want: "at most 20, as the standard deviation of a logit"}
	case c.Attention == Markov && limit > 0 && c.Sigma > limit:
		return &xerr.Usage{Flag: "--sigma", Found: c.Sigma, Want: fmt.Sprintf("at most %.4g: weights of law %s are positive", limit, c.Law)}
	case !(c.Tau > 0) || math.IsInf(c.Tau, 0):
		return &xerr.Usage{Flag: "--tau", Found: c.Tau, Want: "a number above 0"}
	case !(c.Rho > 0 && c.Rho < 1):
		return &xerr.Usage{Flag: "--rho", Found: c.Rho, Want: "a cosine between 0 and 1"}
	case c.Heads < 1:
		return &xerr.Usage{Flag: "--heads", Found: c.Heads, Want: "at least 1"}
	case !(c.LogitVar >= 0 && c.LogitVar <= 4):
		return &xerr.Usage{Flag: "--variance-exponent", Found: c.LogitVar, Want: "0 to 4"}
	case math.IsNaN(c.Sink) || math.Abs(c.Sink) > 700:
		return &xerr.Usage{Flag: "--sink", Found: c.Sink, Want: "a logit within ±700"}
	}
	return nil
}

// checkTogether refuses flags that contradict each other.
func (c Config) checkTogether() error {
	causal := c.Mask.Kind == head.MaskCausal
	clash := func(flag, found, want string) error { return &xerr.Usage{Flag: flag, Found: found, Want: want} }
	switch {
	case c.Mask.Kind != head.MaskNone && !causal:
		return clash("--mask", c.Mask.String(), "none or causal")
	case c.Fix == CenterCausal && !causal:
		return clash("--fix center-causal", "--mask none", "--mask causal: without a mask it is --fix center")
	case c.Attention == Identity && c.Fix != NoFix:
		return clash("--fix "+string(c.Fix), "--attention identity", "another attention: the identity has nothing to fix")
	case c.Attention == Identity && causal:
		return clash("--mask causal", "--attention identity", "another attention: the identity sees one key")
	case c.Fix == Temperature && c.Attention == Markov:
		return clash("--fix temperature", "--attention markov", "keyquery or gaussian: Markov weights have no logits")
	case c.Fix == SecondSoftmax && causal:
		return clash("--fix second-softmax", "--mask causal", "--mask none")
	}
	return nil
}

// Name returns the configuration's name, for the published ones that of the
// published table: "A(X)_perp + upscaled skip + LN".
func (c Config) Name() string {
	c = c.filled()
	name := map[Attention]string{Markov: "A", KeyQuery: "A(X)", Identity: "Identity A", Gaussian: "A(G)"}[c.Attention]
	switch c.Fix {
	case NoFix:
	case Center:
		name += "_perp"
	case CenterCausal:
		name += "_perp_causal"
	default:
		name += " + " + string(c.Fix)
	}
	name += map[Skip]string{NoSkip: "", PlainSkip: " + skip", ScaledSkip: " + upscaled skip"}[c.Skip]
	if c.Skip == PlainSkip && c.Undoubled {
		name += " (undoubled)"
	}
	if c.MLP {
		name += " + MLP"
	}
	name += map[Norm]string{NoNorm: "", PreNorm: " + pre-LN", PostNorm: " + LN"}[c.Norm]
	return name + c.details()
}

// details lists what differs from the published settings.
func (c Config) details() string {
	var list []string
	note := func(show bool, format string, args ...any) {
		if show {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	note(c.Mask.Kind == head.MaskCausal, "causal")
	note(c.Attention == Markov && c.Law != LogNormal, "%s", c.Law)
	note(c.Attention == Markov && c.Sigma != 1, "sigma %.4g", c.Sigma)
	note(c.Attention == Gaussian, "std %.4g", c.Sigma)
	note(c.LogitVar != 0, "variance/T^%.3g", c.LogitVar)
	note(c.Attention == KeyQuery && c.Init != Xavier, "%s", c.Init)
	note(c.ValueVar != "1", "W_V %s", c.ValueVar)
	note(c.Input != Isometric, "%s tokens", c.Input)
	note(c.Input == Correlated && c.Rho != 0.5, "cosine %.3g", c.Rho)
	note(c.Heads != 1, "%d heads", c.Heads)
	note(c.Fix == Temperature, "tau %.3g", c.Tau)
	note(c.Fix == Softmax1 && c.Sink != 0, "sink %.3g", c.Sink)
	if list == nil {
		return ""
	}
	return " [" + strings.Join(list, ", ") + "]"
}

// WeightSigma returns σ of the unnormalized weights, standard deviation over mean,
// at T tokens; for KeyQuery with N(0, 1/fan_in) or narrower weights it has no fixed
// value and is 0.
func (c Config) WeightSigma(T int) float64 {
	sigma := c.Sigma * math.Pow(float64(T), -c.LogitVar/2)
	switch c.Attention {
	case Markov:
		return sigma
	case Gaussian:
		if c.Fix == Temperature {
			sigma /= c.Tau
		}
		return math.Sqrt(math.Expm1(sigma * sigma))
	}
	return 0
}
