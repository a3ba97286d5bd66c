package collapse

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// across says what a pivot table has across.
type across int

const (
	byT across = iota
	byLayer
)

// shownLayers are those that a table by layer has.
var shownLayers = []int{1, 2, 3, 5, 8, 12, 20, 50, 100}

// of says in which row and column a cell stands, if it is in the table at all.
func (a across) of(c *Cell, name string, largest int) (row string, col int, shown bool) {
	if a == byLayer {
		_, rank := c.Stats["stable_rank"] // cells of another kind have none
		return name, c.Layer, rank && c.T == largest && slices.Contains(shownLayers, c.Layer)
	}
	if c.Depth > 0 {
		return name + fmt.Sprintf(", L=%d", c.Depth), c.T, true
	}
	return name + fmt.Sprintf(", l=%d", c.Layer), c.T, true
}

// pivot prints a table with T or layers across.
func (t *text) pivot(experiment, title string, a across, show func(c *Cell) string) {
	names, _ := t.r.configurations(experiment)
	var heads []int
	byRow := map[string]map[int]string{}
	var order []string
	for _, gamma := range t.gammas(experiment) {
		for _, name := range names {
			cells := t.at(experiment, name, gamma)
			largest := 0
			for _, c := range cells {
				largest = max(largest, c.T)
			}
			for _, c := range cells {
				row, col, shown := a.of(c, label(name, gamma), largest)
				if !shown {
					continue
				}
				if byRow[row] == nil {
					byRow[row] = map[int]string{}
					order = append(order, row)
				}
				byRow[row][col] = show(c)
				if !slices.Contains(heads, col) {
					heads = append(heads, col)
				}
			}
		}
	}
	slices.Sort(heads)
	prefix := map[across]string{byT: "T=", byLayer: "l="}[a]
	rows := [][]string{{title}}
	for _, h := range heads {
		rows[0] = append(rows[0], prefix+fmt.Sprint(h))
	}
	if a == byT {
		slices.SortStableFunc(order, func(x, y string) int { return cmp.Compare(rowName(x), rowName(y)) * boolInt(rowName(x) == rowName(y)) })
	}
	for _, name := range order {
		row := []string{name}
		for _, h := range heads {
			row = append(row, or(byRow[name][h], "-"))
		}
		rows = append(rows, row)
	}
	t.table(rows)
}

func rowName(s string) string { return s[:strings.LastIndex(s, ", ")] }

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// table aligns columns, the first to the left. A table that is too wide has its row
// names on lines of their own.
func (t *text) table(rows [][]string) {
	if len(rows) < 2 {
		return
	}
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], len([]rune(cell)))
		}
	}
	total, gap := 2+width[0], 2
	for _, w := range width[1:] {
		total += w + 2
	}
	short := width[0] <= 8
	if total > t.width && short { // numbers for names: closer columns instead
		gap = 1
	}
	for n, row := range rows {
		name := "  " + row[0]
		if total > t.width && !short {
			t.line("%s", name)
			name = "   "
		} else {
			name += strings.Repeat(" ", width[0]-len([]rune(row[0])))
		}
		line := name
		for i, cell := range row[1:] {
			line += strings.Repeat(" ", gap+width[i+1]-len([]rune(cell))) + cell
		}
		t.line("%s", line)
		if n == 0 {
			t.line("  %s", strings.Repeat("-", min(total, t.width)-2))
		}
	}
	t.line("")
}
