package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/eigenhead/eigenhead/measure"
)

// telling are the measures of the strips, most telling first.
var telling = []string{"attention.sink", "attention.entropy", "attention.previous", "attention.induction",
	"energy.k90", "output.share", "energy.top20", "attention.distance"}

const (
	maxPanels = 6
	bandLines = 24 // lines for all bands of strips together
	binRows   = 8  // rows of a strip once heads must be grouped
	panelGap  = 3
)

// strips draws layers × heads as one character or more a head, side by side as
// far as the width allows.
func (s *screen) strips(r *Report) {
	var names []string
	for _, name := range telling {
		if slices.ContainsFunc(r.present(measure.PerHead), func(m *measure.Measure) bool { return m.Name == name }) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return
	}
	g := newGrid(r, s.width)
	perBand := max(1, (s.width+panelGap)/(g.width()+panelGap))
	n := min(len(names), maxPanels, perBand*max(1, bandLines/(len(g.rows)+2)))
	if perBand >= 4 {
		n = min(n, perBand)
	}
	s.line("")
	for from := 0; from < n; from += perBand {
		var panels [][]string
		for _, name := range names[from:min(from+perBand, n)] {
			panels = append(panels, s.panel(r, g, name, from+perBand >= n))
		}
		for i := range panels[0] {
			var row []string
			for _, p := range panels {
				row = append(row, p[i])
			}
			s.line(strings.Join(row, strings.Repeat(" ", panelGap)))
		}
	}
	s.line(s.paint(dim, cells.Truncate(g.legend(), s.width, "…")))
}

// grid is the shape of a strip: which layers and heads share a cell.
type grid struct {
	rows, cols [][]int // heads and layers of each row and column
	cell       int     // columns of the terminal for each column
	label      int
}

func newGrid(r *Report, width int) *grid {
	var layers, heads []int
	for _, h := range r.Heads {
		layers, heads = append(layers, h.Layer), append(heads, h.Head)
	}
	slices.Sort(layers)
	slices.Sort(heads)
	layers, heads = slices.Compact(layers), slices.Compact(heads)
	g := &grid{label: len(fmt.Sprint(heads[len(heads)-1])) + 2}
	rows := binRows
	if len(heads) <= binRows+4 {
		rows = len(heads)
	}
	g.rows, g.cols = bin(heads, rows), bin(layers, width-g.label)
	g.cell = min(max(24/len(g.cols), 1), 3)
	return g
}

// bin cuts a list into at most n runs of equal length, the last one shorter.
func bin(list []int, n int) [][]int {
	size := (len(list) + n - 1) / n
	return slices.Collect(slices.Chunk(list, max(size, 1)))
}

func (g *grid) width() int { return max(g.label+g.cell*len(g.cols), 24) }

func (g *grid) legend() string {
	text := "columns are layers, rows are heads; · low  ░ ▒ ▓ █ high"
	h, l := len(g.rows[0]), len(g.cols[0])
	switch {
	case l > 1:
		text += fmt.Sprintf("; cells hold the highest of %d × %d", h, l)
	case h > 1:
		text += fmt.Sprintf("; the highest of %d heads", h)
	}
	return text
}

// panel returns the lines of one strip, each of the grid's width; only the last
// band names the layers.
func (s *screen) panel(r *Report, g *grid, name string, last bool) []string {
	cellsOf, lo, hi := g.fill(r, name)
	if strings.HasPrefix(name, "attention.") && lo >= 0 && hi <= 1 {
		lo, hi = 0, 1 // shares of attention keep one scale
	}
	lines := []string{s.paint(bold, left(title(name, lo, hi, g.width()), g.width()))}
	for y, row := range cellsOf {
		line := left(fmt.Sprintf("H%d", g.rows[y][0]), g.label)
		for _, v := range row {
			line += s.shade(v, lo, hi, g.cell)
		}
		lines = append(lines, line+strings.Repeat(" ", g.width()-g.label-g.cell*len(row)))
	}
	if !last {
		return lines
	}
	return append(lines, s.paint(dim, left(strings.Repeat(" ", g.label)+g.axis(), g.width())))
}

// title names a strip and its range, with fewer digits where the width asks for it.
func title(name string, lo, hi float64, width int) string {
	text := name + " " + num(lo)
	for n := 3; n > 0 && hi > lo; n-- {
		text = fmt.Sprintf("%s %s–%s", name, digits(lo, n), digits(hi, n))
		if cells.StringWidth(text) <= width {
			break
		}
	}
	return text
}

// axis names the first and the last layer.
func (g *grid) axis() string {
	first := fmt.Sprintf("L%d", g.cols[0][0])
	if len(g.cols) == 1 {
		return first
	}
	end := g.cols[len(g.cols)-1]
	last := fmt.Sprintf("L%d", end[len(end)-1])
	return left(first, max(g.cell*len(g.cols)-len(last), len(first)+1)) + last
}

// fill returns the highest value of each cell, NaN where there is none, and the range.
func (g *grid) fill(r *Report, name string) (values [][]float64, lo, hi float64) {
	place := func(groups [][]int) map[int]int {
		at := map[int]int{}
		for i, group := range groups {
			for _, n := range group {
				at[n] = i
			}
		}
		return at
	}
	rowOf, colOf := place(g.rows), place(g.cols)
	values = make([][]float64, len(g.rows))
	for y := range values {
		values[y] = slices.Repeat([]float64{math.NaN()}, len(g.cols))
	}
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, h := range r.Heads {
		if v, ok := h.Measures[name]; ok {
			at := &values[rowOf[h.Head]][colOf[h.Layer]]
			if math.IsNaN(*at) || v.Value > *at {
				*at = v.Value
			}
			lo, hi = min(lo, v.Value), max(hi, v.Value)
		}
	}
	return values, lo, hi
}

// Shades from low to high, and viridis in the 256 colors of terminals.
var (
	shades  = []string{"·", "░", "▒", "▓", "█"}
	viridis = []style{"38;5;60", "38;5;31", "38;5;36", "38;5;77", "38;5;220"}
)

func (s *screen) shade(v, lo, hi float64, cell int) string {
	if math.IsNaN(v) {
		return strings.Repeat(" ", cell)
	}
	level := 0
	if hi > lo {
		level = min(int((v-lo)/(hi-lo)*float64(len(shades))), len(shades)-1)
	}
	return s.paint(viridis[level], strings.Repeat(shades[level], cell))
}
