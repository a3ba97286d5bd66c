package collapse

import (
	"math"
	"slices"

	"github.com/eigenhead/eigenhead/plot"
)

// series is one configuration's points on logarithmic or linear axes.
type series struct {
	name   string
	x      []float64
	values [][]float64 // by point, the seeds
	joined bool        // a line through the means
	fit    *Fit        // dashed line
	theory func(x float64) float64
}

// scales turns values into places on linear or logarithmic axes and back, and knows
// how wide the data is there.
type scales struct {
	logX, logY bool
	x, y       *span
}

func place(v float64, log bool) float64 {
	if log {
		return math.Log(v)
	}
	return v
}

func back(v float64, log bool) float64 {
	if log {
		return math.Exp(v)
	}
	return v
}

func newScales(logX, logY bool, all []series) scales {
	sc := scales{logX, logY, newSpan(), newSpan()}
	for _, s := range all {
		for i, v := range s.values {
			for _, w := range v {
				if w > 0 || !logY {
					sc.x.add(place(s.x[i], logX))
					sc.y.add(place(w, logY))
				}
			}
		}
	}
	return sc
}

// panel draws points with their spread, a fitted line (dashed) and theory (solid).
func panel(title, x, y string, logX, logY bool, all []series) *plot.Lines {
	p := &plot.Lines{Title: title, X: x, Y: y, LogX: logX, LogY: logY, Height: 300}
	sc := newScales(logX, logY, all)
	for i, s := range all {
		points := s.points(sc)
		points.Color = shift(i%len(plot.Series), len(p.Series))
		p.Series = append(p.Series, points)
	}
	for i, s := range all {
		color := i % len(plot.Series)
		if s.fit != nil && len(s.x) > 1 {
			p.Series = append(p.Series, curveOver(s.x, func(x float64) float64 { return math.Pow(10, s.fit.Intercept+s.fit.Exponent*math.Log10(x)) }, "", true, shift(color, len(p.Series))))
		}
		if s.theory != nil {
			p.Series = append(p.Series, curveOver(s.x, s.theory, "", false, shift(color, len(p.Series))))
		}
	}
	return p
}

// points is one curve: plot draws lines only, so a point is a small ring and a spread an
// upright line, both broken off by NaN; they share a color and one entry of the legend.
func (s series) points(sc scales) plot.Curve {
	c := plot.Curve{Name: s.name}
	put := func(x, y float64) { c.X, c.Y = append(c.X, x), append(c.Y, y) }
	if s.joined {
		for k, v := range s.values {
			put(s.x[k], middle(v, sc.logY))
		}
		put(1, math.NaN())
	}
	for k, v := range s.values {
		v = slices.DeleteFunc(slices.Clone(v), func(w float64) bool { return sc.logY && !(w > 0) })
		if len(v) == 0 {
			continue
		}
		x, y := place(s.x[k], sc.logX), place(middle(v, sc.logY), sc.logY)
		for step := range 13 {
			angle := float64(step) * math.Pi / 6
			put(back(x+0.005*sc.x.width()*math.Cos(angle), sc.logX), back(y+0.012*sc.y.width()*math.Sin(angle), sc.logY))
		}
		put(1, math.NaN())
		put(s.x[k], slices.Min(v))
		put(s.x[k], slices.Max(v))
		put(1, math.NaN())
	}
	return c
}

// shift is the Color that gives the curve at a place in the list the wanted color.
func shift(color, at int) int {
	n := len(plot.Series)
	return ((color-at)%n + n) % n
}

func middle(v []float64, log bool) float64 {
	if !log {
		return newStat(v).Mean
	}
	return math.Exp(newStat(mapped(v, math.Log)).Mean)
}

func mapped(v []float64, f func(float64) float64) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = f(x)
	}
	return out
}

// curveOver draws a function between the first and last point.
func curveOver(x []float64, f func(float64) float64, name string, dashed bool, color int) plot.Curve {
	c := plot.Curve{Name: name, Dashed: dashed, Color: color}
	lo, hi := slices.Min(x), slices.Max(x)
	for i := range 41 {
		at := lo * math.Pow(hi/lo, float64(i)/40)
		c.X, c.Y = append(c.X, at), append(c.Y, f(at))
	}
	return c
}

type span struct{ lo, hi float64 }

func newSpan() *span { return &span{math.Inf(1), math.Inf(-1)} }

func (s *span) add(v float64) { s.lo, s.hi = min(s.lo, v), max(s.hi, v) }

func (s *span) width() float64 {
	if !(s.hi > s.lo) {
		return 1
	}
	return s.hi - s.lo
}
