package plot

import (
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// pngScale is the number of PNG pixels for each unit of the scene.
const pngScale = 2

func (s *scene) writePNG(w io.Writer) error {
	c := &canvas{image.NewRGBA(image.Rect(0, 0, int(math.Ceil(s.width))*pngScale, int(math.Ceil(s.height))*pngScale))}
	draw.Draw(c, c.Bounds(), image.NewUniform(paper), image.Point{}, draw.Src)
	for _, m := range s.marks {
		switch m := m.(type) {
		case rect:
			draw.Draw(c, pixels(m.box), image.NewUniform(m.fill), image.Point{}, draw.Over)
		case path:
			c.path(m)
		case text:
			c.text(m)
		case cells:
			c.cells(m)
		}
	}
	return png.Encode(w, c.RGBA)
}

type canvas struct{ *image.RGBA }

// pixels rounds edges, not sizes: neighbors share their edge, and nothing is thinner than a pixel.
func pixels(b box) image.Rectangle {
	r := image.Rect(round(b.x), round(b.y), round(b.x+b.w), round(b.y+b.h))
	if r.Dx() == 0 && b.w > 0 {
		r.Max.X++
	}
	if r.Dy() == 0 && b.h > 0 {
		r.Max.Y++
	}
	return r
}

func round(x float64) int { return int(math.Round(x * pngScale)) }

func (c *canvas) cells(m cells) {
	size := m.image.Bounds().Size()
	cw, ch := m.w/float64(size.X), m.h/float64(size.Y)
	for y := range size.Y {
		for x := range size.X {
			cell := pixels(box{m.x + float64(x)*cw, m.y + float64(y)*ch, cw, ch})
			draw.Draw(c, cell, image.NewUniform(m.image.RGBAAt(x, y)), image.Point{}, draw.Src)
		}
	}
}

// path strokes each segment as a rectangle of its own, with square ends that
// cover the joints; straight axis lines need no more.
func (c *canvas) path(p path) {
	const on, period = 5, 8 // as in the SVG; dashes run on across the points
	phase := 0.0
	for i := 1; i < len(p.points); i++ {
		a, b := p.points[i-1], p.points[i]
		length := math.Hypot(b[0]-a[0], b[1]-a[1])
		if length == 0 {
			continue
		}
		if !p.dashed {
			c.segment(a, b, p.width, p.color)
			continue
		}
		for at := -phase; at < length; at += period {
			if from, to := math.Max(at, 0), math.Min(at+on, length); from < to {
				c.segment(between(a, b, from/length), between(a, b, to/length), p.width, p.color)
			}
		}
		phase = math.Mod(phase+length, period)
	}
}

func between(a, b [2]float64, f float64) [2]float64 {
	return [2]float64{a[0] + (b[0]-a[0])*f, a[1] + (b[1]-a[1])*f}
}

// segment paints one thick line through a raster no larger than its bounding box.
func (c *canvas) segment(a, b [2]float64, width float64, col color.RGBA) {
	half := math.Max(width, 0.5) * pngScale / 2
	ax, ay, bx, by := a[0]*pngScale, a[1]*pngScale, b[0]*pngScale, b[1]*pngScale
	l := math.Hypot(bx-ax, by-ay)
	ux, uy := (bx-ax)/l*half, (by-ay)/l*half
	if ax == bx || ay == by {
		ux, uy = ux*0.999, uy*0.999 // axis lines stay sharp
	}
	box := image.Rect(int(min(ax, bx)-half)-2, int(min(ay, by)-half)-2, int(max(ax, bx)+half)+3, int(max(ay, by)+half)+3).Intersect(c.Bounds())
	if box.Empty() {
		return
	}
	ox, oy := float64(box.Min.X), float64(box.Min.Y)
	r := vector.NewRasterizer(box.Dx(), box.Dy())
	at := func(x, y float64) (float32, float32) { return float32(x - ox), float32(y - oy) }
	r.MoveTo(at(ax-ux-uy, ay-uy+ux))
	r.LineTo(at(bx+ux-uy, by+uy+ux))
	r.LineTo(at(bx+ux+uy, by+uy-ux))
	r.LineTo(at(ax-ux+uy, ay-uy-ux))
	r.ClosePath()
	r.Draw(c, box, image.NewUniform(col), image.Point{})
}

func (c *canvas) text(t text) {
	face := faceOf(t.size*pngScale, t.bold)
	x, y := t.x*pngScale, t.y*pngScale
	width := float64(font.MeasureString(face, t.s)) / 64
	shift := [...]float64{0, width / 2, width}[t.anchor]
	if !t.turned {
		d := font.Drawer{Dst: c, Src: image.NewUniform(t.color), Face: face, Dot: fixed.P(int(math.Round(x-shift)), int(math.Round(y)))}
		d.DrawString(t.s)
		return
	}
	// Upward text: draw it level on its own ground, then turn that a quarter.
	up, down := int(t.size*pngScale*1.2), int(t.size*pngScale*0.5)
	level := image.NewRGBA(image.Rect(0, 0, int(width)+2, up+down))
	d := font.Drawer{Dst: level, Src: image.NewUniform(t.color), Face: face, Dot: fixed.P(0, up)}
	d.DrawString(t.s)
	left, bottom := int(math.Round(x))-up, int(math.Round(y+shift))
	turned := image.NewRGBA(image.Rect(0, 0, up+down, int(width)+2))
	for ly := range up + down {
		for lx := range int(width) + 2 {
			turned.SetRGBA(ly, int(width)+1-lx, level.RGBAAt(lx, ly))
		}
	}
	at := image.Rect(left, bottom-int(width)-1, left+up+down, bottom+1)
	draw.Draw(c, at, turned, image.Point{}, draw.Over)
}

var fonts = sync.OnceValue(func() [2]*opentype.Font {
	var list [2]*opentype.Font
	for i, data := range [][]byte{goregular.TTF, gobold.TTF} {
		f, err := opentype.Parse(data)
		if err != nil {
			panic(err) // the font is part of the program
		}
		list[i] = f
	}
	return list
})

func faceOf(size float64, bold bool) font.Face {
	face, err := opentype.NewFace(fonts()[b2i(bold)], &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingNone})
	if err != nil {
		panic(err) // only for a size that is not positive
	}
	return face
}

// textWidth returns the width of s in the scene. Readers of the SVG have another
// font: layouts leave a tenth of room.
func textWidth(s string, size float64) float64 {
	return float64(font.MeasureString(faceOf(64, false), s)) / 64 / 64 * size * 1.05
}
