package arch

import (
	"maps"
	"slices"
	"strings"
)

// Activation is the nonlinearity of an MLP.
type Activation int

// The activations of the supported families.
const (
	SiLU          Activation = iota // x·σ(x)
	GELU                            // x·Φ(x), with erf
	GELUTanh                        // its tanh approximation
	ReLU                            // max(x, 0)
	ClampedSwiGLU                   // (clamp(up, ±7) + 1)·g·σ(1.702·g), g = min(gate, 7)
)

// String returns the usual name.
func (a Activation) String() string {
	return [...]string{"silu", "gelu", "gelu (tanh)", "relu", "clamped swiglu"}[a]
}

// activations are the names that transformers gives them.
var activations = map[string]Activation{
	"silu": SiLU, "swish": SiLU, "gelu": GELU, "gelu_fast": GELUTanh, "gelu_new": GELUTanh, "gelu_pytorch_tanh": GELUTanh, "relu": ReLU,
}

// activation reads the name of an activation, or the reference implementation's default.
func (s *settings) activation(key, def, source string) Activation {
	a, known := activations[s.wordOr(key, def, source)]
	if !known && s.err == nil {
		names := slices.Sorted(maps.Keys(activations))
		s.refuse(key, "one of "+strings.Join(names, ", "), "this activation is not supported")
	}
	return a
}
