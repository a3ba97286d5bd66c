package plot

import (
	"fmt"
	"image/color"
	"math"
)

// Lines draws series over a common axis.
type Lines struct {
	Title      string
	X, Y       string // axis names, with units
	LogX, LogY bool   // points that are not positive are left out
	Lo, Hi     float64
	Height     float64 // of the plot area; 0: 170
	Series     []Curve
}

// Curve is one series.
type Curve struct {
	Name   string    // for the legend; "": not in it
	X      []float64 // nil: 0, 1, 2, …
	Y      []float64 // NaN breaks the line
	Dashed bool
	Stems  bool // one upright line for each point, from the lower edge
	Color  int  // place in Series, for a curve that takes its color from another panel; 0: its own place
}

func (l *Lines) height(width float64) float64 {
	h := l.Height
	if h == 0 {
		h = 170
	}
	return topRoom + l.legendHeight(width) + h + bottomRoom
}

// legendRow is the height of a further row of the legend.
const legendRow = 16

func (l *Lines) legendHeight(width float64) float64 {
	entries := l.legend(width)
	if len(entries) == 0 {
		return 0
	}
	return 18 + entries[len(entries)-1].y
}

// entry is one name of the legend; x and y count from its upper left corner.
type entry struct {
	curve int
	x, y  float64
}

// legend places the named curves in rows that fit the plot area; one curve alone needs
// no legend.
func (l *Lines) legend(width float64) []entry {
	if len(l.Series) < 2 {
		return nil
	}
	var entries []entry
	x, y := 0.0, 0.0
	for i, c := range l.Series {
		if c.Name == "" {
			continue
		}
		size := 25 + textWidth(c.Name, textSize)
		if x > 0 && x+size > width-leftRoom-8 {
			x, y = 0, y+legendRow
		}
		entries = append(entries, entry{i, x, y})
		x += size + 18
	}
	return entries
}

func (l *Lines) draw(s *scene, b box) {
	s.add(text{x: b.x, y: b.y + headSize, s: l.Title, size: headSize, color: ink, bold: true})
	top := topRoom + l.legendHeight(b.w)
	area := box{b.x + leftRoom, b.y + top, b.w - leftRoom - 8, b.h - top - bottomRoom}
	xs, ys := l.axes()
	drawAxes(s, b, area, xs, ys, l.whole(), l.X, l.Y)
	names := l.legend(b.w)
	for i, c := range l.Series {
		col := Series[(i+c.Color)%len(Series)]
		l.curve(s, area, c, col, xs, ys)
		if len(names) > 0 && names[0].curve == i {
			x, y := area.x+names[0].x, b.y+topRoom+names[0].y
			s.add(path{points: [][2]float64{{x, y + 3}, {x + 20, y + 3}}, color: col, width: 2, dashed: c.Dashed})
			s.add(text{x: x + 25, y: y + 7, s: c.Name, size: textSize, color: ink})
			names = names[1:]
		}
	}
}

// axes returns the ranges of the data; Lo and Hi, if set, are the Y range.
func (l *Lines) axes() (xs, ys axis) {
	xs = axis{math.Inf(1), math.Inf(-1), l.LogX}
	ys = axis{math.Inf(1), math.Inf(-1), l.LogY}
	for _, c := range l.Series {
		if c.X != nil && len(c.X) != len(c.Y) {
			panic(fmt.Sprintf("plot: curve %q has %d x and %d y", c.Name, len(c.X), len(c.Y)))
		}
		for i, y := range c.Y {
			x := c.at(i)
			if math.IsNaN(y) || l.LogY && y <= 0 || l.LogX && x <= 0 {
				continue
			}
			xs.lo, xs.hi = min(xs.lo, x), max(xs.hi, x)
			ys.lo, ys.hi = min(ys.lo, y), max(ys.hi, y)
			if c.Stems {
				ys.lo = min(ys.lo, 0)
			}
		}
	}
	if l.Lo != 0 || l.Hi != 0 {
		ys.lo, ys.hi = l.Lo, l.Hi
	}
	if xs.lo > xs.hi { // no point at all
		return axis{0, 1, false}, axis{0, 1, false}
	}
	return xs.widened(), ys.widened()
}

// whole reports whether there are points and every x is a whole number.
func (l *Lines) whole() bool {
	points := false
	for _, c := range l.Series {
		points = points || len(c.Y) > 0
		for _, x := range c.X {
			if x != math.Round(x) {
				return false
			}
		}
	}
	return points
}

func (c Curve) at(i int) float64 {
	if c.X == nil {
		return float64(i)
	}
	return c.X[i]
}

func (l *Lines) curve(s *scene, area box, c Curve, col color.RGBA, xs, ys axis) {
	var run [][2]float64
	flush := func() {
		if len(run) == 1 { // a lone point must be seen
			run = append(run, [2]float64{run[0][0] + 2, run[0][1]})
		}
		if len(run) > 0 {
			s.add(path{points: run, color: col, width: 1.5, dashed: c.Dashed})
		}
		run = nil
	}
	for i, y := range c.Y {
		x := c.at(i)
		if math.IsNaN(y) || l.LogY && y <= 0 || l.LogX && x <= 0 {
			flush()
			continue
		}
		p := [2]float64{area.x + area.w*xs.at(x), area.y + area.h*(1-ys.at(y))}
		if c.Stems {
			if y > ys.lo {
				s.line(p[0], area.y+area.h, p[0], p[1], col, 1.4)
			}
			continue
		}
		run = append(run, p)
	}
	flush()
}

// drawAxes draws grid, ticks and names of a plot area.
// Where every x is a whole number, such as a layer, no tick stands between two.
func drawAxes(s *scene, b, area box, xs, ys axis, whole bool, xName, yName string) {
	for _, v := range ys.ticks(max(int(area.h/32), 2)) {
		y := area.y + area.h*(1-ys.at(v))
		s.line(area.x, y, area.x+area.w, y, grid, 1)
		s.add(text{x: area.x - 6, y: y + textSize*0.35, s: label(v), size: textSize, anchor: end, color: faint})
	}
	for _, v := range xs.ticks(max(int(area.w/80), 2)) {
		if whole && math.Abs(v-math.Round(v)) > 1e-9 {
			continue
		}
		x := area.x + area.w*xs.at(v)
		s.line(x, area.y+area.h, x, area.y+area.h+3, faint, 1)
		s.add(text{x: x, y: area.y + area.h + textSize + 4, s: label(v), size: textSize, anchor: middle, color: faint})
	}
	s.frame(area)
	axisNames(s, b, area, xName, yName)
}
