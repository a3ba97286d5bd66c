package measure

import (
	"fmt"
	"path"
	"strings"

	"github.com/eigenhead/eigenhead/internal/spelling"
)

// UnknownError says that no measure has this name, or that no name fits this pattern.
type UnknownError struct {
	Name    string
	Nearest string // the closest name there is
}

// Error names the nearest measure.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("measure %q: not found, want a name such as %q", e.Name, e.Nearest)
}

// Lookup returns the measure of this name. Errors: *UnknownError.
func Lookup(name string) (*Measure, error) {
	for _, m := range All {
		if m.Name == name {
			return m, nil
		}
	}
	return nil, &UnknownError{Name: name, Nearest: nearest(name)}
}

// Match returns, in the order of All and each once, the measures whose names
// fit a pattern: a name, or a form with * such as "energy.*". No patterns give all.
// Errors: *UnknownError for the first pattern that fits nothing.
func Match(patterns []string) ([]*Measure, error) {
	if len(patterns) == 0 {
		return All, nil
	}
	taken := make(map[*Measure]bool)
	for _, p := range patterns {
		found := false
		for _, m := range All {
			if ok, err := path.Match(p, m.Name); err == nil && ok {
				taken[m], found = true, true
			}
		}
		if !found {
			return nil, &UnknownError{Name: p, Nearest: nearest(p)}
		}
	}
	var out []*Measure
	for _, m := range All {
		if taken[m] {
			out = append(out, m)
		}
	}
	return out, nil
}

// nearest returns the name with the fewest edits from s; a name without its
// group ("entropy") counts as a spelling of the full one.
func nearest(s string) string {
	best, fewest := "", -1
	for _, m := range All {
		_, short, _ := strings.Cut(m.Name, ".")
		d := min(spelling.Edits(s, m.Name), 1+spelling.Edits(s, short))
		if fewest < 0 || d < fewest {
			best, fewest = m.Name, d
		}
	}
	return best
}
