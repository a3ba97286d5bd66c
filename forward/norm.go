package forward

import (
	"math"

	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/internal/kernel"
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
	r := float32(1 / math.Sqrt(kernel.Squares32(x, 0)/float64(len(x))+eps))
	kernel.Gained32(dst, x, gain, r)
}

// layerNorm computes
//
//	dst_j = gain_j · (x_j − x̄) / √(mean_i (x_i − x̄)² + eps) + bias_j
//
// with both means in float64, the second around the first; a bias may be absent.
func layerNorm(dst, x, gain, bias []float32, eps float64) {
	n := float64(len(x))
	mean := kernel.Sum32(x) / n
	r := 1 / math.Sqrt(kernel.Squares32(x, mean)/n+eps)
	kernel.Centered32(dst, x, gain, mean, r)
	if bias != nil {
		kernel.Add32(dst, bias)
	}
}
