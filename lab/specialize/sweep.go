package specialize

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/eigenhead/eigenhead/attention"
	"github.com/eigenhead/eigenhead/internal/par"
	"github.com/eigenhead/eigenhead/linalg"
)

// Cell is one point of a phase diagram.
type Cell struct {
	X        float64 `json:"x"`
	Y        float64 `json:"y,omitempty"`
	Done     bool    `json:"done"`
	Phase    string  `json:"phase,omitempty"`
	Loss     float64 `json:"loss"`
	Error    float64 `json:"loss_error"`
	Bayes    float64 `json:"bayes"`
	Learned  int     `json:"learned"`          // features on which some head aligned
	Split    int     `json:"split"`            // features on which the heads came apart
	Distinct int     `json:"distinct"`         // groups of heads that do different things
	Reason   string  `json:"reason,omitempty"` // why the cell has no numbers
}

// The phases of a cell. The thresholds are those of the events.
const (
	Blind       = "blind"       // no feature is learned
	Unsplit     = "together"    // features are learned by heads that are all alike
	Partly      = "partly"      // heads came apart on some of the features, or not all are learned
	Specialized = "specialized" // every feature is learned, and heads came apart
)

// Diagram is a sweep over one or two axes.
type Diagram struct {
	Axes    []Axis     `json:"axes"`
	Model   Model      `json:"-"`
	Name    string     `json:"model"`
	Cells   []Cell     `json:"cells"` // the second axis runs slowest
	Partial bool       `json:"partial"`
	mu      sync.Mutex // guards done
	done    int
}

// Sweep integrates the dynamics at every cell. Cells do not depend on each other
// or on the number of cores: each has the seed of the settings. A cell that fails
// says why. Interrupted, it returns the finished cells marked partial, with ctx's
// error. Errors: *xerr.Usage where a cell's settings make no sense.
func Sweep(ctx context.Context, s *Settings, axes []Axis, progress func(done, total int)) (*Diagram, error) {
	d := &Diagram{Axes: axes, Model: s.Model, Name: s.Model.String()}
	second := []float64{0}
	if len(axes) == 2 {
		second = axes[1].Values
	}
	var all []*Settings
	for _, y := range second {
		for _, x := range axes[0].Values {
			cell, err := s.set(axes[0].Name, x)
			if err == nil && len(axes) == 2 {
				cell, err = cell.set(axes[1].Name, y)
			}
			if err == nil {
				err = cell.Check()
			}
			if err != nil {
				return nil, fmt.Errorf("--sweep %s = %g: %w", axes[0].Name, x, err)
			}
			cell.Progress, cell.Points = nil, 8
			all = append(all, cell)
			d.Cells = append(d.Cells, Cell{X: x, Y: y})
		}
	}
	err := par.DoCtx(ctx, len(all), func(i int) error {
		if err := d.Cells[i].run(ctx, all[i]); err != nil {
			return err
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.done++
		if progress != nil {
			progress(d.done, len(all))
		}
		return nil
	})
	d.Partial = d.done < len(all)
	return d, err
}

func (c *Cell) run(ctx context.Context, shared *Settings) error {
	s := *shared // its samples go with it: a sweep of many cells would hold them all
	s.Fresh = s.NewFresh()
	t, err := Integrate(ctx, &s, s.NewSamples(), s.InitialState())
	var unstable *UnstableError
	if errors.As(err, &unstable) {
		c.Done, c.Reason = true, err.Error()
		return nil
	}
	if err != nil {
		return err
	}
	last := len(t.Loss) - 1
	c.Loss, c.Error = t.Loss[last], t.Error[last]
	c.Bayes, _ = s.Fresh.BayesRisk()
	c.classify(t.Last(), s.Law)
	c.Done = true
	return nil
}

func (c *Cell) classify(st State, law *Law) {
	_, second := law.Moments()
	for f := range second.Rows {
		size := math.Sqrt(second.At(f, f))
		if _, m := strongest(st, f); math.Abs(m)*size >= learnedScore {
			c.Learned++
		}
		if Apart(st, f)*size >= learnedScore {
			c.Split++
		}
	}
	c.Distinct = distinct(st)
	switch {
	case c.Learned == 0:
		c.Phase = Blind
	case c.Split == 0:
		c.Phase = Unsplit
	case c.Learned < second.Rows || c.Split < second.Rows:
		c.Phase = Partly
	default:
		c.Phase = Specialized
	}
}

// distinct counts groups of heads whose keys point the same way (cosine of r at
// least attention.RedundantCosine), without those a tenth as long as the longest.
func distinct(st State) int {
	r := st.R()
	H := r.Rows
	cosines, defined := cosinesOf(r, 0.1)
	n := 0
	for _, g := range attention.Cluster(cosines, defined, attention.RedundantCosine).Groups {
		if defined[g[0]] {
			n++
		}
	}
	return min(n, H)
}

// cosinesOf normalizes a covariance; rows shorter than share of the longest are
// marked as undefined.
func cosinesOf(r linalg.Matrix, share float64) (cosines linalg.Matrix, defined []bool) {
	H := r.Rows
	cosines, defined = linalg.New(H, H), make([]bool, H)
	longest := 0.0
	for h := range H {
		longest = max(longest, math.Sqrt(max(0, r.At(h, h))))
	}
	for h := range H {
		defined[h] = r.At(h, h) > 0 && math.Sqrt(r.At(h, h)) >= share*longest
	}
	for h := range H {
		for g := range H {
			if defined[h] && defined[g] {
				cosines.Set(h, g, min(max(r.At(h, g)/math.Sqrt(r.At(h, h)*r.At(g, g)), -1), 1))
			}
		}
	}
	return cosines, defined
}
