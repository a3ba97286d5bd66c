package forward

import (
	"math"

	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/linalg"
)

// norm fills dst with the normalized rows of src, or with src where n is nil. A
// norm that is narrower than a row runs over each part of it. dst may be src.
func (p *pass) norm(dst, src linalg.Matrix32, n *arch.Norm) error {
	if n == nil {
		if len(dst.Data) > 0 && &dst.Data[0] != &src.Data[0] {
			rows(src.Rows, func(i int) { copy(dst.Row(i), src.Row(i)) })
		}
		return nil
	}
	gain := make([]float32, n.Gain.N)
	if err := n.Gain.Load(gain); err != nil {
		return err
	}
	var bias []float32
	if n.Bias != nil {
		bias = make([]float32, n.Bias.N)
		if err := n.Bias.Load(bias); err != nil {
			return err
		}
	}
	rows(src.Rows, func(i int) {
		out, in := dst.Row(i), src.Row(i)
		for from := 0; from < len(in); from += n.Width {
			to, g := from+n.Width, from%n.Gain.N // gains are shared by the parts, or each part has its own
			if n.RMS {
				rmsNorm(out[from:to], in[from:to], gain[g:g+n.Width], n.Eps)
				continue
			}
			var b []float32
			if bias != nil {
				b = bias[g : g+n.Width]
			}
			layerNorm(out[from:to], in[from:to], gain[g:g+n.Width], b, n.Eps)
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
// with both means in float64, the second around the first; a bias may be absent.
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
		dst[j] = gain[j] * float32((float64(v)-mean)*r)
	}
	for j, b := range bias {
		dst[j] += b
	}
}
