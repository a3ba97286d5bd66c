package collapse

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/eigenhead/eigenhead/plot"
	"github.com/eigenhead/eigenhead/randmat"
)

// Picture is one figure of a result, with what it shows in a sentence.
type Picture struct {
	Name       string // for files: letters, digits and dashes
	Experiment string
	Caption    string
	Figure     *plot.Figure
}

// Pictures returns the figures of a result.
func (r *Result) Pictures() []Picture {
	var all []Picture
	add := func(experiment, name, caption string, panels ...plot.Panel) {
		if len(panels) > 0 {
			all = append(all, Picture{Name: experiment + "-" + name, Experiment: experiment, Caption: caption, Figure: &plot.Figure{Width: 760, Panels: panels}})
		}
	}
	if r.Source != nil {
		r.measuredPictures(add)
		return all
	}
	r.gapPictures(add)
	r.bulkPictures(add)
	r.widthPictures(add)
	r.depthPictures(add)
	r.gradientPictures(add)
	r.fixesPictures(add)
	r.paperPictures(add)
	return all
}

type adder func(experiment, name, caption string, panels ...plot.Panel)

// overT makes a series of an observable over T; exp says that it is log₁₀.
func (r *Result) overT(experiment, configuration, observable string, layer, depth int, exp bool) series {
	s := series{name: configuration}
	cells := slices.Clone(r.find(experiment, configuration, observable))
	slices.SortStableFunc(cells, func(a, b *Cell) int { return cmp.Compare(a.T, b.T) })
	for _, c := range cells {
		if c.Layer != layer || c.Depth != depth || c.Gamma != cells[0].Gamma {
			continue
		}
		v := c.Stats[observable].Values
		if exp {
			v = mapped(v, func(x float64) float64 { return math.Pow(10, x) })
		}
		s.x, s.values = append(s.x, float64(c.T)), append(s.values, v)
	}
	for i, f := range r.Fits {
		if f.Experiment == experiment && f.Configuration == configuration && f.Layer == layer && f.Depth == depth && strings.HasSuffix(f.Quantity, observable) && len(cells) > 0 && f.Gamma == cells[0].Gamma {
			s.fit = &r.Fits[i]
		}
	}
	return s
}

func (r *Result) gapPictures(add adder) {
	names, configs := r.configurations("gap")
	for _, q := range []struct{ observable, title, caption string }{
		{"sigma1", "Largest singular value of A", "Without a mask σ₁ is 1 and stays there; with a causal mask it rises with log T. Points: mean over seeds, bars their range."},
		{"sigma2", "Second singular value of A", "Without a mask σ₂ falls as T^(−1/2), for Xavier key-query as T^(−3/2); with a causal mask it follows σ₁. Dashed: fitted power law; solid: theory."},
	} {
		var all []series
		for i, name := range names {
			s := r.overT("gap", name, q.observable, 1, 0, false)
			if sigma := configs[i].WeightSigma(256); q.observable == "sigma2" && sigma > 0 && configs[i].Mask.Kind == 0 && configs[i].Fix == NoFix {
				c := configs[i]
				s.theory = func(t float64) float64 { return 2 * c.WeightSigma(int(t)) / math.Sqrt(t) }
			}
			if c := configs[i]; q.observable == "sigma2" && c.Attention == KeyQuery && c.Init == Xavier && c.Fix == NoFix && c.Mask.Kind == 0 {
				s.theory = func(t float64) float64 { return XavierEdge(1) * math.Pow(t, -1.5) }
			}
			if len(s.x) > 0 {
				all = append(all, s)
			}
		}
		if len(all) > 0 {
			add("gap", q.observable, q.caption, panel(q.title, "tokens T", q.observable, true, true, all))
		}
	}
}

// bulkPictures draws the density of √T·σ beside the quarter circle.
func (r *Result) bulkPictures(add adder) {
	for i, b := range r.Bulks {
		if len(b.Sigma) < 8 {
			continue
		}
		power := 0.5
		if b.Config.Attention == KeyQuery && b.Config.Init == Xavier {
			power = 1.5
		}
		scale := math.Pow(float64(b.Size.T), power)
		values := mapped(b.Sigma[1:], func(s float64) float64 { return scale * s })
		s2 := b.Config.WeightSigma(b.Size.T)
		if b.Config.Attention == KeyQuery && b.Config.Init == Normal {
			s2 = math.Sqrt(math.E - 1)
		}
		p := density(values, 40)
		p.Title = fmt.Sprintf("%s, T = %d, gamma = %.3g", b.Configuration, b.Size.T, b.Size.Gamma)
		p.X, p.Y, p.Height = fmt.Sprintf("T^%.2g · singular value (all but the largest)", power), "density", 190
		caption := "Histogram of the bulk."
		if s2 > 0 {
			law := randmat.QuarterCircle{Radius: 2 * s2}
			c := plot.Curve{Name: "quarter circle", Dashed: true}
			for k := range 101 {
				x := law.Radius * float64(k) / 100
				c.X, c.Y = append(c.X, x), append(c.Y, law.Density(x))
			}
			p.Series = append(p.Series, c)
			caption = "Histogram of the bulk beside the quarter circle of radius 2σ (dashed): right for independent weights, wrong for key-query logits."
		} else if power == 1.5 && b.Config.Fix == NoFix {
			edge := XavierEdge(b.Size.Gamma)
			p.Series = append(p.Series, plot.Curve{Name: "predicted edge", Dashed: true, X: []float64{edge, edge}, Y: []float64{0, slices.Max(p.Series[0].Y)}})
			caption = "Histogram of the bulk: the product law of two Gaussian factors, with its edge (dashed); no quarter circle."
		}
		add("bulk", fmt.Sprintf("%d", i+1), caption, p)
	}
}

// density is a histogram of unit area, as steps.
func density(values []float64, bins int) *plot.Lines {
	hi := slices.Max(values) * 1.0000001
	counts := make([]float64, bins)
	for _, v := range values {
		counts[min(int(v/hi*float64(bins)), bins-1)]++
	}
	c := plot.Curve{Name: "simulated"}
	width := hi / float64(bins)
	c.X, c.Y = append(c.X, 0), append(c.Y, 0)
	for i, n := range counts {
		h := n / (float64(len(values)) * width)
		c.X, c.Y = append(c.X, float64(i)*width, float64(i+1)*width), append(c.Y, h, h)
	}
	c.X, c.Y = append(c.X, hi), append(c.Y, 0)
	return &plot.Lines{Series: []plot.Curve{c}}
}

func (r *Result) widthPictures(add adder) {
	names, configs := r.configurations("width")
	layers := r.layers("width", 3)
	for _, l := range layers {
		var excess, rank []series
		for i, name := range names {
			c := configs[i]
			switch c.widthLaw() {
			case outlierGone:
				s := r.overT("width", name, "stable_rank", l, 0, false)
				s.theory = func(t float64) float64 { return CenteredShare(l, 1, c.Attention == Identity) * t }
				rank = append(rank, s)
			default:
				s := r.overT("width", name, "log10_excess", l, 0, true)
				if c.widthLaw() == outlierKept && c.Attention != KeyQuery {
					s.theory = func(t float64) float64 { return ExcessLaw(c.WeightSigma(int(t)), 1, int(t), l) }
				}
				excess = append(excess, s)
			}
		}
		var panels []plot.Panel
		if len(excess) > 0 {
			panels = append(panels, panel(fmt.Sprintf("Layer %d: sr(Σ) − 1, outlier kept", l), "tokens T", "sr − 1", true, true, excess))
		}
		if len(rank) > 0 {
			panels = append(panels, panel(fmt.Sprintf("Layer %d: sr(Σ), outlier gone", l), "tokens T", "sr", true, true, rank))
		}
		add("width", fmt.Sprintf("layer-%d", l), "Points: mean over seeds, bars their range. Dashed: fitted power law. Solid: theory, (1 + l(1+γ))σ^{4l}T^{1−2l} with the outlier, T·m₂/λ₊² without. A causal mask keeps sr − 1 of order one in layer 1.", panels...)
	}
}

// layers lists up to n layers of an experiment.
func (r *Result) layers(experiment string, n int) (all []int) {
	for _, c := range r.Cells {
		if c.Experiment == experiment && !slices.Contains(all, c.Layer) && len(all) < n {
			all = append(all, c.Layer)
		}
	}
	return all
}

func (r *Result) depthPictures(add adder) {
	names, _ := r.configurations("depth")
	rank := func(all []string, title string) *plot.Lines {
		var s []series
		for _, name := range all {
			s = append(s, r.overLayers("depth", name, "stable_rank"))
		}
		return panel(title, "layer", "sr", false, true, s)
	}
	for i := 0; i < len(names); i += len(plot.Series) {
		part := names[i:min(i+len(plot.Series), len(names))]
		var excess []series
		for _, name := range part {
			if s := r.overLayers("depth", name, "log10_excess"); len(s.x) > 0 {
				excess = append(excess, s)
			}
		}
		add("depth", fmt.Sprintf("ranks-%d", i/len(plot.Series)+1), "At the largest T. Above: the stable rank itself. Below: how far it is above 1, as a power of ten, computed without the subtraction; values below 10⁻⁶⁰ are left out.",
			rank(part, "sr(Σ) over depth"), panel("log₁₀(sr − 1) over depth", "layer", "log₁₀(sr − 1)", false, false, excess))
	}
	for i, name := range names {
		if h := r.heatmap("depth", name); h != nil {
			add("depth", fmt.Sprintf("map-%d", i+1), "Stable rank over T (columns) and depth (rows).", h)
		}
	}
}

// lowestExcess is log₁₀(sr − 1) below which plots over depth leave points out: the
// excess of input-dependent attention is cubed and more in every layer.
const lowestExcess = -60

// overLayers makes a series over layers at the largest T.
func (r *Result) overLayers(experiment, configuration, observable string) series {
	s := series{name: configuration, joined: true}
	last := r.largestCell(experiment, configuration, "stable_rank", 0)
	for _, c := range r.find(experiment, configuration, observable) {
		shown := observable != "log10_excess" || c.Stats[observable].Mean > lowestExcess
		if c.T == last.T && c.Gamma == last.Gamma && shown {
			s.x, s.values = append(s.x, float64(c.Layer)), append(s.values, c.Stats[observable].Values)
		}
	}
	return s
}

// heatmap draws stable ranks over T and depth, nil for fewer than two sizes.
func (r *Result) heatmap(experiment, configuration string) *plot.Heatmap {
	var sizes []int
	depth := 0
	cells := r.find(experiment, configuration, "stable_rank")
	for _, c := range cells {
		if c.Gamma == cells[0].Gamma {
			depth = max(depth, c.Layer)
			if !slices.Contains(sizes, c.T) {
				sizes = append(sizes, c.T)
			}
		}
	}
	if len(sizes) < 2 || depth < 2 {
		return nil
	}
	slices.Sort(sizes)
	values := make([][]float64, depth)
	for l := range values {
		values[l] = make([]float64, len(sizes))
		for i := range values[l] {
			values[l][i] = math.NaN()
		}
	}
	for _, c := range cells {
		if c.Gamma == cells[0].Gamma {
			values[c.Layer-1][slices.Index(sizes, c.T)] = c.Stats["stable_rank"].Mean
		}
	}
	label := fmt.Sprintf("T = %s, from left to right", strings.Trim(strings.Join(strings.Fields(fmt.Sprint(sizes)), ", "), "[]"))
	return &plot.Heatmap{Title: configuration, X: label, Y: "layer", Unit: "sr", Values: values, Scale: plot.Scale{Log: true, Lo: 1, Hi: float64(sizes[len(sizes)-1])}, FirstX: 1, FirstY: 1, Height: 180}
}

func (r *Result) gradientPictures(add adder) {
	names, configs := r.configurations("gradient")
	var depths []int
	for _, c := range r.Cells {
		if c.Experiment == "gradient" && !slices.Contains(depths, c.Depth) {
			depths = append(depths, c.Depth)
		}
	}
	for _, depth := range depths {
		var all []series
		for i, name := range names {
			s := r.overT("gradient", name, "log10_gradient", r.layers("gradient", 1)[0], depth, true)
			if s.fit != nil && s.fit.Theory != nil && configs[i].ValueVar == "1" {
				power := *s.fit.Theory
				s.theory = func(t float64) float64 { return math.Pow(t, power) }
			}
			if len(s.x) > 0 {
				all = append(all, s)
			}
		}
		if len(all) > 0 {
			add("gradient", fmt.Sprintf("depth-%d", depth), "Squared Frobenius norm of the derivative of X_L by the value weights of one layer, the first unless chosen otherwise. Points: seeds' geometric mean and range. Dashed: fit. Solid: theory, T^L with the outlier and T without, for W ~ N(0,1).",
				panel(fmt.Sprintf("L = %d", depth), "tokens T", "squared norm of ∂X_L/∂W", true, true, all))
		}
	}
}

func (r *Result) fixesPictures(add adder) {
	names, _ := r.configurations("fixes")
	for i := 0; i < len(names); i += len(plot.Series) {
		var all []series
		for _, name := range names[i:min(i+len(plot.Series), len(names))] {
			if r.largestCell("fixes", name, "log10_excess", 0) == nil {
				continue
			}
			if s := r.overLayers("fixes", name, "log10_excess"); len(s.x) > 0 {
				all = append(all, s)
			}
		}
		if len(all) > 0 {
			add("fixes", fmt.Sprintf("depth-%d", i/len(plot.Series)+1), "How far the stable rank stays above 1 with each fix.",
				panel("log₁₀(sr − 1) over depth", "layer", "log₁₀(sr − 1)", false, false, all))
		}
	}
}

// paperPictures draws every configuration of the published sweep over depth, ours as
// points and the published means as a thin line.
func (r *Result) paperPictures(add adder) {
	if !r.Paper {
		return
	}
	groups := []struct{ name, prefix string }{{"A(X)_perp", "A(X)_perp"}, {"A_perp", "A_perp"}, {"A and Identity A", "A"}, {"A(X)", "A(X)"}}
	names, _ := r.configurations("paper")
	for i, g := range groups {
		var all []series
		for _, name := range names {
			base, _, _ := strings.Cut(name, " +")
			if base == "Identity A" {
				base = "A"
			}
			if base == g.prefix {
				all = append(all, r.overLayers("paper", name, "stable_rank"))
			}
		}
		if len(all) > 0 {
			add("paper", fmt.Sprint(i+1), fmt.Sprintf("Ours over depth at the largest T and gamma = %.3g; the published values are in the table.", r.Cells[0].Gamma), panel(g.name, "layer", "sr(Σ)", false, true, all))
		}
	}
}
