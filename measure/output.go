package measure

import (
	"math"

	"github.com/eigenhead/eigenhead/internal/par"
	"github.com/eigenhead/eigenhead/linalg"
)

// The output.* measures weigh what each head writes to the residual stream,
// write_h = A V W_O before bias and post-norm, against what all heads write.

var outputShare = &Measure{
	Name: "output.share", Unit: "1", Per: PerHead,
	Doc: Doc{
		Summary: "Size of the head's write to the residual stream against the size of the layer's.",
		Formula: "‖write_h‖_F / ‖Σ_g write_g‖_F, write_h = A V W_O of head h before bias and post-norm",
		Range:   "[0, ∞): above 1 where heads cancel; no value if the layer writes nothing.",
		Meaning: "Near 0: the head is dormant and could be cut. Shares need not sum to 1, since writes overlap or cancel: see output.part.",
	},
	Source:  "Ours.",
	Compute: shareOf,
	NoNull:  "depends on W_V and W_O, for which chance has no scale",
}

var outputPart = &Measure{
	Name: "output.part", Unit: "1", Per: PerHead,
	Doc: Doc{
		Summary: "The head's part in the layer's write: its projection on the whole.",
		Formula: "⟨write_h, Σ_g write_g⟩ / ‖Σ_g write_g‖²",
		Range:   "Real; the parts of a layer sum to 1. No value if the layer writes nothing.",
		Meaning: "Negative: the head works against the layer's write. Near 0 with a large share: it writes at right angles to the rest.",
	},
	Source:  "Ours.",
	Compute: partOf,
	NoNull:  "depends on W_V and W_O, for which chance has no scale",
}

// writes holds, for the heads of one layer, ‖write_h‖ and ⟨write_h, total⟩.
type writes struct {
	norm, onTotal []float64
	total         float64 // ‖Σ write‖_F
}

// writesOf needs one [T, d_model] product for the layer and none per head:
//
//	‖write_h‖²          = Σ_ab (A_hᵀA_h)_ab (W_hW_hᵀ)_ab      A_h [T, d_v], W_h [d_v, d_model]
//	⟨write_h, total⟩    = Σ (A_hᵀ·total) ∘ W_h                total = Σ_g A_g W_g
//
// Accuracy: a few T·d_v·ε of ‖A_h‖‖W_h‖, squared for the first. Cost:
// O(T·n·d_v·d_model), the price of the layer's own output projection, twice.
func writesOf(s *Subject) (*writes, error) {
	l := s.Layer
	if l.AV.Rows == 0 || l.WO.Rows == 0 {
		return nil, omit("needs A·V and W_O, which the source does not hold")
	}
	n := len(l.Pairs)
	if n == 0 || l.AV.Cols != l.WO.Rows || l.AV.Cols%n != 0 {
		return nil, omit("A·V has %d columns and W_O %d rows for %d heads", l.AV.Cols, l.WO.Rows, n)
	}
	dv := l.AV.Cols / n
	total := linalg.New(l.AV.Rows, l.WO.Cols)
	linalg.Mul(total, l.AV, l.WO) // [T, n·d_v]·[n·d_v, d_model]
	w := &writes{norm: make([]float64, n), onTotal: make([]float64, n), total: linalg.Frobenius(total)}
	group := max(1, writeCols/dv) // heads multiplied at once
	par.Do((n+group-1)/group, func(part int) {
		first, last := part*group, min(n, (part+1)*group)
		on := linalg.New((last-first)*dv, l.WO.Cols)
		linalg.MulTA(on, l.AV.ColSlice(first*dv, last*dv), total) // [T, heads·d_v]ᵀ·[T, d_model]
		for h := first; h < last; h++ {
			av, wo := l.AV.ColSlice(h*dv, (h+1)*dv), l.WO.RowSlice(h*dv, (h+1)*dv)
			a, b := linalg.New(dv, dv), linalg.New(dv, dv)
			linalg.MulTA(a, av, av)
			linalg.MulTB(b, wo, wo)
			w.norm[h] = math.Sqrt(max(0, inner(a, b)))
			w.onTotal[h] = inner(on.RowSlice((h-first)*dv, (h-first+1)*dv), wo)
		}
	})
	return w, nil
}

// writeCols is how many columns of A·V are multiplied at once: enough for the
// product to be efficient, few enough for its result to be small.
const writeCols = 256

// inner returns Σ a∘b.
func inner(a, b linalg.Matrix) float64 {
	sum := 0.0
	for i := range a.Rows {
		sum += linalg.Dot(a.Row(i), b.Row(i))
	}
	return sum
}

func shareOf(s *Subject) (Value, error) {
	w, err := s.writes()
	if err != nil {
		return Value{}, err
	}
	return number(w.norm[s.Index] / w.total)
}

func partOf(s *Subject) (Value, error) {
	w, err := s.writes()
	if err != nil {
		return Value{}, err
	}
	return number(w.onTotal[s.Index] / w.total / w.total)
}
