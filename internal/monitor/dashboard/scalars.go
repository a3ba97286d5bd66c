package dashboard

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

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
	got, err := c.read(ctx, run.Name)
	if err != nil {
		return nil, err
	}
	one.got, one.of, one.took, one.made = got, run.Last, time.Since(start), time.Now()
	return one.got, nil
}

// reading lets two runs be read at the same time, in the whole process.
var reading = make(chan struct{}, 2)

// read draws a run's scalars while it reads them.
func (c *courses) read(ctx context.Context, run string) (*drawn, error) {
	select {
	case reading <- struct{}{}:
		defer func() { <-reading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	last, err := c.store.Scalars(ctx, run, &store.Range{Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(last) == 0 {
		return newFold(0).drawn(), nil
	}
	f := newFold(last[0].Step)
	for row, err := range c.store.AllScalars(ctx, run) {
		if err != nil {
			return nil, err
		}
		if row.Step > f.last {
			break // it came meanwhile
		}
		f.add(row)
	}
	return f.drawn(), nil
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
