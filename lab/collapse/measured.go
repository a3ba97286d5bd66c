package collapse

import (
	"context"
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/attention"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/par"
	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/linalg"
	"github.com/eigenhead/eigenhead/plot"
	"github.com/eigenhead/eigenhead/spectrum"
)

// Source says where measured layers come from.
type Source struct {
	Model  string `json:"model"`
	Tokens int    `json:"tokens"`
	Width  int    `json:"d_model"`
	Heads  int    `json:"heads"`
	Layers int    `json:"layers"`
	Twin   string `json:"twin"` // the simulated architecture
}

// The configurations of a measured result.
const (
	measuredName = "measured"
	twinName     = "Gaussian heads"
)

// Measure takes the observables of simulated networks on layers that somebody captured,
// and beside them the same architecture at initialization: as many layers, tokens,
// channels and heads, the same mask, Gaussian weights, pre-norm, skip and MLP. What
// differs is what training did.
//
// layer returns the i-th of n layers, from 0; the residual stream in it is what enters
// the layer, so that layer l shows X_(l−1). Errors: *xerr.Unsupported for layers without
// softmax (subsampled tokens); those of layer and of attention.
func Measure(ctx context.Context, model string, n int, layer func(i int) (*head.Layer, error), seed uint64, progress func(done, total int64)) (*Result, error) {
	r := &Result{Experiments: []string{"model"}, Seed: seed}
	tell := func(done int) {
		if progress != nil {
			progress(int64(done), int64(2*n))
		}
	}
	var shape *head.Layer
	for i := range n {
		l, err := layer(i)
		if err != nil {
			return nil, err
		}
		if l.Sparse || len(l.Pairs) == 0 {
			return nil, &xerr.Unsupported{File: model, What: "layer " + fmt.Sprint(l.Index), Found: "subsampled tokens or no heads", Want: "whole attention matrices"}
		}
		v, err := measureLayer(ctx, l, seed)
		if err != nil {
			return nil, err
		}
		r.Cells = append(r.Cells, modelCell(measuredName, l.Pairs[0].T(), width(l), i+1, v))
		shape = l
		tell(i + 1)
	}
	if shape == nil {
		return nil, &xerr.Unsupported{File: model, What: "layers", Found: 0, Want: "at least 1"}
	}
	c, size := likeModel(shape)
	r.Source = &Source{Model: model, Tokens: size.T, Width: size.Width(), Heads: len(shape.Pairs), Layers: n, Twin: c.Name()}
	s := newSim(c, size, "twin", seed)
	x := s.input()
	for l := 1; l <= n; l++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		v, err := observe(x, false)
		if err != nil {
			return nil, err
		}
		next, heads := s.layer(x, l)
		if err := v.attention(ctx, heads, s.Mask.Kind == head.MaskCausal, seed); err != nil {
			return nil, err
		}
		r.Cells = append(r.Cells, modelCell(twinName, size.T, size.Width(), l, v))
		x = next.settled()
		tell(n + l)
	}
	r.modelLines()
	return r, nil
}

func modelCell(name string, t, d, layer int, v Values) *Cell {
	c := &Cell{Experiment: "model", Configuration: name, Gamma: float64(t) / float64(d), T: t, D: d, Layer: layer, Seeds: 1, Stats: map[string]Stat{}}
	for k, x := range v {
		c.Stats[k] = newStat([]float64{x})
	}
	return c
}

// width is d_model where the layer knows it, else that of all heads together.
func width(l *head.Layer) int {
	if l.X.Cols > 0 {
		return l.X.Cols
	}
	return l.Pairs[0].Dim() * len(l.Pairs)
}

// likeModel is the architecture of a layer at initialization.
func likeModel(l *head.Layer) (Config, Size) {
	d, t := width(l), l.Pairs[0].T()
	c := Config{Attention: KeyQuery, Init: LeCun, ValueVar: "1/d", Input: GaussianIn, Heads: len(l.Pairs), Norm: PreNorm, Skip: PlainSkip, Undoubled: true, MLP: true}
	if l.Pairs[0].Mask.Kind != head.MaskNone {
		c.Mask = head.Causal
	}
	if d%c.Heads != 0 {
		c.Heads = 1
	}
	return c.filled(), Size{t, float64(t) / float64(d)}
}

// measureLayer measures the residual stream and the attention of one layer.
func measureLayer(ctx context.Context, l *head.Layer, seed uint64) (Values, error) {
	v := Values{}
	if l.X.Rows > 1 {
		if row, col, bad := l.X.NonFinite(); bad {
			return nil, fmt.Errorf("layer %d: residual stream [%d, %d]: found NaN or infinity, want numbers", l.Index, row, col)
		}
		seen, err := observe(newTokens(l.X.Float64(), 0), false)
		if err != nil {
			return nil, err
		}
		v = seen
	}
	all := make([]Values, len(l.Pairs))
	err := par.DoCtx(ctx, len(l.Pairs), func(h int) (err error) {
		all[h], err = measureHead(ctx, l.Pairs[h], seed)
		return err
	})
	v.meanOf(all)
	return v, err
}

func measureHead(ctx context.Context, p head.Pair, seed uint64) (Values, error) {
	op, err := attention.New(ctx, p, nil)
	if err != nil {
		return nil, err
	}
	top, err := attention.Top(ctx, op, seed)
	if err != nil {
		return nil, err
	}
	v, stats := Values{}, op.Stats()
	v.set("sigma1", top.First.Value)
	if top.Second != nil {
		v.set("sigma2", top.Second.Value)
		v.set("gap", 1-top.Second.Value/top.First.Value)
	}
	v.set("attention_stable_rank", stats.FrobeniusSquared/(top.First.Value*top.First.Value))
	total, rows := 0.0, 0.0
	for i, n := range stats.Visible {
		if n > 1 {
			total += stats.EntropyNats[i] / math.Log(float64(n))
			rows++
		}
	}
	v.set("entropy", total/rows)
	return v, nil
}

// attention measures simulated attention matrices, as measureHead does captured ones.
func (v Values) attention(ctx context.Context, heads []*mixing, causalMask bool, seed uint64) error {
	all := make([]Values, len(heads))
	err := par.DoCtx(ctx, len(heads), func(h int) error {
		m := heads[h].dense()
		top, err := spectrum.Top(ctx, dense{m}, spectrum.TopOptions{K: 2, Block: 4, Tol: 1e-5, Seed: seed})
		if err != nil {
			return err
		}
		all[h] = Values{}
		all[h].fromTop(top, linalg.Frobenius(m))
		delete(all[h], "sigma_bound")
		all[h].set("entropy", rowEntropy(m, causalMask))
		return nil
	})
	v.meanOf(all)
	return err
}

// meanOf sets the mean of each observable that all heads have.
func (v Values) meanOf(heads []Values) {
	if len(heads) == 0 {
		return
	}
	for name := range heads[0] {
		total, n := 0.0, 0
		for _, h := range heads {
			if x, ok := h[name]; ok {
				total += x
				n++
			}
		}
		if n == len(heads) {
			v.set(name, total/float64(n))
		}
	}
}

// modelObservables are shown for measured layers, in order.
var modelObservables = []struct{ name, head, title string }{
	{"stable_rank", "sr(S)", "Stable rank of X·Xᵀ, X entering the layer"},
	{"token_cosine", "cosine", "Mean cosine of two tokens"},
	{"entropy", "entropy", "Row entropy over its largest value, mean over heads"},
	{"sigma1", "s1", "Largest singular value of A, mean over heads"},
	{"sigma2", "s2", "Second singular value of A, mean over heads"},
	{"attention_stable_rank", "sr(A)", "Stable rank of A, mean over heads"},
}

// modelLines says in words what training changed in the last layer.
func (r *Result) modelLines() {
	for _, o := range modelObservables {
		var measured, twin float64
		n, at := 0, 0
		for _, c := range r.find("model", measuredName, o.name) {
			measured, n, at = c.Stats[o.name].Mean, n+1, c.Layer
		}
		for _, c := range r.find("model", twinName, o.name) {
			if c.Layer == at {
				twin = c.Stats[o.name].Mean
			}
		}
		if n > 0 {
			r.Lines = append(r.Lines, Line{Experiment: "model", Claim: fmt.Sprintf("%s, %s", o.title, layerName(at)), Versus: twinName, Theory: short(twin), Measured: short(measured)})
		}
	}
}

// layerName is how other commands call a layer of a model: from L0. Cells count from 1.
func layerName(cell int) string { return fmt.Sprintf("L%d", cell-1) }

// shape says how large the model is.
func (s *Source) shape() string {
	return fmt.Sprintf("%s, %s, d = %d, %d tokens", count(s.Layers, "layer"), count(s.Heads, "head"), s.Width, s.Tokens)
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// measured prints both networks layer by layer.
func (t *text) measured() {
	s := t.r.Source
	t.wrapped("", s.Model+": "+s.shape()+"; init: the same architecture with Gaussian weights, simulated once, "+s.Twin)
	t.wrapped("", "Legend: A attention matrix, sr(M) = sum of s_k^2 / s1^2 its stable rank (1: rank one), S = X X^T of the tokens X that enter the layer, s1, s2 largest singular values of A.")
	t.line("")
	rows := [][]string{{"layer"}}
	for _, o := range modelObservables {
		rows[0] = append(rows[0], o.head, "init")
	}
	for l := 1; l <= s.Layers; l++ {
		row := []string{layerName(l)}
		for _, o := range modelObservables {
			for _, name := range []string{measuredName, twinName} {
				value := "-"
				for _, c := range t.r.find("model", name, o.name) {
					if c.Layer == l {
						value = stat(c, o.name, "%.3g")
					}
				}
				row = append(row, value)
			}
		}
		rows = append(rows, row)
	}
	t.table(rows)
	t.verdicts("model")
}

// measuredPictures draws each observable over layers, measured and simulated.
func (r *Result) measuredPictures(add adder) {
	for _, o := range modelObservables {
		p := &plot.Lines{Title: o.title, X: "layer", Y: o.head, LogY: o.name == "stable_rank" || o.name == "attention_stable_rank", Height: 220}
		for _, name := range []string{measuredName, twinName} {
			c := plot.Curve{Name: name}
			for _, cell := range r.find("model", name, o.name) {
				c.X, c.Y = append(c.X, float64(cell.Layer-1)), append(c.Y, cell.Stats[o.name].Mean)
			}
			if len(c.X) > 0 {
				p.Series = append(p.Series, c)
			}
		}
		if len(p.Series) > 0 {
			add("model", o.name, o.title+".", p)
		}
	}
}
