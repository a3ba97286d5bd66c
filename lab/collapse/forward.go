package collapse

import (
	"context"
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// Size is one point of a sweep: T tokens of width d = T/Gamma.
type Size struct {
	T     int     `json:"T"`
	Gamma float64 `json:"gamma"`
}

// Width returns d = round(T/γ).
func (s Size) Width() int { return int(math.Round(float64(s.T) / s.Gamma)) }

// Check refuses sizes without a network.
func (s Size) Check(heads int) error {
	switch {
	case s.T < 2:
		return &xerr.Usage{Flag: "--T", Found: s.T, Want: "at least 2 tokens"}
	case !(s.Gamma > 0) || math.IsInf(s.Gamma, 0):
		return &xerr.Usage{Flag: "--gamma", Found: s.Gamma, Want: "a ratio T/d above 0"}
	case float64(s.T)/s.Gamma > 1<<20:
		return &xerr.Usage{Flag: "--gamma", Found: s.Gamma, Want: fmt.Sprintf("a width d = T/gamma of at most %d; T is %d", 1<<20, s.T)}
	case s.Width() < 1:
		return &xerr.Usage{Flag: "--gamma", Found: s.Gamma, Want: fmt.Sprintf("a width d = T/gamma of at least 1; T is %d", s.T)}
	case s.Width()%heads != 0 || s.Width() < heads:
		return &xerr.Usage{Flag: "--heads", Found: heads, Want: fmt.Sprintf("a divisor of the width d = %d", s.Width())}
	}
	return nil
}

// Forward draws one network and returns the observables after each layer. light
// leaves out all but the stable rank of the token covariance.
//
// The result depends on the configuration, size and seed alone. Errors: ctx's between
// layers; linalg's where a spectrum does not converge. Cost: per layer a few T×T×d
// products and one singular value decomposition of min(T, d) columns.
func Forward(ctx context.Context, c Config, size Size, depth int, seed uint64, light bool) ([]Values, error) {
	s := newSim(c, size, "forward", seed)
	s.thin = light && s.canBeThin()
	x := s.input()
	layers := make([]Values, 0, depth)
	for l := 1; l <= depth; l++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		next, attention := s.layer(x, l)
		x = next.settled()
		if s.thin {
			x = x.compressed()
		}
		v, err := observe(x, light)
		if err != nil {
			return nil, fmt.Errorf("%s, T=%d, layer %d: %w", c.Name(), size.T, l, err)
		}
		if !light && attention != nil {
			v.set("entropy", meanEntropy(attention, s.Mask.Kind == head.MaskCausal))
		}
		layers = append(layers, v)
	}
	return layers, nil
}

func newSim(c Config, size Size, what string, seed uint64) *sim {
	c = c.filled()
	name := fmt.Sprintf("%s/%s/T=%d/d=%d", what, c.Name(), size.T, size.Width())
	return &sim{Config: c, T: size.T, D: size.Width(), rng: newStream(name, seed)}
}

func meanEntropy(heads []*mixing, causalMask bool) float64 {
	total := 0.0
	for _, a := range heads {
		total += rowEntropy(a.dense(), causalMask)
	}
	return total / float64(len(heads))
}

// InitialStableRank is that of X_0·X_0ᵀ for isometric tokens.
func InitialStableRank(size Size) float64 { return float64(min(size.T, size.Width())) }
