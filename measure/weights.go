package measure

import (
	"math"
	"sync"

	"github.com/eigenhead/eigenhead/linalg"
	"github.com/eigenhead/eigenhead/spectrum"
)

// The weights.* measures look at W = scale·W_Qᵀ W_K [d_model, d_model], the form
// that scores two normed inputs, with RoPE and biases left out. W stays two
// factors; they need no text.

const noWeightNull = "depends on how weights are scaled and trained; an i.i.d. Gaussian head says nothing about it"

var weightsK90 = &Measure{
	Name: "weights.qk_k90", Unit: "1", Per: PerHead,
	Doc: Doc{
		Summary: "Number of singular directions that carry 90 % of the query–key weights.",
		Formula: "least k with Σ_{c≤k} σ_c² ≥ 0.90·‖W‖_F², W = scale·W_Qᵀ W_K",
		Range:   "[1, d]; no value if W = 0.",
		Meaning: "Low: the head compares few features of its input, whatever the text.",
	},
	Source: "Ours. RoPE and biases are left out, so this is W at distance 0.",
	Compute: func(s *Subject) (Value, error) {
		w, err := weightsOf(s)
		if err != nil {
			return Value{}, err
		}
		k, err := w.spectrum.CoverCount(0.90)
		if err != nil {
			return Value{}, omit("W_Qᵀ W_K is zero")
		}
		return number(float64(k))
	},
	NoNull: noWeightNull,
}

var weightsSigma1 = &Measure{
	Name: "weights.qk_sigma1", Unit: "1", Per: PerHead,
	Doc: Doc{
		Summary: "Largest singular value of the query–key weights.",
		Formula: "σ₁(W), W = scale·W_Qᵀ W_K",
		Range:   "[0, ∞)",
		Meaning: "Bounds every score: |S_ij| ≤ σ₁·‖x_i‖·‖x_j‖ without RoPE. Growing through training: logits may blow up.",
	},
	Source: "arXiv 2303.06296 watches the same quantity (there of W_K W_Qᵀ, unscaled).",
	Compute: func(s *Subject) (Value, error) {
		w, err := weightsOf(s)
		if err != nil {
			return Value{}, err
		}
		if len(w.spectrum.Sigma) == 0 {
			return number(0)
		}
		return bounded(abs(s.pair().Scale)*w.spectrum.Sigma[0], abs(s.pair().Scale)*w.spectrum.Bound, boundRounding)
	},
	NoNull: noWeightNull,
}

var weightsTrace = &Measure{
	Name: "weights.qk_trace", Unit: "1", Per: PerHead,
	Doc: Doc{
		Summary: "Trace of the query–key weights: the sum of W's eigenvalues.",
		Formula: "tr W, W = scale·W_Qᵀ W_K",
		Range:   "Real.",
		Meaning: "Positive: tokens look for tokens like themselves. The mean eigenvalue tr W/d_model drives localisation in the theory of arXiv 2402.02098.",
	},
	Source: "arXiv 2402.02098 (trace of the eigenspectrum of W_QK); the scale is folded in.",
	Compute: func(s *Subject) (Value, error) {
		w, err := weightsOf(s)
		if err != nil {
			return Value{}, err
		}
		return number(s.pair().Scale * w.trace)
	},
	NoNull: noWeightNull,
}

var weightsVariance = &Measure{
	Name: "weights.qk_variance", Unit: "1", Per: PerHead,
	Doc: Doc{
		Summary: "Variance of the eigenvalues of the query–key weights.",
		Formula: "tr(W²)/d_model − (tr W/d_model)², W = scale·W_Qᵀ W_K",
		Range:   "Real; negative where complex eigenvalues (an antisymmetric part) prevail.",
		Meaning: "Small with a mean that is not zero: attention localises, and both rank and entropy collapse are held off (arXiv 2402.02098).",
	},
	Source: "arXiv 2402.02098 (variance of the eigenspectrum of W_QK); the scale is folded in.",
	Compute: func(s *Subject) (Value, error) {
		w, err := weightsOf(s)
		if err != nil {
			return Value{}, err
		}
		c, n := s.pair().Scale, float64(s.Layer.WQ.Cols)
		mean := c * w.trace / n
		return number(c*c*w.square/n - mean*mean)
	},
	NoNull: noWeightNull,
}

// weights holds what the four measures need of W_Qᵀ W_K, without the scale.
type weights struct {
	spectrum      spectrum.Spectrum
	trace, square float64 // tr and tr of the square
}

// weightsOf works on the factors: with M = W_K W_Qᵀ [d, d],
//
//	σ(W_QᵀW_K) from the factors' R,  tr(W_QᵀW_K) = tr M,  tr((W_QᵀW_K)²) = tr M²
//
// Cost: O(d_model·d²).
func weightsOf(s *Subject) (*weights, error) {
	return s.head().weights.get(func() (*weights, error) {
		l, p := s.Layer, s.pair()
		if !l.WQ.Known() || !l.WK.Known() {
			return nil, omit("needs W_Q and W_K, which the source does not hold")
		}
		d := p.Dim()
		if l.WQ.Rows < (p.ID.Head+1)*d || l.WK.Rows < (p.KVHead+1)*d {
			return nil, omit("W_Q has %d rows and W_K %d, too few for head %d of dimension %d", l.WQ.Rows, l.WK.Rows, p.ID.Head, d)
		}
		allQ, err := s.run.wq.get(l.WQ.Load)
		if err != nil {
			return nil, refuse(err)
		}
		keys, err := s.keyWeights(d)
		if err != nil {
			return nil, err
		}
		space, _ := weightSpaces.Get().(*linalg.Matrix)
		if space == nil {
			space = new(linalg.Matrix)
		}
		defer weightSpaces.Put(space)
		wq := linalg.Reuse(*space, d, l.WQ.Cols) // [d, d_model]
		*space = wq
		allQ.RowSlice(p.ID.Head*d, (p.ID.Head+1)*d).Into(wq)
		left, err := spectrum.NewTriangleT(wq)
		if err != nil {
			return nil, err
		}
		sp, err := spectrum.OfFactors(left, keys.factor)
		if err != nil {
			return nil, err
		}
		m := linalg.New(d, d)
		linalg.MulTB(m, keys.w, wq)
		w := &weights{spectrum: sp}
		for a := range d {
			w.trace += m.At(a, a)
			for b := range d {
				w.square += m.At(a, b) * m.At(b, a)
			}
		}
		return w, nil
	})
}

// weightSpaces holds memory for the query weights of a head.
var weightSpaces sync.Pool

// keyWeights are the weights of one KV head.
type keyWeights struct {
	w      linalg.Matrix    // [d, d_model]
	factor *spectrum.Factor // of its rows
}

func (s *Subject) keyWeights(d int) (*keyWeights, error) {
	return s.keyState().weights.get(func() (*keyWeights, error) {
		all, err := s.run.wk.get(s.Layer.WK.Load)
		if err != nil {
			return nil, refuse(err)
		}
		k := &keyWeights{w: all.RowSlice(s.pair().KVHead*d, (s.pair().KVHead+1)*d).Float64()}
		k.factor, err = spectrum.NewTriangleT(k.w)
		return k, err
	})
}

func abs(x float64) float64 { return math.Abs(x) }
