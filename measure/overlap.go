package measure

import (
	"math"

	"github.com/eigenhead/eigenhead/attention"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
)

var overlapMax = &Measure{
	Name: "overlap.max", Unit: "1", Per: PerHead,
	Doc: Doc{
		Summary: "How close the head's energy field is to that of the nearest other head of its layer.",
		Formula: "max over g ≠ h of |⟨E_h, E_g⟩_F|/(‖E_h‖‖E_g‖), fields in the full convention whatever --energy says",
		Range:   "[0, 1]; overlap_with names the head and keeps the sign. No value for a layer of one head, or if E = 0.",
		Null:    "The largest of independent |N(0, v)|: v = 1/T² for heads with separate keys, 1/(T·d) + 1/T² for heads that share keys.",
		Meaning: "Near 1: redundant heads, which score alike. Heads that share a KV head overlap more by chance alone.",
	},
	Source:  "The order parameter r of arXiv 2603.03993, normalised and measured on real heads; null ours (docs/theory.md 1.5).",
	Compute: overlapOf,
	Null:    overlapNull,
}

// overlaps holds the cosines between the energy fields of a layer's heads.
type overlaps struct {
	cosines linalg.Matrix
	row     []int // by pair: row of cosines, or −1 where E has no direction
}

// overlaps leaves out heads that are not finite, so that they spoil no other.
func (s *Subject) overlaps() (*overlaps, error) {
	return s.run.overlaps.get(func() (*overlaps, error) {
		var finite []head.Pair
		var keys []linalg.Matrix
		o := &overlaps{row: make([]int, len(s.Layer.Pairs))}
		for i, p := range s.Layer.Pairs {
			o.row[i] = -1
			if s.run.bad[i] == nil {
				o.row[i] = len(finite)
				finite = append(finite, p)
				keys = append(keys, (&Subject{Layer: s.Layer, Index: i, run: s.run}).centered())
			}
		}
		c, defined, err := attention.OverlapsCentered(finite, keys)
		if err != nil {
			return nil, refuse(err)
		}
		o.cosines = c
		for i, r := range o.row {
			if r >= 0 && !defined[r] {
				o.row[i] = -1
			}
		}
		return o, nil
	})
}

// nearest returns the pair with the largest |cosine|, the first of them, and the
// cosine; false if there is none.
func (o *overlaps) nearest(h int) (other int, cosine float64, found bool) {
	if o.row[h] < 0 {
		return 0, 0, false
	}
	for g, r := range o.row {
		if g == h || r < 0 {
			continue
		}
		if c := o.cosines.At(o.row[h], r); !found || math.Abs(c) > math.Abs(cosine) {
			other, cosine, found = g, c, true
		}
	}
	return other, cosine, found
}

func overlapOf(s *Subject) (Value, error) {
	if bad := s.bad(); bad != nil {
		return Value{}, bad
	}
	if len(s.Layer.Pairs) < 2 {
		return Value{}, omit("the layer has one head")
	}
	if s.Layer.Sparse {
		return Value{}, errSparse
	}
	o, err := s.overlaps()
	if err != nil {
		return Value{}, err
	}
	_, c, found := o.nearest(s.Index)
	if !found {
		return Value{}, omit("the energy field of the head, or of all others, is zero")
	}
	return number(math.Abs(c))
}

// overlapNull integrates the law of the largest of independent half-normals,
//
//	E max = ∫ 1 − Π_g F_g(x) dx,   E max² = ∫ 2x (1 − Π_g F_g(x)) dx,   F_g(x) = erf(x/(√2 σ_g))
//
// For independent Gaussian q, q', k (docs/theory.md 1.5): cos(E_h, E_g) has mean 0 and
// variance 1/T² if keys are separate, (T + d + 1)/(T²·d) if they are shared.
func overlapNull(s *Subject) (*Null, error) {
	p := s.pair()
	T, d := float64(p.T()), float64(p.Dim())
	shared, separate := 0, 0
	for g, q := range s.Layer.Pairs {
		switch {
		case g == s.Index:
		case q.KVHead == p.KVHead:
			shared++
		default:
			separate++
		}
	}
	key := overlapShape{p.T(), p.Dim(), shared, separate}
	if n, known := s.run.opts.Nulls.overlaps.Load(key); known {
		n := n.(Null)
		return &n, nil
	}
	n := largestHalfNormal(shared, math.Sqrt((T+d+1)/d)/T, separate, 1/T)
	s.run.opts.Nulls.overlaps.Store(key, n)
	return &n, nil
}

// overlapShape is all that the null of overlap.max depends on.
type overlapShape struct{ T, dim, shared, separate int }

// largestHalfNormal returns mean and spread of the largest of a |N(0, sa²)| and
// b |N(0, sb²)|, by the trapezoid rule, which is exact to many digits for so
// smooth an integrand.
func largestHalfNormal(a int, sa float64, b int, sb float64) Null {
	const steps = 4000
	top := 0.0
	if a > 0 {
		top = 10 * sa
	}
	if b > 0 {
		top = max(top, 10*sb)
	}
	h := top / steps
	first, second := 0.0, 0.0
	for i := range steps {
		x := float64(i) * h
		tail := 1 - math.Pow(math.Erf(x/sa/math.Sqrt2), float64(a))*math.Pow(math.Erf(x/sb/math.Sqrt2), float64(b))
		if i == 0 {
			tail /= 2
		}
		first += tail * h
		second += 2 * x * tail * h
	}
	return Null{Mean: first, SD: math.Sqrt(max(0, second-first*first)), Kind: kindClosed}
}
