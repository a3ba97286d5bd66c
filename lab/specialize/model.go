// Package specialize is the theory of how the heads of one softmax attention
// layer specialize, as an instrument: the single-location model in the limit of
// high dimension as a flow of order parameters, its finite-dimensional SGD, the
// Bayes risks and closed forms that they are measured against, the phases, and
// what pruning heads costs. It knows nothing of checkpoints, files or flags.
package specialize

import (
	"fmt"

	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/linalg"
)

// Activation turns the scores χ_hl of H heads over L tokens into weights σ_hl.
type Activation string

// The activations. With a = 1 for sum and 1/H for mean:
const (
	Softmax  Activation = "softmax"  // a·e^χ_hl / Σ_l' e^χ_hl'
	Softmax1 Activation = "softmax1" // a·e^(χ_hl+b_h) / (1 + Σ_l' e^(χ_hl'+b_h))
	Bayes    Activation = "bayes"    // e^(χ_hl+b_h) / Σ_h'l' e^(χ_h'l'+b_h'), one softmax over all entries
)

// Activations lists them in the order that reports print them.
var Activations = []Activation{Softmax, Softmax1, Bayes}

// Aggregate says how the heads' weights are added.
type Aggregate string

// The two ways; Bayes-softmax is one normalization over all heads and has neither.
const (
	Mean Aggregate = "mean"
	Sum  Aggregate = "sum"
)

// Limits of the sizes, chosen so that no run asks for memory by accident.
const (
	maxTokens   = 256
	maxHeads    = 64
	maxFeatures = 32
)

// Model is one attention layer of the single-location model:
//
//	x_eps = Σ_f θ_f k*_f/√D + N(0, I),  x_l = N(0, I),  y = x_eps
//	ŷ = Σ_l w_l x_l,  w_l = Σ_h σ(χ)_hl,  χ_hl = ⟨k_h, x_l⟩/√D
//
// Its state is m_hf = ⟨k_h, k*_f⟩/D, r_hh' = ⟨k_h, k_h'⟩/D and the biases b_h.
type Model struct {
	Tokens, Heads, Features int
	Activation              Activation
	Aggregate               Aggregate // "" for Bayes
	Bias                    bool      // b is trained; softmax does not feel a bias
}

// NewModel returns a model with the defaults of its activation: softmax takes the
// mean, softmax-1 the sum with a trained bias, Bayes-softmax a trained bias.
func NewModel(tokens, heads, features int, a Activation) Model {
	m := Model{Tokens: tokens, Heads: heads, Features: features, Activation: a, Bias: a != Softmax}
	switch a {
	case Softmax:
		m.Aggregate = Mean
	case Softmax1:
		m.Aggregate = Sum
	}
	return m
}

// Check returns a *xerr.Usage where a size or combination makes no sense.
func (m Model) Check() error {
	for _, s := range []struct {
		flag      string
		found     int
		low, high int
	}{{"--tokens", m.Tokens, 2, maxTokens}, {"--heads", m.Heads, 1, maxHeads}, {"--features", m.Features, 1, maxFeatures}} {
		if s.found < s.low || s.found > s.high {
			return &xerr.Usage{Flag: s.flag, Found: s.found, Want: fmt.Sprintf("%d to %d", s.low, s.high)}
		}
	}
	switch m.Activation {
	case Softmax:
		if m.Bias {
			return &xerr.Usage{Flag: "--bias on", Found: "softmax, which a bias does not change", Want: "off, or another activation",
				Hint: "the bias cancels in e^(χ+b)/Σe^(χ+b); leave --bias out to train it only where it acts"}
		}
		return m.checkAggregate()
	case Softmax1:
		return m.checkAggregate()
	case Bayes:
		if m.Aggregate != "" {
			return &xerr.Usage{Flag: "--aggregate " + string(m.Aggregate), Found: "Bayes-softmax, one normalization over all heads", Want: "softmax or softmax1",
				Hint: "leave --aggregate out to use each activation's own"}
		}
		return nil
	}
	return &xerr.Usage{Flag: "--activation", Found: string(m.Activation), Want: "softmax, softmax1 or bayes"}
}

func (m Model) checkAggregate() error {
	if m.Aggregate != Mean && m.Aggregate != Sum {
		return &xerr.Usage{Flag: "--aggregate", Found: string(m.Aggregate), Want: "mean or sum"}
	}
	return nil
}

// Columns is the width F + H of the factor K.
func (m Model) Columns() int { return m.Features + m.Heads }

// scale is a, by the number of heads that are there.
func (m Model) scale(heads int) float64 {
	if m.Aggregate == Mean {
		return 1 / float64(heads)
	}
	return 1
}

// String names the model as reports do, such as "softmax1 (sum, bias)".
func (m Model) String() string {
	bias := "no bias"
	if m.Bias {
		bias = "bias"
	}
	switch m.Activation {
	case Softmax:
		return fmt.Sprintf("%s (%s)", m.Activation, m.Aggregate)
	case Softmax1:
		return fmt.Sprintf("%s (%s, %s)", m.Activation, m.Aggregate, bias)
	}
	return fmt.Sprintf("%s (%s)", m.Activation, bias)
}

// State is a point of the dynamics in the factor form: m = K[:, :F] and r = K·Kᵀ.
type State struct {
	K linalg.Matrix // [H, F+H], or fewer rows after heads were taken out
	B []float64     // [H]
}

// NewState returns the zero state of a model.
func NewState(m Model) State {
	return State{K: linalg.New(m.Heads, m.Columns()), B: make([]float64, m.Heads)}
}

// Clone returns a copy.
func (s State) Clone() State { return State{K: s.K.Clone(), B: append([]float64(nil), s.B...)} }

// M returns m, a view [H, F].
func (s State) M(features int) linalg.Matrix { return s.K.ColSlice(0, features) }

// R returns r = K·Kᵀ [H, H].
func (s State) R() linalg.Matrix {
	r := linalg.New(s.K.Rows, s.K.Rows)
	linalg.MulTB(r, s.K, s.K)
	return r
}

// Without returns the state without one head.
func (s State) Without(h int) State {
	keep := make([]int, 0, s.K.Rows)
	for i := range s.K.Rows {
		if i != h {
			keep = append(keep, i)
		}
	}
	return s.Keep(keep)
}

// Keep returns the state of the given heads alone; K keeps its columns.
func (s State) Keep(heads []int) State {
	out := State{K: linalg.New(len(heads), s.K.Cols), B: make([]float64, len(heads))}
	for i, h := range heads {
		copy(out.K.Row(i), s.K.Row(h))
		out.B[i] = s.B[h]
	}
	return out
}
