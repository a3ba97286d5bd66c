package report

import (
	"strconv"
	"strings"
)

// num writes a number for people: three significant digits, no exponent between
// a thousandth and a million.
func num(x float64) string { return digits(x, 3) }

// spread writes a null with its spread, which needs fewer digits.
func spread(mean, sd float64) string {
	if sd == 0 {
		return num(mean)
	}
	return num(mean) + " ± " + digits(sd, 2)
}

func digits(x float64, n int) string {
	s := strconv.FormatFloat(x, 'g', n, 64)
	if v, err := strconv.ParseFloat(s, 64); err == nil && strings.Contains(s, "e+") && v < 1e6 && v > -1e6 {
		s = strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strings.Replace(s, "-", "−", 1)
}

// signed is num with a plus before positive numbers.
func signed(x float64) string {
	if x > 0 {
		return "+" + num(x)
	}
	return num(x)
}

// short writes a count such as 134.5 M.
func short(n int64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e12, " T"}, {1e9, " B"}, {1e6, " M"}, {1e3, " k"}} {
		if f := float64(n) / u.size; f >= 1 {
			return strconv.FormatFloat(f, 'f', 1, 64) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// plural writes a count with its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
