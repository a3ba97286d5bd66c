package dashboard

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

// fold thins scalars as they come, in rising order of steps, to at most maxPoints
// parts of equal width. It holds the picture, never the run: each step is a point of
// its own until there are too many, then points join.
type fold struct {
	first, last int64
	width       float64 // of a part, in steps; 0 while each step is one
	steps       []int64
	part        int64 // the newest point's
	series      map[string]*series
	worst       string // the last of the series by rank, once there are maxSeries
}

// newFold is for a run whose last step is known.
func newFold(last int64) *fold { return &fold{last: last, series: map[string]*series{}} }

func (f *fold) partOf(step int64) int64 {
	if f.width == 0 {
		return step
	}
	return int64(float64(step-f.first) / f.width)
}

// add takes one step.
func (f *fold) add(row monitor.Scalars) {
	if len(f.steps) == 0 {
		f.first = row.Step
	}
	if part := f.partOf(row.Step); len(f.steps) == 0 || part != f.part {
		if f.width == 0 && len(f.steps) == maxPoints {
			f.join()
			f.add(row)
			return
		}
		f.part = part
		f.point(row.Step)
	}
	for name, v := range row.Values {
		s := f.of(name)
		switch {
		case s == nil:
		case math.IsNaN(v) || math.IsInf(v, 0):
			if len(s.Bad) < maxBad {
				s.Bad = append(s.Bad, row.Step)
			}
		default:
			s.widen(gap(v), gap(v))
		}
	}
}

// point begins a new point in all series.
func (f *fold) point(step int64) {
	f.steps = append(f.steps, step)
	for _, s := range f.series {
		s.Lo, s.Hi = append(s.Lo, gap(math.NaN())), append(s.Hi, gap(math.NaN()))
	}
}

// widen puts values into the newest point.
func (s *series) widen(lo, hi gap) {
	i := len(s.Lo) - 1
	switch {
	case math.IsNaN(float64(lo)):
	case math.IsNaN(float64(s.Lo[i])):
		s.Lo[i], s.Hi[i] = lo, hi
	default:
		s.Lo[i], s.Hi[i] = min(s.Lo[i], lo), max(s.Hi[i], hi)
	}
}

// join makes parts of the single steps.
func (f *fold) join() {
	f.width = float64(f.last-f.first+1) / maxPoints
	steps, old := f.steps, map[string]series{}
	for name, s := range f.series {
		old[name] = *s
		s.Lo, s.Hi = nil, nil
	}
	f.steps = nil
	for i, step := range steps {
		if part := f.partOf(step); i == 0 || part != f.part {
			f.part = part
			f.point(step)
		}
		for name, s := range f.series {
			s.widen(old[name].Lo[i], old[name].Hi[i])
		}
	}
}

// of returns a series, or nil for one that is not drawn: of more than maxSeries the
// first by rank are. One that made room for a better one cannot come back, so what is
// drawn is whole.
func (f *fold) of(name string) *series {
	if s := f.series[name]; s != nil {
		return s
	}
	if name == "end" { // a mark, not a number
		return nil
	}
	if len(f.series) == maxSeries {
		if rank(name, f.worst) > 0 {
			return nil
		}
		delete(f.series, f.worst)
	}
	s := &series{Name: name, Bad: []int64{}}
	for range f.steps {
		s.Lo, s.Hi = append(s.Lo, gap(math.NaN())), append(s.Hi, gap(math.NaN()))
	}
	f.series[name] = s
	f.worst = slices.MaxFunc(slices.Collect(maps.Keys(f.series)), rank)
	return s
}

// rank orders names: the usual ones first, then by letter.
func rank(a, b string) int {
	place := func(name string) int {
		if i := slices.Index(usual, name); i >= 0 {
			return i
		}
		return len(usual)
	}
	return cmp.Or(cmp.Compare(place(a), place(b)), strings.Compare(a, b))
}

// drawn returns the picture.
func (f *fold) drawn() *drawn {
	d := &drawn{Steps: f.steps, Last: f.last, Series: []series{}}
	if d.Steps == nil {
		d.Steps = []int64{}
	}
	for _, name := range slices.SortedFunc(maps.Keys(f.series), rank) {
		d.Series = append(d.Series, *f.series[name])
	}
	return d
}
