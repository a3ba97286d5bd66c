package measure

import (
	"math"
	"sync"

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

// writesOf multiplies Gram matrices where it may, and the writes themselves where
// heads cancel so far that the former would lose the whole in rounding.
//
// Accuracy: a few √(T·d_v)·ε of ‖A_h‖‖W_h‖, squared for the norms, and relative to
// ‖total‖ at most 1/cancels² times that.
func writesOf(s *Subject) (*writes, error) {
	l := s.Layer
	if l.AV.Rows == 0 || !l.WO.Known() {
		return nil, omit("needs A·V and W_O, which the source does not hold")
	}
	n := len(l.Pairs)
	if n == 0 || l.AV.Cols != l.WO.Cols || l.AV.Cols%n != 0 {
		return nil, omit("A·V has %d columns and W_O %d for %d heads", l.AV.Cols, l.WO.Cols, n)
	}
	wo, err := l.WO.Load()
	if err != nil {
		return nil, refuse(err)
	}
	if w := writesByGrams(l.AV, wo, n); w != nil {
		return w, nil
	}
	return writesAsTheyAre(l.AV.Float64(), wo, n), nil
}

// cancels is the share of Σ_h ‖write_h‖ below which ‖Σ_h write_h‖ is too small to
// be taken from inner products: half of the digits of what is lost are lost.
const cancels = 0.01

// writesByGrams takes all inner products of writes from two Gram matrices,
//
//	⟨write_h, write_g⟩ = Σ (A_hᵀA_g) ∘ (W_hᵀW_g)      A_h [T, d_v], W_h [d_model, d_v]
//
// a few heads' rows of them at a time. It returns nil where the sum cancels or
// leaves the range of float64. Cost: O((T + d_model)·(n·d_v)²), halved by symmetry.
func writesByGrams(av, wo linalg.Matrix32, n int) *writes {
	dv := av.Cols / n
	group := max(1, gramCols/dv)
	inners := linalg.New(n, n) // ⟨write_h, write_g⟩ for g ≥ h
	par.Do((n+group-1)/group, func(i int) {
		from := i * group
		to := min(n, from+group)
		space, _ := writeSpaces.Get().(*writeSpace)
		if space == nil {
			space = new(writeSpace)
		}
		defer writeSpaces.Put(space)
		left, all := space.grams((to-from)*dv, av.ColSlice(from*dv, n*dv), wo.ColSlice(from*dv, n*dv))
		for h := from; h < to; h++ {
			for g := h; g < n; g++ {
				sum := 0.0
				for a := range dv {
					row, at := (h-from)*dv+a, (g-from)*dv
					sum += linalg.Dot(left.Row(row)[at:at+dv], all.Row(row)[at:at+dv])
				}
				inners.Set(h, g, sum)
			}
		}
	})
	w := &writes{norm: make([]float64, n), onTotal: make([]float64, n)}
	sizes, square := 0.0, 0.0
	for h := range n {
		w.norm[h] = math.Sqrt(max(0, inners.At(h, h)))
		sizes += w.norm[h]
		for g := range n {
			w.onTotal[h] += inners.At(min(h, g), max(h, g))
		}
		square += w.onTotal[h]
	}
	if !(square >= cancels*cancels*sizes*sizes && square > tiny && square < huge) {
		return nil
	}
	w.total = math.Sqrt(square)
	return w
}

// gramCols is how many columns of A·V and of W_O are multiplied by all that follow.
const gramCols = 256

// writeSpace is memory for the two Gram matrices of some heads with all that follow.
type writeSpace struct{ left, all, tile linalg.Matrix }

var writeSpaces sync.Pool

// grams returns the first m rows of avᵀ·av and woᵀ·wo.
func (s *writeSpace) grams(m int, av, wo linalg.Matrix32) (left, all linalg.Matrix) {
	s.left, s.all = linalg.Reuse(s.left, m, av.Cols), linalg.Reuse(s.all, m, av.Cols)
	s.gram(s.left, av)
	s.gram(s.all, wo)
	return s.left, s.all
}

// gram computes the first rows of aᵀ·a, some rows of a in float64 at a time.
func (s *writeSpace) gram(dst linalg.Matrix, a linalg.Matrix32) {
	clear(dst.Data)
	for r := 0; r < a.Rows; r += writeRows {
		tile := a.RowSlice(r, min(a.Rows, r+writeRows))
		s.tile = linalg.Reuse(s.tile, tile.Rows, tile.Cols)
		tile.Into(s.tile)
		linalg.AddGramPart(dst, s.tile)
	}
	linalg.Mirror(dst)
}

// Between them squares and their sums keep their digits.
const (
	tiny = 0x1p-400
	huge = 0x1p400
)

// writesAsTheyAre goes through W_O [d_model, n·d_v] in tiles of its rows r, so that
// neither the writes nor W_O in float64 are ever whole in memory:
//
//	‖write_h‖²        = Σ (A_hᵀA_h) ∘ Σ_r W_rhᵀW_rh         A_h [T, d_v], W_rh [r, d_v]
//	⟨write_h, total⟩  = Σ_r Σ (A_hᵀ·total_r) ∘ W_rhᵀ        total_r = Σ_g A_g W_rgᵀ
//
// Cost: O(T·n·d_v·d_model), the price of the layer's own output projection, twice.
func writesAsTheyAre(av linalg.Matrix, wo linalg.Matrix32, n int) *writes {
	dv := av.Cols / n
	w := &writes{norm: make([]float64, n), onTotal: make([]float64, n)}
	grams := make([]linalg.Matrix, n)
	for h := range grams {
		grams[h] = linalg.New(dv, dv)
	}
	var totals []float64 // ‖total_r‖_F
	for from := 0; from < wo.Rows; from += writeRows {
		tile := wo.RowSlice(from, min(wo.Rows, from+writeRows)).Float64()
		total := linalg.New(av.Rows, tile.Rows)
		linalg.MulTB(total, av, tile) // [T, n·d_v]·[r, n·d_v]ᵀ
		totals = append(totals, linalg.Frobenius(total))
		par.Do(n, func(h int) {
			ah, wh := av.ColSlice(h*dv, (h+1)*dv), tile.ColSlice(h*dv, (h+1)*dv)
			on, gram := linalg.New(tile.Rows, dv), linalg.New(dv, dv)
			linalg.MulTA(on, total, ah) // [T, r]ᵀ·[T, d_v]
			w.onTotal[h] += inner(on, wh)
			linalg.MulTA(gram, wh, wh)
			for a := range dv {
				linalg.Axpy(1, gram.Row(a), grams[h].Row(a))
			}
		})
	}
	w.total = linalg.Norm2(totals)
	par.Do(n, func(h int) {
		ah, a := av.ColSlice(h*dv, (h+1)*dv), linalg.New(dv, dv)
		linalg.MulTA(a, ah, ah)
		w.norm[h] = math.Sqrt(max(0, inner(a, grams[h])))
	})
	return w
}

// writeRows is how many rows of A·V and of W_O are multiplied at once: enough for the
// product to be efficient, few enough for its result to be small.
const writeRows = 256

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
