package dashboard

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// num writes a number for people: three significant digits, no exponent between
// a thousandth and a million.
func num(x float64) string {
	s := strconv.FormatFloat(x, 'g', 3, 64)
	if v, err := strconv.ParseFloat(s, 64); err == nil && strings.Contains(s, "e+") && v < 1e6 && v > -1e6 {
		s = strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strings.Replace(s, "-", "−", 1)
}

// whole writes a whole number in groups of three digits.
func whole(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// count writes a number with its noun.
func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return whole(int64(n)) + " " + one + "s"
}

// seconds returns how old a time is, 0 where clocks disagree.
func seconds(now, t time.Time) int { return max(0, int(now.Sub(t).Seconds())) }

// ago says how long ago a time was; clocks that disagree by a little count as now.
func ago(now, t time.Time) string {
	d := now.Sub(t)
	switch {
	case t.IsZero():
		return "never"
	case d < 5*time.Second:
		return "just now"
	case d < time.Minute:
		return fmt.Sprintf("%d s ago", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	default:
		return fmt.Sprintf("%d days ago", int(d.Hours()/24))
	}
}

// evidenceText writes one value of an alert's evidence.
func evidenceText(v any) string {
	switch v := v.(type) {
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1e15 {
			return whole(int64(v))
		}
		return num(v)
	case string:
		return cut(v, 300)
	case bool:
		return strconv.FormatBool(v)
	case nil:
		return "none"
	case []any:
		var parts []string
		for _, e := range v[:min(len(v), 12)] {
			parts = append(parts, evidenceText(e))
		}
		if len(v) > 12 {
			parts = append(parts, fmt.Sprintf("… (%d in all)", len(v)))
		}
		return strings.Join(parts, ", ")
	case map[string]any:
		var parts []string
		for _, k := range sortedKeys(v) {
			parts = append(parts, cut(k, 60)+" "+evidenceText(v[k]))
			if len(parts) == 12 {
				break
			}
		}
		return strings.Join(parts, ", ")
	default:
		return cut(fmt.Sprint(v), 300)
	}
}

// cut shortens what a client wrote to n characters.
func cut(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n]) + "…"
}
