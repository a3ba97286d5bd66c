package forward

import (
	"math"

	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/linalg"
)

// norm fills normed with the normalized residual stream.
func (p *pass) norm(n arch.Norm) error {
	gain := make([]float32, n.Gain.N)
	if err := n.Gain.Load(gain); err != nil {
		return err
	}
	if n.Bias == nil {
		rows(p.x.Rows, func(i int) { rmsNorm(p.normed.Row(i), p.x.Row(i), gain, p.m.NormEps) })
		return nil
	}
	bias := make([]float32, n.Bias.N)
	if err := n.Bias.Load(bias); err != nil {
		return err
	}
	rows(p.x.Rows, func(i int) { layerNorm(p.normed.Row(i), p.x.Row(i), gain, bias, p.m.NormEps) })
	return nil
}

// qkNorm normalizes each query and key in place where the model does so.
func (p *pass) qkNorm(b *arch.Block) error {
	if b.QNorm == nil {
		return nil
	}
	d := p.m.HeadDim
	q, k := make([]float32, d), make([]float32, d)
	if err := b.QNorm.Load(q); err != nil {
		return err
	}
	if err := b.KNorm.Load(k); err != nil {
		return err
	}
	rows(p.qkv.Rows, func(i int) {
		row := p.qkv.Row(i)
		for h := range p.m.Heads + p.m.KVHeads {
			gain := q
			if h >= p.m.Heads {
				gain = k
			}
			rmsNorm(row[h*d:(h+1)*d], row[h*d:(h+1)*d], gain, p.m.NormEps)
		}
	})
	return nil
}

// rmsNorm computes
//
//	dst_j = gain_j · x_j / √(mean_i x_i² + eps)
//
// with the mean in float64. dst may be x.
func rmsNorm(dst, x, gain []float32, eps float64) {
	var s float64
	for _, v := range x {
		s += float64(v) * float64(v)
	}
	r := float32(1 / math.Sqrt(s/float64(len(x))+eps))
	for j, v := range x {
		dst[j] = gain[j] * (v * r)
	}
}

// layerNorm computes
//
//	dst_j = gain_j · (x_j − x̄) / √(mean_i (x_i − x̄)² + eps) + bias_j
//
// with both means in float64, the second around the first.
func layerNorm(dst, x, gain, bias []float32, eps float64) {
	var mean, variance float64
	for _, v := range x {
		mean += float64(v)
	}
	mean /= float64(len(x))
	for _, v := range x {
		c := float64(v) - mean
		variance += c * c
	}
	r := 1 / math.Sqrt(variance/float64(len(x))+eps)
	for j, v := range x {
		dst[j] = gain[j]*float32((float64(v)-mean)*r) + bias[j]
	}
}

// rotations returns the cosines and sines [T, dim/2] of position·frequency. The
// angle is rounded to float32, as the reference rounds it and the model was
// trained: an exact angle would differ by up to T·2⁻²⁴ radians.
func rotations(freqs []float32, T int) (cos, sin linalg.Matrix32) {
	cos, sin = linalg.New32(T, len(freqs)), linalg.New32(T, len(freqs))
	rows(T, func(i int) {
		c, s := cos.Row(i), sin.Row(i)
		for j, f := range freqs {
			y, x := math.Sincos(float64(float32(i) * f))
			s[j], c[j] = float32(y), float32(x)
		}
	})
	return cos, sin
}

// rotate turns the component pairs (j, j + d/2) of every head in a row of heads
// of width d = 2·len(cos).
func rotate(row, cos, sin []float32) {
	half := len(cos)
	for h := 0; h < len(row); h += 2 * half {
		a, b := row[h:h+half], row[h+half:h+2*half]
		for j, c := range cos {
			x, y, s := a[j], b[j], sin[j]
			a[j], b[j] = x*c-y*s, y*c+x*s
		}
	}
}
