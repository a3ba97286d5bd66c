package plot

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"image/color"
	"image/png"
	"io"
	"math"
	"strconv"
	"strings"
)

// manyCells is the number of cells above which a raster goes into the SVG as an
// embedded PNG: a rectangle takes about 60 bytes, a pixel less than one.
const manyCells = 4096

func (s *scene) writeSVG(w io.Writer) error {
	out := bufio.NewWriter(w)
	width, height := math.Ceil(s.width), math.Ceil(s.height)
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" width="%g" height="%g" viewBox="0 0 %g %g" role="img" font-family="Helvetica, Arial, sans-serif">`+"\n",
		width, height, width, height)
	fmt.Fprintf(out, "<title>%s</title>\n", escape(s.title))
	svgRect(out, box{0, 0, width, height}, paper)
	for _, m := range s.marks {
		switch m := m.(type) {
		case rect:
			svgRect(out, m.box, m.fill)
		case path:
			svgPath(out, m)
		case text:
			svgText(out, m)
		case cells:
			if err := svgCells(out, m); err != nil {
				return err
			}
		}
	}
	fmt.Fprintln(out, "</svg>")
	return out.Flush()
}

func svgRect(w io.Writer, b box, fill color.RGBA) {
	fmt.Fprintf(w, `<rect x="%s" y="%s" width="%s" height="%s" fill="%s"/>`+"\n", px(b.x), px(b.y), px(b.w), px(b.h), hex(fill))
}

func svgPath(w io.Writer, p path) {
	var d strings.Builder
	for i, pt := range p.points {
		d.WriteByte("LM"[b2i(i == 0)])
		d.WriteString(px(pt[0]) + " " + px(pt[1]))
	}
	dash := ""
	if p.dashed {
		dash = ` stroke-dasharray="5 3"`
	}
	fmt.Fprintf(w, `<path d="%s" fill="none" stroke="%s" stroke-width="%s" stroke-linejoin="round"%s/>`+"\n", d.String(), hex(p.color), px(p.width), dash)
}

func svgText(w io.Writer, t text) {
	more := ""
	if t.anchor != start {
		more += ` text-anchor="` + [...]string{"start", "middle", "end"}[t.anchor] + `"`
	}
	if t.bold {
		more += ` font-weight="bold"`
	}
	if t.turned {
		more += fmt.Sprintf(` transform="rotate(-90 %s %s)"`, px(t.x), px(t.y))
	}
	fmt.Fprintf(w, `<text x="%s" y="%s" font-size="%s" fill="%s"%s>%s</text>`+"\n", px(t.x), px(t.y), px(t.size), hex(t.color), more, escape(t.s))
}

func svgCells(w io.Writer, c cells) error {
	size := c.image.Bounds().Size()
	if size.X*size.Y > manyCells {
		var data bytes.Buffer
		if err := png.Encode(&data, c.image); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w, `<image x="%s" y="%s" width="%s" height="%s" preserveAspectRatio="none" style="image-rendering:pixelated" href="data:image/png;base64,%s"/>`+"\n",
			px(c.x), px(c.y), px(c.w), px(c.h), base64.StdEncoding.EncodeToString(data.Bytes()))
		return err
	}
	cw, ch := c.w/float64(size.X), c.h/float64(size.Y)
	fmt.Fprintln(w, `<g shape-rendering="crispEdges">`)
	for y := range size.Y {
		for x := range size.X {
			svgRect(w, box{c.x + float64(x)*cw, c.y + float64(y)*ch, cw, ch}, c.image.RGBAAt(x, y))
		}
	}
	_, err := fmt.Fprintln(w, "</g>")
	return err
}

// px writes a length with two decimals at most.
func px(x float64) string {
	return strconv.FormatFloat(math.Round(x*100)/100, 'f', -1, 64)
}

func hex(c color.RGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

// escape makes a string XML text; characters that XML forbids become U+FFFD.
func escape(s string) string {
	return escaper.Replace(strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\t' && r != '\n' || r == 0xfffe || r == 0xffff {
			return 0xfffd
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd")))
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
