package finding

import (
	"fmt"
	"strconv"
	"strings"
)

// num writes a number for people: three significant digits, no exponent between
// a thousandth and a million.
func num(x float64) string { return digits(x, 3) }

func digits(x float64, n int) string {
	s := strconv.FormatFloat(x, 'g', n, 64)
	if v, err := strconv.ParseFloat(s, 64); err == nil && strings.Contains(s, "e+") && v < 1e6 && v > -1e6 {
		s = strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strings.Replace(s, "-", "−", 1)
}

func quote(s string) string { return strconv.Quote(s) }

func at(row, col int) string { return fmt.Sprintf("line %d, column %d", row, col) }

// nearest returns the name of least edit distance to s.
func nearest(s string, list []key) string {
	best, least := "", 1<<30
	for _, k := range list {
		if d := distance(s, k.name); d < least {
			best, least = k.name, d
		}
	}
	return best
}

// distance is Levenshtein's, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
