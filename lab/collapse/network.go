package collapse

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/linalg"
)

// network is a key-query network in plain float64, with the backward pass that the
// product form cannot give: A depends on the tokens, so a derivative goes through the
// softmax too. It is also the plain twin that tests hold the split simulation against.
// One head, no MLP; any skip and norm; no fix, a centering or a temperature.
type network struct {
	Config
	layers []weights
	d      int
}

type weights struct{ q, k, v linalg.Matrix }

// trace is what one layer's forward pass leaves for the backward pass.
type trace struct {
	in, normed    linalg.Matrix // before and after a pre-norm
	q, k, v, a    linalg.Matrix // a: the softmax itself, without its centering
	mixed         linalg.Matrix // the centered one
	beforePost    linalg.Matrix
	preDiv, postD []float64 // √(variance + eps) of each row
}

// checkNetwork refuses what the backward pass does not know.
func checkNetwork(c Config) error {
	known := c.Fix == NoFix || c.Fix == Center || c.Fix == CenterCausal || c.Fix == Temperature
	if c.Attention != KeyQuery || c.Heads != 1 || c.MLP || !known {
		return &xerr.Usage{Flag: "--experiment gradient", Found: c.Name(),
			Want: "one head of key-query attention without MLP, and no fix but center, center-causal or temperature"}
	}
	return nil
}

func newNetwork(s *sim, depth int) *network {
	n := &network{Config: s.Config, d: s.D}
	sd := map[Init]float64{Normal: 1, LeCun: 1 / math.Sqrt(float64(s.D)), Xavier: 1 / math.Sqrt(float64(s.D))}[s.Init]
	value := 1.0
	if s.ValueVar == "1/d" {
		value = 1 / math.Sqrt(float64(s.D))
	}
	for range depth {
		n.layers = append(n.layers, weights{s.rng.normals(s.D, s.D, sd), s.rng.normals(s.D, s.D, sd), s.rng.normals(s.D, s.D, value)})
	}
	return n
}

// scale is the factor on q·k.
func (n *network) scale() float64 {
	f := 1 / math.Sqrt(float64(n.d))
	if n.Fix == Temperature {
		f /= n.Tau
	}
	return f
}

// branchScale is the factor on the attention branch, outScale that on the whole layer.
func (n *network) branchScale() float64 {
	if n.Skip == ScaledSkip {
		return 1 / math.Sqrt(float64(n.d))
	}
	return 1
}

func (n *network) outScale() float64 {
	if n.Skip == PlainSkip && !n.Undoubled {
		return 2
	}
	return 1
}

// forward returns X_L and the traces of all layers.
func (n *network) forward(x linalg.Matrix) (linalg.Matrix, []trace) {
	traces := make([]trace, len(n.layers))
	for l, w := range n.layers {
		t := &traces[l]
		t.in, t.normed = x, x
		if n.Norm == PreNorm {
			t.normed, t.preDiv = layerNorm(x)
		}
		t.q, t.k, t.v = mul(t.normed, w.q), mul(t.normed, w.k), mul(t.normed, w.v)
		t.a = linalg.New(x.Rows, x.Rows)
		linalg.MulTB(t.a, t.q, t.k)
		for i := range t.a.Rows {
			row := t.a.Row(i)
			for j := range row {
				row[j] *= n.scale()
				if n.Mask.Kind == head.MaskCausal && j > i {
					row[j] = math.Inf(-1)
				}
			}
			softmaxRow(row)
		}
		t.mixed = n.centered(t.a)
		out := mul(t.mixed, t.v)
		for i := range out.Data {
			out.Data[i] *= n.branchScale()
			if n.Skip != NoSkip {
				out.Data[i] += x.Data[i]
			}
		}
		t.beforePost = out
		if n.Norm == PostNorm {
			out, t.postD = layerNorm(out)
		}
		x = times(out, n.outScale())
	}
	return x, traces
}

// centered takes off the constant matrix of the fix.
func (n *network) centered(a linalg.Matrix) linalg.Matrix {
	out := a.Clone()
	for i := range out.Rows {
		row := out.Row(i)
		for j := range row {
			switch {
			case n.Fix == Center:
				row[j] -= 1 / float64(len(row))
			case n.Fix == CenterCausal && j <= i:
				row[j] -= 1 / float64(i+1)
			}
		}
	}
	return out
}

// backward returns Σ g⊙∂X_L/∂W for the value and query weights of one layer, counted
// from 0: the transposed derivative applied to g [T, d].
//
// With A = softmax(S) row by row, ∂S = A⊙(∂A − Σ_j ∂A_ij·A_ij); the centering is a
// constant and has no derivative.
func (n *network) backward(traces []trace, g linalg.Matrix, layer int) (dv, dq linalg.Matrix) {
	for l := len(traces) - 1; ; l-- {
		t, w := &traces[l], n.layers[l]
		g = times(g, n.outScale())
		if n.Norm == PostNorm {
			g = layerNormBack(t.beforePost, t.postD, g)
		}
		branch := times(g, n.branchScale())
		gv := mulTA(t.mixed, branch)
		ga := linalg.New(branch.Rows, t.v.Rows)
		linalg.MulTB(ga, branch, t.v)
		for i := range ga.Rows {
			row, p := ga.Row(i), t.a.Row(i)
			mean := linalg.Dot(row, p)
			for j := range row {
				row[j] = n.scale() * p[j] * (row[j] - mean)
			}
		}
		gq, gk := mul(ga, t.k), mulTA(ga, t.q)
		if l == layer {
			return mulTA(t.normed, gv), mulTA(t.normed, gq)
		}
		in := linalg.New(g.Rows, n.d)
		for _, part := range []struct{ g, w linalg.Matrix }{{gv, w.v}, {gq, w.q}, {gk, w.k}} {
			back := linalg.New(g.Rows, n.d)
			linalg.MulTB(back, part.g, part.w)
			linalg.Axpy(1, back.Data, in.Data)
		}
		if n.Norm == PreNorm {
			in = layerNormBack(t.in, t.preDiv, in)
		}
		if n.Skip != NoSkip {
			linalg.Axpy(1, g.Data, in.Data)
		}
		g = in
	}
}

// layerNorm returns (x − mean)/√(variance + eps) by rows, and the divisors.
func layerNorm(x linalg.Matrix) (linalg.Matrix, []float64) {
	out, div := x.Clone(), make([]float64, x.Rows)
	subtractMeans(out)
	for i := range out.Rows {
		row := out.Row(i)
		div[i] = math.Sqrt(linalg.Dot(row, row)/float64(len(row)) + normEps)
		for j := range row {
			row[j] /= div[i]
		}
	}
	return out, div
}

// layerNormBack returns (g − mean(g) − y·mean(g⊙y))/divisor, y the normed row.
func layerNormBack(x linalg.Matrix, div []float64, g linalg.Matrix) linalg.Matrix {
	y, _ := layerNorm(x)
	out := g.Clone()
	for i := range out.Rows {
		row, yi := out.Row(i), y.Row(i)
		d := float64(len(row))
		mean, along := sum(row)/d, linalg.Dot(row, yi)/d
		for j := range row {
			row[j] = (row[j] - mean - yi[j]*along) / div[i]
		}
	}
	return out
}

func mul(a, b linalg.Matrix) linalg.Matrix {
	out := linalg.New(a.Rows, b.Cols)
	linalg.Mul(out, a, b)
	return out
}

func mulTA(a, b linalg.Matrix) linalg.Matrix {
	out := linalg.New(a.Cols, b.Cols)
	linalg.MulTA(out, a, b)
	return out
}

func times(m linalg.Matrix, f float64) linalg.Matrix {
	out := m.Clone()
	for i := range out.Data {
		out.Data[i] *= f
	}
	return out
}

// Up to exactOutputs outputs T·d the derivative is exact, one backward pass for each;
// above, it is estimated from probes Gaussian g, E‖Jᵀg‖² = ‖J‖_F².
const (
	exactOutputs = 400
	probes       = 64
)

// inputDependent is Gradient for KeyQuery.
func inputDependent(ctx context.Context, c Config, size Size, depth, layer int, seed uint64) (Values, error) {
	if err := checkNetwork(c); err != nil {
		return nil, err
	}
	s := newSim(c, size, fmt.Sprintf("gradient/L=%d/l=%d", depth, layer), seed)
	x, e := s.input().dense()
	scaleBy(x, e)
	n := newNetwork(s, depth)
	out, traces := n.forward(x)
	if _, _, bad := out.NonFinite(); bad {
		return nil, fmt.Errorf("%s, T=%d, depth %d: the output leaves the range of float64", c.Name(), size.T, depth)
	}
	outputs := s.T * s.D
	exact := outputs <= exactOutputs
	count := probes
	if exact {
		count = outputs
	}
	value, query := make([]float64, count), make([]float64, count)
	for i := range count {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		g := linalg.New(s.T, s.D)
		if exact {
			g.Data[i] = 1
		} else {
			g = s.rng.fill(s.T, s.D, func(row []float64, r *rand.Rand) {
				for j := range row {
					row[j] = r.NormFloat64()
				}
			})
		}
		dv, dq := n.backward(traces, g, layer-1)
		value[i], query[i] = linalg.Frobenius(dv), linalg.Frobenius(dq)
	}
	v := Values{}
	v.set("log10_gradient", logSquares(value, exact))
	v.set("log10_query_gradient", logSquares(query, exact))
	if !exact {
		squares := newStat(squared(value))
		v.set("gradient_se", squares.SD/squares.Mean/math.Sqrt(float64(count)))
	}
	return v, nil
}

// logSquares returns log₁₀ of the sum of squares, or of their mean over probes.
func logSquares(x []float64, whole bool) float64 {
	log := 2 * math.Log10(linalg.Norm2(x))
	if !whole {
		log -= math.Log10(float64(len(x)))
	}
	return log
}

func squared(x []float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v * v
	}
	return out
}
