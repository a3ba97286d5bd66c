package eigenhead

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// chooseLayers reads "0-3,7" against the layers that there are.
func chooseLayers(spec string, have []int) ([]int, error) {
	if spec == "" {
		return have, nil
	}
	bad := func(found string) error {
		return &xerr.Usage{Flag: "--layers " + spec, Found: found, Want: span(have), Hint: "leave out --layers to scan all"}
	}
	var want []int
	for part := range strings.SplitSeq(spec, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		lo, err := strconv.Atoi(from)
		hi := lo
		if isRange && err == nil {
			hi, err = strconv.Atoi(to)
		}
		if err != nil || lo > hi {
			return nil, bad(fmt.Sprintf("%q is not a layer or a range such as 0-3", part))
		}
		for l := lo; l <= hi; l++ {
			if !slices.Contains(have, l) {
				return nil, bad(fmt.Sprintf("layer %d not found", missing(lo, hi, have)))
			}
			want = append(want, l)
		}
	}
	slices.Sort(want)
	return slices.Compact(want), nil
}

// missing returns the largest number asked for where it is beyond what there
// is, as a range's end is what a user got wrong, else the first one missing.
func missing(lo, hi int, have []int) int {
	if !slices.Contains(have, hi) {
		return hi
	}
	for l := lo; l <= hi; l++ {
		if !slices.Contains(have, l) {
			return l
		}
	}
	return hi
}

func span(have []int) string {
	if len(have) == 0 {
		return "no layers"
	}
	first, last := have[0], have[len(have)-1]
	if last-first+1 == len(have) {
		return fmt.Sprintf("%d-%d", first, last)
	}
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(have)), ","), "[]")
}
