package plot

import (
	"fmt"
	"image/color"
	"math"
)

// Palette is a color scale: its colors at even steps, blended in between.
type Palette []color.RGBA

var (
	// Viridis runs from dark violet to yellow with even steps of lightness, for
	// quantities. Source: matplotlib's viridis at its nine eighths.
	Viridis = palette("440154", "472d7b", "3b528b", "2c728e", "21918c", "28ae80", "5ec962", "addc30", "fde725")
	// BlueOrange runs from blue through near white to orange, for signed
	// quantities: a pair of hues that red-green blindness keeps apart.
	BlueOrange = palette("08306b", "2171b5", "6baed6", "c6dbef", "f5f5f2", "fdd0a2", "fd8d3c", "d94801", "7f2704")
	// Series are the colors of lines, in order. Source: Okabe and Ito, "Color
	// Universal Design", 2008, without yellow, which is invisible on white.
	Series = palette("0072b2", "d55e00", "009e73", "cc79a7", "e69f00", "56b4e9", "000000")
)

// At returns the color at f in [0, 1]; outside, the nearest end.
func (p Palette) At(f float64) color.RGBA {
	f = min(max(f, 0), 1) * float64(len(p)-1)
	i := min(int(f), len(p)-2)
	a, b, t := p[i], p[i+1], f-float64(i)
	mix := func(x, y uint8) uint8 { return uint8(math.Round(float64(x) + (float64(y)-float64(x))*t)) }
	return color.RGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 0xff}
}

// Hex returns the palette's colors as #rrggbb.
func (p Palette) Hex() []string {
	list := make([]string, len(p))
	for i, c := range p {
		list[i] = hex(c)
	}
	return list
}

func palette(hexes ...string) Palette {
	p := make(Palette, len(hexes))
	for i, h := range hexes {
		if _, err := fmt.Sscanf(h, "%02x%02x%02x", &p[i].R, &p[i].G, &p[i].B); err != nil {
			panic(err) // a color of this file
		}
		p[i].A = 0xff
	}
	return p
}

// Scale maps values to colors.
type Scale struct {
	Palette Palette // nil: Viridis
	Lo, Hi  float64 // both 0: the data's range
	Log     bool    // logarithmic; values that are not positive take the lowest color
	Around  bool    // symmetric about 0, for BlueOrange
}

// fit fills what the scale leaves open from the values.
func (s Scale) fit(values [][]float64) Scale {
	if s.Palette == nil {
		s.Palette = Viridis
	}
	if s.Lo == 0 && s.Hi == 0 {
		s.Lo, s.Hi = math.Inf(1), math.Inf(-1)
		for _, row := range values {
			for _, v := range row {
				if !math.IsNaN(v) && (!s.Log || v > 0) {
					s.Lo, s.Hi = min(s.Lo, v), max(s.Hi, v)
				}
			}
		}
	}
	if s.Lo > s.Hi { // no value at all
		s.Lo, s.Hi, s.Log = 0, 1, false
	}
	if s.Around {
		s.Hi = max(math.Abs(s.Lo), math.Abs(s.Hi))
		s.Lo = -s.Hi
	}
	return s
}

// at returns the place of v on the scale, in [0, 1].
func (s Scale) at(v float64) float64 { return axis{lo: s.Lo, hi: s.Hi, log: s.Log}.at(v) }
