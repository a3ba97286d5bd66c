package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite golden files")

// figures returns one small figure for each kind of panel.
func figures() map[string]*Figure {
	values := make([][]float64, 6)
	signed := make([][]float64, 6)
	for i := range values {
		for j := range 9 {
			values[i] = append(values[i], float64(i*9+j)+0.5)
			signed[i] = append(signed[i], float64(i)-float64(j)/2)
		}
	}
	values[2][3] = math.NaN()
	x, decay, null, flat := []float64{}, []float64{}, []float64{}, []float64{}
	for i := range 64 {
		x = append(x, float64(i+1))
		decay = append(decay, 100*math.Exp(-float64(i)/6))
		null = append(null, 30*(1-float64(i)/80))
		flat = append(flat, math.Sin(float64(i)/5))
	}
	return map[string]*Figure{
		"heatmap": {Title: "Heat map & <legend>", Note: "A note of one sentence.", Panels: []Panel{
			&Heatmap{Title: "linear", X: "head", Y: "layer", Unit: "nats", Values: values},
			&Heatmap{Title: "signed", X: "head", Y: "layer", Unit: "z", Values: signed, Scale: Scale{Palette: BlueOrange, Around: true}, FirstY: 12},
			&Heatmap{Title: "log", X: "head", Y: "layer", Unit: "1", Values: values, Scale: Scale{Log: true}}}},
		"lines": {Title: "Lines", Panels: []Panel{
			&Lines{Title: "spectrum", X: "channel", Y: "σ", LogY: true, Series: []Curve{{Name: "measured", X: x, Y: decay}, {Name: "null", X: x, Y: null, Dashed: true}}},
			&Lines{Title: "one", X: "token", Y: "weight", Series: []Curve{{Name: "stems", Y: []float64{0, 0.2, 0.1, 0.7}, Stems: true, Color: 2}}},
			&Lines{Title: "sine", X: "token", Y: "1", Series: []Curve{{Name: "sine", Y: flat}}}}},
		"histogram": {Title: "Histogram", Panels: []Panel{
			&Histogram{Title: "counts", X: "sink mass", Values: flat, Marks: []Mark{{"null 0.1", 0.1}, {"threshold", 1.3}}}}},
		"empty": {Panels: []Panel{&Heatmap{Title: "nothing"}, &Lines{Title: "nothing"}, &Histogram{Title: "nothing"},
			&Heatmap{Title: "one", Values: [][]float64{{1}}}, &Lines{Title: "one", Series: []Curve{{Y: []float64{3}}}}, &Histogram{Title: "one", Values: []float64{2}}}},
	}
}

func TestGoldenSVG(t *testing.T) {
	for name, f := range figures() {
		var got bytes.Buffer
		if err := f.WriteSVG(&got); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", name+".svg")
		if *update {
			if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s differs; run go test ./plot -update and review", file)
		}
		for d := xml.NewDecoder(&got); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s is no XML: %v", name, err)
			}
		}
		if bytes.Contains(want, []byte("NaN")) || bytes.Contains(want, []byte("Inf")) {
			t.Errorf("%s holds a number that is not finite", file)
		}
	}
}

func TestPNG(t *testing.T) {
	for name, f := range figures() {
		var a, b bytes.Buffer
		if err := f.WritePNG(&a); err != nil {
			t.Fatal(err)
		}
		if err := f.WritePNG(&b); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Errorf("%s: two writes differ", name)
		}
		img, err := png.Decode(&a)
		if err != nil {
			t.Fatal(err)
		}
		if w := img.Bounds().Dx(); w != defaultWidth*pngScale {
			t.Errorf("%s: %d pixels wide, want %d", name, w, defaultWidth*pngScale)
		}
		if name != "heatmap" {
			continue
		}
		seen := map[color.Color]bool{}
		for y := range img.Bounds().Dy() {
			for x := range img.Bounds().Dx() {
				seen[img.At(x, y)] = true
			}
		}
		if !seen[Viridis[0]] || !seen[Viridis[8]] || !seen[empty] || !seen[BlueOrange[8]] {
			t.Errorf("%s: a color of the scale's ends is not in the picture", name)
		}
	}
}

// TestManyCells checks that a large raster is embedded and stays small.
func TestManyCells(t *testing.T) {
	values := make([][]float64, 300)
	for i := range values {
		values[i] = make([]float64, 300)
		for j := range values[i] {
			values[i][j] = float64(i ^ j)
		}
	}
	var out bytes.Buffer
	f := &Figure{Panels: []Panel{&Heatmap{Values: values}}}
	if err := f.WriteSVG(&out); err != nil {
		t.Fatal(err)
	}
	if out.Len() > 300_000 || !strings.Contains(out.String(), "data:image/png;base64,") {
		t.Errorf("90000 cells take %d bytes", out.Len())
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		a    axis
		n    int
		want string
	}{
		{axis{0, 1, false}, 5, "0 0.2 0.4 0.6 0.8 1"},
		{axis{0.011, 0.019, false}, 4, "0.012 0.014 0.016 0.018"},
		{axis{-3, 3, false}, 3, "−2 0 2"},
		{axis{0, 512, false}, 5, "0 200 400"},
		{axis{1e-3, 1e3, true}, 10, "0.001 0.01 0.1 1 10 100 1000"},
		{axis{3, 300, true}, 10, "5 10 20 50 100 200"},
		{axis{1e-30, 1, true}, 4, "10⁻³⁰ 10⁻²² 10⁻¹⁴ 10⁻⁶"},
		{axis{0, 3e7, false}, 3, "0 10⁷ 2·10⁷ 3·10⁷"},
		{axis{38, 600, true}, 5, "50 100 200 500"},
		{axis{2, 5, true}, 3, "2 3 4 5"},
		{axis{5, 5, false}, 3, "5"},
	} {
		var got []string
		for _, v := range c.a.ticks(c.n) {
			got = append(got, label(v))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("ticks of %+v: %q, want %q", c.a, s, c.want)
		}
	}
}

// TestViridisLightness checks what makes the palette readable without hue: its
// relative luminance rises all the way.
func TestViridisLightness(t *testing.T) {
	last := -1.0
	for i := range 101 {
		c := Viridis.At(float64(i) / 100)
		l := 0.2126*float64(c.R) + 0.7152*float64(c.G) + 0.0722*float64(c.B)
		if l <= last {
			t.Fatalf("luminance falls at %d %%: %g after %g", i, l, last)
		}
		last = l
	}
}

func TestRaggedPanics(t *testing.T) {
	for name, p := range map[string]Panel{
		"heat map": &Heatmap{Values: [][]float64{{1, 2}, {3}}},
		"curve":    &Lines{Series: []Curve{{X: []float64{1}, Y: []float64{1, 2}}}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: ragged slices were drawn", name)
				}
			}()
			_ = (&Figure{Panels: []Panel{p}}).WriteSVG(io.Discard)
		}()
	}
}
