// Package plot draws pictures as SVG and PNG: heat maps, series and histograms,
// with scales, legends and palettes that color-blind readers can tell apart. A
// Figure is turned into one scene of rectangles, lines and text, and two small
// back ends write it. It knows nothing of heads, models or reports.
package plot

import "io"

// Figure is a column of panels under one title.
type Figure struct {
	Title  string
	Note   string  // small print below the title
	Width  float64 // in pixels of SVG; 0: 860
	Panels []Panel
}

// Panel is one picture of a figure: *Heatmap, *Lines or *Histogram.
type Panel interface {
	height(width float64) float64
	draw(s *scene, box box)
}

// box is a rectangle of the scene.
type box struct{ x, y, w, h float64 }

const (
	defaultWidth = 860
	margin       = 16.0
	gap          = 18.0 // between panels
	titleSize    = 17.0
	headSize     = 13.5 // panel titles
	textSize     = 11.5
)

// WriteSVG writes the figure as SVG 1.1 without scripts, fonts or links.
// Panics where a panel's slices do not fit each other.
func (f *Figure) WriteSVG(w io.Writer) error { return f.scene().writeSVG(w) }

// WritePNG writes the figure as PNG, two pixels for each pixel of the SVG.
// Panics where a panel's slices do not fit each other.
func (f *Figure) WritePNG(w io.Writer) error { return f.scene().writePNG(w) }

// scene lays the panels out from top to bottom.
func (f *Figure) scene() *scene {
	width := f.Width
	if width == 0 {
		width = defaultWidth
	}
	s := &scene{title: f.Title, width: width}
	inner := width - 2*margin
	y := margin
	if f.Title != "" {
		for _, line := range wrap(f.Title, titleSize, inner) {
			s.add(text{x: margin, y: y + titleSize*0.8, s: line, size: titleSize, color: ink, bold: true})
			y += titleSize * 1.3
		}
	}
	if f.Note != "" {
		for _, line := range wrap(f.Note, textSize, inner) {
			s.add(text{x: margin, y: y + textSize*0.9, s: line, size: textSize, color: faint})
			y += textSize * 1.4
		}
	}
	for i, p := range f.Panels {
		if i > 0 || y > margin {
			y += gap
		}
		h := p.height(inner)
		p.draw(s, box{margin, y, inner, h})
		y += h
	}
	s.height = y + margin
	return s
}
