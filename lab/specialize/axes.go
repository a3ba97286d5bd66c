package specialize

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// Axis is one parameter of a sweep and its values.
type Axis struct {
	Name   string    `json:"name"`
	Values []float64 `json:"values"`
}

// AxisNames are the parameters that can be swept. snr is E|θ|²: the whole law is
// scaled to it.
var AxisNames = []string{"heads", "tokens", "features", "snr", "rate", "dimension", "size"}

var wholeAxes = []string{"heads", "tokens", "features", "dimension"}

const maxCells = 10000

// ParseAxes reads one or two axes such as "heads=1..12 snr=1..20": whole steps
// from a to b, "a..b/n" for n even steps, "a..b/n/log" for n equal ratios, or a
// list "1,2,5". Errors: *xerr.Usage.
func ParseAxes(text string) ([]Axis, error) {
	bad := func(found string) error {
		return &xerr.Usage{Flag: "--sweep '" + text + "'", Found: found, Want: "one or two axes such as 'heads=1..12 snr=1..20'",
			Hint: "axes: " + strings.Join(AxisNames, ", ") + "; values: 1..12, 1..20/8, 1..100/5/log or 1,2,5"}
	}
	fields := strings.Fields(text)
	if len(fields) < 1 || len(fields) > 2 {
		return nil, bad(fmt.Sprintf("%d axes", len(fields)))
	}
	var axes []Axis
	cells := 1
	for _, f := range fields {
		name, spec, ok := strings.Cut(f, "=")
		if !ok || !slices.Contains(AxisNames, name) {
			return nil, bad(fmt.Sprintf("axis %q", name))
		}
		values, err := parseValues(spec)
		if err != nil {
			return nil, bad(fmt.Sprintf("%s: %v", name, err))
		}
		if slices.Contains(wholeAxes, name) {
			for _, v := range values {
				if v != math.Trunc(v) || v < 1 {
					return nil, bad(fmt.Sprintf("%s: %g is not a whole number above 0", name, v))
				}
			}
		}
		if len(axes) == 1 && axes[0].Name == name {
			return nil, bad(name + " twice")
		}
		axes = append(axes, Axis{Name: name, Values: values})
		cells *= len(values)
	}
	if cells > maxCells {
		return nil, bad(fmt.Sprintf("%d cells, more than %d", cells, maxCells))
	}
	return axes, nil
}

func parseValues(spec string) ([]float64, error) {
	lo, rest, isRange := strings.Cut(spec, "..")
	if !isRange {
		var list []float64
		for part := range strings.SplitSeq(spec, ",") {
			v, err := number(part)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		if !slices.IsSorted(list) || len(slices.Compact(slices.Clone(list))) < len(list) {
			return nil, fmt.Errorf("values %s do not ascend", spec)
		}
		return list, nil
	}
	parts := strings.Split(rest, "/")
	a, err := number(lo)
	if err != nil {
		return nil, err
	}
	b, err := number(parts[0])
	if err != nil {
		return nil, err
	}
	if a > b {
		return nil, fmt.Errorf("%g..%g descends", a, b)
	}
	n := int(min(b-a, maxCells)) + 1
	isLog := len(parts) == 3 && parts[2] == "log"
	if len(parts) > 3 || len(parts) == 3 && !isLog {
		return nil, fmt.Errorf("%q", spec)
	}
	if len(parts) > 1 {
		if n, err = strconv.Atoi(parts[1]); err != nil || n < 2 || n > maxCells {
			return nil, fmt.Errorf("%q is no number of steps", parts[1])
		}
	}
	if isLog && a <= 0 {
		return nil, fmt.Errorf("equal ratios from %g", a)
	}
	list := make([]float64, n)
	for i := range list {
		switch u := float64(i) / float64(max(n-1, 1)); {
		case len(parts) == 1:
			list[i] = a + float64(i)
		case isLog:
			list[i] = a * math.Pow(b/a, u)
		default:
			list[i] = a + (b-a)*u
		}
	}
	return list, nil
}

func number(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is no number", s)
	}
	return v, nil
}

// set returns the settings with one parameter changed.
func (s *Settings) set(name string, v float64) (*Settings, error) {
	out := *s
	switch name {
	case "heads":
		out.Model.Heads = int(v)
	case "tokens":
		out.Model.Tokens = int(v)
	case "dimension":
		out.Dimension = int(v)
	case "rate":
		out.Rate = v
	case "size":
		out.Size = v
	case "snr":
		power := s.Law.Power()
		if power == 0 || v < 0 {
			return nil, &xerr.Usage{Flag: "--sweep snr", Found: fmt.Sprintf("%g with E|θ|² = %g", v, power), Want: "positive numbers"}
		}
		out.Law = s.Law.Scaled(math.Sqrt(v / power))
	case "features":
		if s.Law.Kind == Discrete || len(s.Law.Variances) < int(v) || s.Law.Kind == OneHot && len(s.Law.Probabilities) > 0 {
			return nil, &xerr.Usage{Flag: "--sweep features", Found: fmt.Sprintf("%g features of a law with %d", v, s.Law.Features()), Want: "--features and --variances for the largest number, without --probabilities"}
		}
		law := *s.Law
		law.Variances = law.Variances[:int(v)]
		law.Mean = law.Mean[:min(len(law.Mean), int(v))]
		out.Law, out.Model.Features = &law, int(v)
	}
	return &out, nil
}
