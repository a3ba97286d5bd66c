package dashboard

import (
	"context"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
)

const (
	// maxPoints of a drawn series: about one for each pixel of its chart.
	maxPoints = 1000
	// maxSeries bounds how many scalars of a run are drawn.
	maxSeries = 40
	// maxBad bounds the steps that are marked as not finite, for each series.
	maxBad = 200
	// rest between two readings of one run's scalars, in times that one reading took:
	// a run that is watched costs a twentieth of a core at most.
	rest = 20
)

// usual are drawn first, in this order.
var usual = []string{"loss", "grad_norm", "lr"}

// drawn is a run's scalars as a chart shows them: where there are more steps than
// points, each point has the least and the largest value of its part of the run,
// so that no spike is lost.
type drawn struct {
	Steps  []int64  `json:"steps"` // the first of each part
	Last   int64    `json:"last"`
	Series []series `json:"series"`
}

type series struct {
	Name string  `json:"name"`
	Lo   []gap   `json:"lo"`
	Hi   []gap   `json:"hi"`
	Bad  []int64 `json:"bad"` // steps whose value is NaN or infinite
}

// gap is a number, or null in JSON where it is NaN.
type gap float64

// MarshalJSON writes seven digits: more cannot be seen.
func (g gap) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(g)) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(g), 'g', 7, 64), nil
}

// draw thins scalars, in rising order of steps, to at most maxPoints parts of equal
// width.
func draw(list []monitor.Scalars) *drawn {
	d := &drawn{Steps: []int64{}, Series: []series{}}
	if len(list) == 0 {
		return d
	}
	first := list[0].Step
	d.Last = list[len(list)-1].Step
	part := func(step int64) int64 { return step }
	if len(list) > maxPoints {
		width := float64(d.Last-first+1) / maxPoints
		part = func(step int64) int64 { return int64(float64(step-first) / width) }
	}
	at := make([]int, len(list)) // list index → point
	for i, s := range list {
		if i == 0 || part(s.Step) != part(list[i-1].Step) {
			d.Steps = append(d.Steps, s.Step)
		}
		at[i] = len(d.Steps) - 1
	}
	for _, name := range names(list) {
		d.Series = append(d.Series, thin(name, list, at, len(d.Steps)))
	}
	return d
}

func thin(name string, list []monitor.Scalars, at []int, points int) series {
	s := series{Name: name, Lo: make([]gap, points), Hi: make([]gap, points), Bad: []int64{}}
	for i := range points {
		s.Lo[i], s.Hi[i] = gap(math.NaN()), gap(math.NaN())
	}
	for i, row := range list {
		v, has := row.Values[name]
		switch {
		case !has:
		case math.IsNaN(v) || math.IsInf(v, 0):
			if len(s.Bad) < maxBad {
				s.Bad = append(s.Bad, row.Step)
			}
		case math.IsNaN(float64(s.Lo[at[i]])):
			s.Lo[at[i]], s.Hi[at[i]] = gap(v), gap(v)
		default:
			s.Lo[at[i]], s.Hi[at[i]] = min(s.Lo[at[i]], gap(v)), max(s.Hi[at[i]], gap(v))
		}
	}
	return s
}

// names returns which scalars there are, the usual ones first.
func names(list []monitor.Scalars) []string {
	has := map[string]bool{}
	for _, s := range list {
		for name := range s.Values {
			has[name] = true
		}
	}
	var all []string
	delete(has, "end") // a mark, not a number
	for _, name := range usual {
		if has[name] {
			all = append(all, name)
			delete(has, name)
		}
	}
	all = append(all, slices.Sorted(maps.Keys(has))...)
	return all[:min(len(all), maxSeries)]
}

// course is one run's scalars as they were last read.
type course struct {
	mu   sync.Mutex // held while it is read, so that readers read once
	of   time.Time  // the run's Last when it was read
	made time.Time
	took time.Duration
	got  *drawn
}

// get returns a run's scalars, from memory where they have not changed since or
// were read a moment ago.
func (c *courses) get(ctx context.Context, run store.Run) (*drawn, error) {
	c.mu.Lock()
	if c.of == nil {
		c.of = map[string]*course{}
	}
	one := c.of[run.Name]
	if one == nil {
		one = &course{}
		c.of[run.Name] = one
	}
	c.mu.Unlock()
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.got != nil && (one.of.Equal(run.Last) || time.Since(one.made) < rest*one.took) {
		return one.got, nil
	}
	start := time.Now()
	list, err := c.store.Scalars(ctx, run.Name, nil)
	if err != nil {
		return nil, err
	}
	one.got, one.of, one.took, one.made = draw(list), run.Last, time.Since(start), time.Now()
	return one.got, nil
}

// soon returns a run's scalars if they can be had within the time that ctx leaves;
// else they are read on, and are there for the next one who asks.
func (c *courses) soon(ctx context.Context, run store.Run) *drawn {
	done := make(chan *drawn, 1)
	go func() {
		d, err := c.get(context.WithoutCancel(ctx), run)
		if err != nil {
			c.log.ErrorContext(ctx, "dashboard", "run", run.Name, "error", err)
			d = &drawn{} // the list shows the run without its loss
		}
		done <- d
	}()
	select {
	case d := <-done:
		return d
	case <-ctx.Done():
		return nil
	}
}

func (s *server) scalarsData(w http.ResponseWriter, r *http.Request) error {
	run, err := s.runOf(r)
	if err != nil {
		return err
	}
	d, err := s.courses.get(r.Context(), run)
	if err != nil {
		return err
	}
	return writeJSON(w, d)
}
