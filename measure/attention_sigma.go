package measure

import (
	"errors"
	"math"

	"github.com/eigenhead/eigenhead/attention"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/spectrum"
)

// The attention.* measures of this file need singular or eigenvalues of A.

var attentionSigma1 = &Measure{
	Name: "attention.sigma1", Unit: "1", Per: PerHead,
	Doc: Doc{
		Summary: "Largest singular value of the attention matrix.",
		Formula: "σ₁(A)",
		Range:   "[1, √T] for rows that sum to 1. The bound brackets it (Rayleigh below, Collatz–Wielandt above), rounding of the logits included.",
		Null:    attentionNullText,
		Meaning: "A sink of weight p gives about p·√T: the head can amplify one token's value by that much. Uniform causal attention has 1.7 at T = 256.",
	},
	Source:  "arXiv 2410.07799; causal values are ours (docs/theory.md 2.2).",
	Compute: func(s *Subject) (Value, error) { return sigmaOf(s, 0) },
	Null:    attentionNull("attention.sigma1"),
}

var attentionSigma2 = &Measure{
	Name: "attention.sigma2", Unit: "1", Per: PerHead,
	Doc: Doc{
		Summary: "Second singular value of the attention matrix.",
		Formula: "σ₂(A)",
		Range:   "[0, σ₁]; no value for T = 1. The bound is that of a block residual, which certifies a value and not its index; upper is rigorous and loose.",
		Null:    attentionNullText,
		Meaning: "What is left of differences between tokens beside the leading direction: small values collapse ranks in width.",
	},
	Source:  "arXiv 2410.07799 (spectral gap).",
	Compute: func(s *Subject) (Value, error) { return sigmaOf(s, 1) },
	Null:    attentionNull("attention.sigma2"),
}

var attentionGap = &Measure{
	Name: "attention.gap", Unit: "1", Per: PerHead,
	Doc: Doc{
		Summary: "Spectral gap of the attention matrix.",
		Formula: "1 − σ₂/σ₁",
		Range:   "[0, 1]; no value for T = 1.",
		Null:    attentionNullText,
		Meaning: "Near 1: A is close to rank one, and one such layer nearly collapses the tokens to one direction. A causal mask leaves hardly any gap.",
	},
	Source:  "arXiv 2410.07799 (there for A without mask).",
	Compute: gapOf,
	Null:    attentionNull("attention.gap"),
}

var attentionEigenGap = &Measure{
	Name: "attention.eigen_gap", Unit: "1", Per: PerHead,
	Doc: Doc{
		Summary: "Gap between the two largest eigenvalues of the attention matrix, in modulus.",
		Formula: "1 − |λ₂|/|λ₁|; causal: the eigenvalues are the diagonal and A[0,0] = 1, so 1 − max_{i≥1} A[i,i]",
		Range:   "[0, 1]; no value without a mask, where eigenvalues are not the diagonal, or for T = 1.",
		Null:    attentionNullText,
		Meaning: "How fast repeating the same attention would forget. 0: some later token attends to itself alone.",
	},
	Source:  "arXiv 2410.07799 (eigenvalue gap); under a causal mask the triangular form gives it exactly.",
	Compute: eigenGapOf,
	Null:    attentionNull("attention.eigen_gap"),
}

var attentionStableRank = &Measure{
	Name: "attention.stable_rank", Unit: "1", Per: PerHead,
	Doc: Doc{
		Summary: "Stable rank of the attention matrix.",
		Formula: "‖A‖_F²/σ₁²",
		Range:   "[1, T]",
		Null:    attentionNullText,
		Meaning: "Near 1: A is close to rank one. Random attention does not go to 1 with T but to e^{s²} (no mask): it is the layers' product that collapses.",
	},
	Source:  "arXiv 2410.07799; the limit e^{s²} is docs/theory.md 2.2.",
	Compute: attentionStableRankOf,
	Null:    attentionNull("attention.stable_rank"),
}

func sigmaOf(s *Subject, k int) (Value, error) {
	t, err := s.top()
	if err != nil {
		return Value{}, err
	}
	v := t.First
	if k == 1 {
		if t.Second == nil {
			return Value{}, omit("one token has one singular value")
		}
		v = *t.Second
	}
	out, err := bounded(v.Value, v.Bound, v.Kind)
	if err == nil {
		out.Upper, out.UpperKind = &v.Upper, v.UpperKind
	}
	return out, err
}

func gapOf(s *Subject) (Value, error) {
	t, err := s.top()
	if err != nil {
		return Value{}, err
	}
	if t.Second == nil {
		return Value{}, omit("one token has one singular value")
	}
	if t.First.Value == 0 {
		return Value{}, omit("a learned sink takes all attention: A = 0")
	}
	ratio := t.Second.Value / t.First.Value
	// d(σ₂/σ₁) to first order, both at their bounds.
	return bounded(1-ratio, (t.Second.Bound+ratio*t.First.Bound)/t.First.Value, t.Second.Kind)
}

func attentionStableRankOf(s *Subject) (Value, error) {
	t, err := s.top()
	if err != nil {
		return Value{}, err
	}
	r, err := s.rows()
	if err != nil {
		return Value{}, err
	}
	if t.First.Value == 0 {
		return Value{}, omit("a learned sink takes all attention: A = 0")
	}
	v := r.FrobeniusSquared / t.First.Value / t.First.Value
	return bounded(v, 2*v*t.First.Bound/t.First.Value, t.First.Kind)
}

// eigenGapOf reads the eigenvalues of a triangular A off its diagonal. Row 0 sees
// itself alone, so A[0,0] = 1 is the largest unless a learned sink takes part.
func eigenGapOf(s *Subject) (Value, error) {
	if s.pair().Mask.Kind == head.MaskNone {
		return Value{}, omit("without a mask the eigenvalues are not the diagonal")
	}
	r, err := s.rows()
	if err != nil {
		return Value{}, err
	}
	first, second := 0.0, 0.0
	for _, v := range r.Diagonal {
		first, second = max(first, v), max(second, min(first, v))
	}
	if len(r.Diagonal) < 2 {
		return Value{}, omit("one token has one eigenvalue")
	}
	if first == 0 {
		return Value{}, omit("a learned sink takes all attention: A = 0")
	}
	return number(1 - second/first)
}

// top returns σ₁ and σ₂ of A. Simulated heads, which are averaged, need them to
// three digits and no certificates.
func (s *Subject) top() (*attention.TopValues, error) {
	return s.head().top.get(func() (*attention.TopValues, error) {
		a, err := s.operator()
		if err != nil {
			return nil, err
		}
		if !s.run.opts.simulated {
			t, err := attention.Top(s.run.ctx, a, s.seed())
			if err == nil && s.run.opts.Certify {
				err = attention.Certify(s.run.ctx, a, t, s.seed())
			}
			return t, err
		}
		rows, _ := a.Dims()
		l, err := spectrum.Top(s.run.ctx, a, spectrum.TopOptions{K: min(2, rows), Block: 4, Tol: simulatedTolerance(s.pair().Mask), Seed: nullSeed})
		if err != nil {
			return nil, err
		}
		t := &attention.TopValues{First: attention.TopValue{Value: l.Sigma[0]}}
		if len(l.Sigma) > 1 {
			t.Second = &attention.TopValue{Value: l.Sigma[1]}
		}
		return t, nil
	})
}

// simulatedTol bounds the residual, relative to σ₁; errors of the values are of
// the order of its square over the gap.
const simulatedTol = 2e-3

// maskedField holds what the masked convention gives.
type maskedField struct {
	frobenius, sigma1, bound float64
	kind                     string
}

// masked computes σ₁ of the masked energy field, which has no factors.
func (s *Subject) masked() (*maskedField, error) {
	return s.head().masked.get(func() (*maskedField, error) {
		if s.bad() != nil {
			return nil, s.bad()
		}
		e, err := attention.NewMasked(s.run.ctx, s.pair(), &attention.Options{Memory: s.memory(), Progress: s.counts()})
		if err != nil {
			return nil, refuse(err)
		}
		defer e.Release()
		f := &maskedField{frobenius: e.Frobenius(), kind: "block residual: a singular value lies this close (Kahan); rounding of the scores is not in it"}
		if f.frobenius == 0 {
			return f, nil
		}
		o := spectrum.TopOptions{K: 1, Block: 4, Seed: s.seed()}
		if s.run.opts.simulated {
			o.Tol = simulatedTol
		}
		l, err := spectrum.Top(s.run.ctx, e, o)
		if err != nil {
			return nil, refuse(err)
		}
		f.sigma1, f.bound = l.Sigma[0], l.Residual/math.Sqrt2
		return f, nil
	})
}

// refuse turns errors about the numbers of one head into reasons.
func refuse(err error) error {
	var nf *attention.NonFiniteError
	var r *attention.RangeError
	var sr *spectrum.RangeError
	var sn *spectrum.NonFiniteError
	if errors.As(err, &nf) || errors.As(err, &r) || errors.As(err, &sr) || errors.As(err, &sn) {
		return &Omit{Reason: err.Error()}
	}
	return err
}
