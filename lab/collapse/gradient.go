package collapse

import (
	"context"
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/linalg"
)

// Gradient draws one network of the given depth and returns the size of the
// derivative of its output by the value weights of one layer:
//
//	log10_gradient           log₁₀ ‖∂X_L/∂W_l‖_F²
//	log10_gradient_operator  log₁₀ of the squared largest singular value (input-independent A only)
//	log10_query_gradient     log₁₀ ‖∂X_L/∂W_Q,l‖_F² (KeyQuery only)
//	gradient_se              relative standard error where it is estimated from probes
//
// For an attention that does not depend on the tokens the derivative is a Kronecker
// product, so that exactly
//
//	‖∂X_L/∂W_l‖_F = ‖A_L⋯A_1·X_0·W_1⋯W_(l−1)‖_F · ‖W_(l+1)⋯W_L‖_F
//
// and no T·d × d² Jacobian is formed. For KeyQuery see network.
func Gradient(ctx context.Context, c Config, size Size, depth, layer int, seed uint64) (Values, error) {
	if layer < 1 || layer > depth {
		return nil, &xerr.Usage{Flag: "--layer", Found: layer, Want: fmt.Sprintf("1 to the depth, %d", depth)}
	}
	c, err := c.Check()
	if err != nil {
		return nil, err
	}
	if c.Attention == KeyQuery {
		return inputDependent(ctx, c, size, depth, layer, seed)
	}
	if err := productForm(c); err != nil {
		return nil, err
	}
	s := newSim(c, size, fmt.Sprintf("gradient/L=%d/l=%d", depth, layer), seed)
	left := s.input()
	right := scaled{M: eye(s.D)}
	sd := 1.0
	if c.ValueVar == "1/d" {
		sd = 1 / math.Sqrt(float64(s.D))
	}
	for l := 1; l <= depth; l++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if c.Attention != Identity {
			left = s.fixed(s.one(left), left, l).apply(left)
		}
		w := s.rng.normals(s.D, s.D, sd)
		switch {
		case l < layer:
			left = left.mul(w)
		case l > layer:
			right = right.mul(w)
		}
	}
	v := Values{}
	v.set("log10_gradient", 2*math.Log10(2)*(left.log2Norm()+right.log2Norm()))
	first, err := singularValues(left)
	if err != nil {
		return nil, err
	}
	v.set("log10_gradient_operator", 2*(math.Log10(first.First*largest(right.M))+float64(first.FirstExp+right.E)*math.Log10(2)))
	return v, nil
}

// productForm refuses what is not a plain product of matrices.
func productForm(c Config) error {
	if c.Skip != NoSkip || c.Norm != NoNorm || c.MLP || c.Heads != 1 || c.Fix == Differential {
		return &xerr.Usage{Flag: "--experiment gradient", Found: c.Name(), Want: "attention and value weights alone, or --attention keyquery with skip and norm, for which there is a backward pass"}
	}
	return nil
}

// log2Norm returns log₂‖X‖_F, ‖X‖² = T‖c‖² + ‖R‖².
func (t tokens) log2Norm() float64 {
	a := t.C.log2Norm() + math.Log2(float64(t.R.M.Rows))/2
	b := t.R.log2Norm()
	hi, lo := max(a, b), min(a, b)
	if math.IsInf(hi, -1) {
		return hi
	}
	return hi + math.Log1p(math.Exp2(2*(lo-hi)))/(2*math.Ln2)
}

func eye(n int) linalg.Matrix {
	m := linalg.New(n, n)
	for i := range n {
		m.Set(i, i, 1)
	}
	return m
}
