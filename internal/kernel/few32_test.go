package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestFewProducts32AgreeWithLoops(t *testing.T) {
	forced(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(23, 24))
		for _, rows := range []int{1, 2, 3, 4, 5, 84, 97, 130} {
			for _, cols := range []int{1, 7, 8, 15, 16, 31, 32, 63, 64, 65, 200, 2049, 9000} {
				if rows*cols > 400000 {
					continue
				}
				ars, pad := cols+5, 3
				a := drawn[float32](r, (rows-1)*ars+cols)
				for i := range a {
					switch i % 41 {
					case 0:
						a[i] = 0x1p-140 // not normal: counted all the same
					case 1:
						a[i] = 0
					}
				}
				long, short := drawn[float32](r, Few*(cols+pad)), drawn[float32](r, Few*(rows+pad))
				begin, back := drawPadded(r, Few*(rows+pad)), drawPadded(r, Few*(cols+pad))
				y := slices.Clone(begin)
				FewRows32(rows, cols, a, ars, long, cols+pad, y, rows+pad)
				for j := range Few {
					for i := range rows + pad {
						want, size := begin[j*(rows+pad)+i], 0.0
						for p := 0; i < rows && p < cols; p++ {
							term := float64(a[i*ars+p]) * float64(long[j*(cols+pad)+p])
							want, size = want+term, size+math.Abs(term)
						}
						if d := math.Abs(y[j*(rows+pad)+i] - want); !(d <= (fewTerms32/4+1)*0x1p-24*size+1e-13) || i >= rows && d != 0 {
							t.Fatalf("rows of [%d, %d]: vector %d at %d: %g, want %g", rows, cols, j, i, y[j*(rows+pad)+i], want)
						}
					}
				}
				z := slices.Clone(back)
				FewCols32(rows, cols, a, ars, short, rows+pad, z, cols+pad)
				for j := range Few {
					for c := range cols + pad {
						want, size := back[j*(cols+pad)+c], 0.0
						for i := 0; c < cols && i < rows; i++ {
							term := float64(a[i*ars+c]) * float64(short[j*(rows+pad)+i])
							want, size = want+term, size+math.Abs(term)
						}
						if d := math.Abs(z[j*(cols+pad)+c] - want); !(d <= (fewColumn+1)*0x1p-24*size+1e-13) || c >= cols && d != 0 {
							t.Fatalf("columns of [%d, %d]: vector %d at %d: %g, want %g", rows, cols, j, c, z[j*(cols+pad)+c], want)
						}
					}
				}
			}
		}
	})
}

// The numbers of a product are its own alone: what lies beyond may be NaN, and what
// is infinite comes out so.
func TestFewProducts32KeepToThemselves(t *testing.T) {
	forced(t, func(t *testing.T) {
		const rows, cols, ars = 5, 67, 80
		a := make([]float32, rows*ars)
		for i := range a {
			a[i] = float32(math.NaN())
			if i%ars < cols {
				a[i] = 1
			}
		}
		long, short := make([]float32, Few*cols), make([]float32, Few*rows)
		for i := range long {
			long[i] = 1
		}
		for i := range short {
			short[i] = 1
		}
		short[0] = float32(math.Inf(1)) // row 0 of vector 0
		y, z := make([]float64, Few*rows), make([]float64, Few*cols)
		FewRows32(rows, cols, a, ars, long, cols, y, rows)
		FewCols32(rows, cols, a, ars, short, rows, z, cols)
		for i, v := range y {
			if v != cols {
				t.Errorf("row sum %d is %v", i, v)
			}
		}
		for i, v := range z {
			if want := pickFloat(i < cols, math.Inf(1), rows); v != want {
				t.Errorf("column sum %d is %v, want %v", i, v, want)
			}
		}
	})
}

func pickFloat(b bool, x, y float64) float64 {
	if b {
		return x
	}
	return y
}

func TestNarrow32Rounds(t *testing.T) {
	forced(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(25, 26))
		for _, n := range []int{0, 1, 3, 4, 7, 8, 9, 31, 33, 64, 1000, 20000} {
			x := make([]float64, n)
			for i := range x {
				x[i] = math.Ldexp(r.NormFloat64(), r.IntN(400)-200)
			}
			for i, v := range []float64{math.Inf(1), -1e39, 0x1p-149, 0x1p-150, math.Copysign(0, -1), 1 + 0x1p-24} {
				if i < n {
					x[i] = v
				}
			}
			got := make([]float32, n+1)
			got[n] = 7
			Narrow32(got, x)
			for i, v := range x {
				if math.Float32bits(got[i]) != math.Float32bits(float32(v)) {
					t.Fatalf("n=%d: %v is %v, want %v", n, v, got[i], float32(v))
				}
			}
			if got[n] != 7 {
				t.Fatal("written past the end")
			}
		}
	})
}
