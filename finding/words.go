package finding

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/eigenhead/eigenhead/internal/spelling"
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
	names := make([]string, len(list))
	for i, k := range list {
		names[i] = k.name
	}
	return spelling.Of(s, names)
}
