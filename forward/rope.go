package forward

import (
	"math"

	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/internal/kernel"
	"github.com/eigenhead/eigenhead/linalg"
)

// turning is the cosines and sines [T, dim/2] of one rotary embedding.
type turning struct{ cos, sin linalg.Matrix32 }

// turn rotates every head of the rows in place.
func (p *pass) turn(heads linalg.Matrix32, r *arch.Rope) error {
	if r == nil {
		return nil
	}
	t, known := p.turnings[r]
	if !known {
		freqs, err := r.Frequencies(heads.Rows)
		if err != nil {
			return err
		}
		t.cos, t.sin = rotations(freqs, heads.Rows, r.Attention)
		p.turnings[r] = t
	}
	rows(heads.Rows, func(i int) {
		row, cos, sin := heads.Row(i), t.cos.Row(i), t.sin.Row(i)
		for h := 0; h < len(row); h += p.m.HeadDim {
			if r.Interleaved {
				rotateInterleaved(row[h:h+r.Dim], cos, sin)
			} else {
				rotate(row[h:h+r.Dim], cos, sin)
			}
		}
	})
	return nil
}

// rotations returns factor times the cosines and sines [T, dim/2] of
// position·frequency. The angle is rounded to float32, as the reference rounds
// it and the model was trained: an exact angle would differ by up to T·2⁻²⁴
// radians.
func rotations(freqs []float32, T int, factor float64) (cos, sin linalg.Matrix32) {
	cos, sin = linalg.New32(T, len(freqs)), linalg.New32(T, len(freqs))
	rows(T, func(i int) {
		c, s := cos.Row(i), sin.Row(i)
		for j, f := range freqs {
			y, x := math.Sincos(float64(float32(i) * f))
			s[j], c[j] = float32(y)*float32(factor), float32(x)*float32(factor)
		}
	})
	return cos, sin
}

// rotate turns the component pairs (j, j + d/2) of x, d = 2·len(cos).
func rotate(x, cos, sin []float32) {
	half := len(cos)
	kernel.Turn32(x[:half], x[half:2*half], cos, sin)
}

// rotateInterleaved turns the component pairs (2j, 2j+1) of x.
func rotateInterleaved(x, cos, sin []float32) {
	for j, c := range cos {
		a, b, s := x[2*j], x[2*j+1], sin[j]
		x[2*j], x[2*j+1] = a*c-b*s, b*c+a*s
	}
}
