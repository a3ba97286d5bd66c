package plot

import (
	"fmt"
	"image"
	"math"
)

// Heatmap colors a table of values, row 0 on top.
type Heatmap struct {
	Title          string
	X, Y           string // what columns and rows count
	Unit           string // of the values, for the legend
	Values         [][]float64
	Scale          Scale
	FirstX, FirstY int     // number of the first column and row
	Height         float64 // of the cells; 0: from the number of rows
}

const (
	legendWidth = 86.0
	leftRoom    = 58.0
	bottomRoom  = 40.0
	topRoom     = 24.0 // panel title
)

func (m *Heatmap) rows() int { return len(m.Values) }

func (m *Heatmap) cols() int {
	if len(m.Values) == 0 {
		return 0
	}
	return len(m.Values[0])
}

func (m *Heatmap) height(width float64) float64 {
	h := m.Height
	if h == 0 { // square cells where that gives a sensible height
		h = min(max((width-leftRoom-legendWidth)/float64(max(m.cols(), 1))*float64(m.rows()), 80), 420)
	}
	return topRoom + h + bottomRoom
}

func (m *Heatmap) draw(s *scene, b box) {
	s.add(text{x: b.x, y: b.y + headSize, s: m.Title, size: headSize, color: ink, bold: true})
	area := box{b.x + leftRoom, b.y + topRoom, b.w - leftRoom - legendWidth, b.h - topRoom - bottomRoom}
	scale := m.Scale.fit(m.Values)
	if m.rows() > 0 && m.cols() > 0 {
		s.add(cells{area, m.raster(scale)})
	}
	ch := area.h / float64(max(m.rows(), 1))
	for _, i := range countTicks(m.rows(), area.h/16) {
		s.add(text{x: area.x - 6, y: area.y + (float64(i)+0.5)*ch + textSize*0.35, s: fmt.Sprint(m.FirstY + i), size: textSize, anchor: end, color: faint})
	}
	cw := area.w / float64(max(m.cols(), 1))
	for _, i := range countTicks(m.cols(), area.w/34) {
		s.add(text{x: area.x + (float64(i)+0.5)*cw, y: area.y + area.h + textSize + 3, s: fmt.Sprint(m.FirstX + i), size: textSize, anchor: middle, color: faint})
	}
	axisNames(s, b, area, m.X, m.Y)
	m.legend(s, box{area.x + area.w + 14, area.y, 13, area.h}, scale)
}

// axisNames writes the names of both axes at their outer edges.
func axisNames(s *scene, b, area box, x, y string) {
	s.add(text{x: area.x + area.w/2, y: area.y + area.h + bottomRoom - 7, s: x, size: textSize, anchor: middle, color: ink})
	s.add(text{x: b.x + textSize, y: area.y + area.h/2, s: y, size: textSize, anchor: middle, color: ink, turned: true})
}

func (m *Heatmap) raster(scale Scale) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, m.cols(), m.rows()))
	for y, row := range m.Values {
		if len(row) != m.cols() {
			panic(fmt.Sprintf("plot: row %d of the heat map has %d values, row 0 has %d", y, len(row), m.cols()))
		}
		for x, v := range row {
			c := empty
			if !math.IsNaN(v) {
				c = scale.Palette.At(scale.at(v))
			}
			img.SetRGBA(x, y, c)
		}
	}
	return img
}

// legend draws the scale as a column of colors, the highest on top.
func (m *Heatmap) legend(s *scene, b box, scale Scale) {
	const steps = 64
	bar := image.NewRGBA(image.Rect(0, 0, 1, steps))
	for i := range steps {
		bar.SetRGBA(0, i, scale.Palette.At(1-(float64(i)+0.5)/steps))
	}
	s.add(cells{b, bar})
	a := axis{scale.Lo, scale.Hi, scale.Log}
	for _, v := range a.ticks(max(int(b.h/34), 2)) {
		y := b.y + b.h*(1-a.at(v))
		s.line(b.x+b.w, y, b.x+b.w+3, y, faint, 1)
		s.add(text{x: b.x + b.w + 6, y: y + textSize*0.35, s: label(v), size: textSize, color: faint})
	}
	s.add(text{x: b.x, y: b.y - 7, s: m.Unit, size: textSize, color: faint})
}

// countTicks returns indices below n at a round step, at most about limit of them.
func countTicks(n int, limit float64) []int {
	step := 1
	if float64(n) > limit && n > 1 {
		step = int(math.Max(1, roundStep(float64(n)/math.Max(limit, 1))))
	}
	var list []int
	for i := 0; i < n; i += step {
		list = append(list, i)
	}
	return list
}
