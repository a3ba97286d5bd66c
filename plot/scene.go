package plot

import (
	"image"
	"image/color"
	"strings"
)

var (
	ink   = color.RGBA{0x22, 0x22, 0x22, 0xff}
	faint = color.RGBA{0x66, 0x66, 0x66, 0xff}
	grid  = color.RGBA{0xe2, 0xe2, 0xe2, 0xff}
	paper = color.RGBA{0xff, 0xff, 0xff, 0xff}
	empty = color.RGBA{0xd4, 0xd4, 0xd4, 0xff} // a cell without a value
)

// scene is a picture before a format: marks in the order of painting.
type scene struct {
	title         string
	width, height float64
	marks         []any // rect, path, text or cells
}

func (s *scene) add(m any) { s.marks = append(s.marks, m) }

type rect struct {
	box
	fill color.RGBA
}

// path is a line through its points.
type path struct {
	points [][2]float64
	color  color.RGBA
	width  float64
	dashed bool
}

// text stands on its baseline; turned text runs upward.
type text struct {
	x, y   float64
	s      string
	size   float64
	anchor anchor
	color  color.RGBA
	turned bool
	bold   bool
}

type anchor int

const (
	start anchor = iota
	middle
	end
)

// cells is a raster stretched over a box, one pixel for each cell, edges kept sharp.
type cells struct {
	box
	image *image.RGBA
}

// line adds a straight line.
func (s *scene) line(x1, y1, x2, y2 float64, c color.RGBA, width float64) {
	s.add(path{points: [][2]float64{{x1, y1}, {x2, y2}}, color: c, width: width})
}

// frame draws the two axes of a plot area.
func (s *scene) frame(area box) {
	s.add(path{points: [][2]float64{{area.x, area.y}, {area.x, area.y + area.h}, {area.x + area.w, area.y + area.h}},
		color: faint, width: 1})
}

// wrap breaks a text into lines of at most the given width.
func wrap(s string, size, width float64) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		longer := strings.TrimPrefix(line+" "+word, " ")
		if line != "" && textWidth(longer, size) > width {
			lines = append(lines, line)
			longer = word
		}
		line = longer
	}
	return append(lines, line)
}
