package specialize

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/linalg"
)

// The engines.
const (
	EngineODE  = "ode"
	EngineSGD  = "sgd"
	EngineBoth = "both"
)

// Study is what one report is made of.
type Study struct {
	Settings   Settings // its Model gives sizes; activation, aggregate and bias come from Models
	Models     []Model
	Engine     string
	Vectors    bool  // SGD with vectors of D numbers, not the reduced run
	Dimensions []int // several: phases against D, and with both engines distances
	Starts     int   // 0: 1
	Floors     bool
	Prune      bool
	Reoptimize bool
	Tolerance  float64 // of pruning; 0: DefaultPruneTolerance
	Axes       []Axis  // of a sweep, which then is all that is done; nil: none
	Tool       string

	Progress func(what string, done, total float64) // nil: not told
}

// Check returns a *xerr.Usage for a study that makes no sense.
func (s *Study) Check() error {
	if len(s.Models) == 0 {
		return &xerr.Usage{Flag: "--activation", Found: "none", Want: "softmax, softmax1 or bayes"}
	}
	if s.Starts < 0 || s.Starts > 1000 {
		return &xerr.Usage{Flag: "--seeds", Found: s.Starts, Want: "1 to 1000"}
	}
	if s.Engine != EngineODE && s.Settings.Rate == 0 {
		return &xerr.Usage{Flag: "--engine " + s.Engine, Found: "--rate 0", Want: "a step size η for SGD, such as --rate 1"}
	}
	if len(s.Dimensions) > 1 && s.Engine == EngineODE {
		return &xerr.Usage{Flag: "--dimension", Found: fmt.Sprintf("%d values with --engine ode", len(s.Dimensions)), Want: "one, or --engine sgd or both"}
	}
	for _, d := range s.Dimensions {
		c := s.Settings
		c.Dimension, c.Model = d, s.Models[0]
		if err := c.Check(); err != nil {
			return err
		}
	}
	for _, m := range s.Models {
		c := s.Settings
		c.Model = m
		if err := c.Check(); err != nil {
			return err
		}
	}
	if s.Vectors && s.Engine == EngineODE {
		return &xerr.Usage{Flag: "--vectors", Found: "--engine ode", Want: "--engine sgd or both"}
	}
	return nil
}

// Run does the study. Interrupted, it returns what it has, marked partial, with
// ctx's error. Errors: *xerr.Usage, *UnstableError.
func (s *Study) Run(ctx context.Context) (*Report, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	r := s.newReport()
	err := s.fill(ctx, r)
	if err != nil {
		if ctx.Err() == nil {
			return nil, err
		}
		r.Partial = true
	}
	r.Notes = s.notes(r)
	return r, err
}

func (s *Study) newReport() *Report {
	d := s.Settings.withDefaults()
	return &Report{Schema: Schema, Tool: s.Tool, Kernel: linalg.Kernel(), Seed: d.Seed, Runs: []Run{}, Setting: Setting{
		Tokens: s.Models[0].Tokens, Heads: s.Models[0].Heads, Features: s.Models[0].Features, Law: d.Law, Time: d.Time, Rate: d.Rate,
		Dimension: d.Dimension, Size: d.Size, Tolerance: d.Tolerance, Starts: max(s.Starts, 1), Engine: s.Engine}}
}

func (s *Study) fill(ctx context.Context, r *Report) error {
	base := s.Settings
	base.Model = s.Models[0]
	samples, fresh := base.NewSamples(), base.NewFresh()
	r.Setting.Samples, r.Setting.Method = samples.N, samples.Method
	for i, m := range s.Models {
		if s.Axes != nil {
			break
		}
		for _, engine := range s.engines() {
			run, err := s.run(ctx, m, engine, samples, fresh, i)
			if run != nil {
				r.Runs = append(r.Runs, *run)
			}
			if err != nil {
				return err
			}
		}
	}
	for i, m := range s.Models {
		if s.Axes == nil {
			break
		}
		c := s.Settings
		c.Model = m
		d, err := Sweep(ctx, &c, s.Axes, func(done, total int) { s.tell("phase diagram, "+m.String(), i, float64(done)/float64(total)) })
		if d != nil {
			r.Diagrams = append(r.Diagrams, d)
		}
		if err != nil {
			return err
		}
	}
	if s.Floors {
		f, err := Floors(ctx, s.Models[0].Tokens, min(4096, samples.N), base.Seed)
		if err != nil {
			return err
		}
		r.Floors = f
	}
	return nil
}

func (s *Study) engines() []string {
	if s.Engine == EngineBoth {
		return []string{EngineODE, EngineSGD}
	}
	return []string{s.Engine}
}

func (s *Study) tell(what string, i int, share float64) {
	if s.Progress != nil {
		s.Progress(what, float64(i)+share, float64(len(s.Models)))
	}
}

// run follows one model from every start.
func (s *Study) run(ctx context.Context, m Model, engine string, samples, fresh *Samples, index int) (*Run, error) {
	c := s.Settings
	c.Model, c.Fresh = m, fresh
	starts := max(s.Starts, 1)
	run := &Run{Activation: m.Activation, Aggregate: m.Aggregate, Bias: m.Bias, Engine: engine, Law: c.Law,
		Dimension: c.withDefaults().Dimension, Affine: AffineRisk(c.Law, m.Tokens), Needed: HeadsNeeded(c.Law),
		Events: []Event{}, Modes: []Mode{}, Escapes: []Escape{}}
	if m.Activation == Softmax && m.Aggregate == Mean && c.Law.Symmetric() {
		floor := SoftmaxFloor(m.Tokens, 2)
		run.Floor = &floor
	}
	run.Bayes, run.BayesError = fresh.BayesRisk()
	for k := range starts {
		c.Start = uint64(k)
		c.Progress = func(t, end float64) {
			s.tell(fmt.Sprintf("%s, %s", m, engine), index, (float64(k)+t/end)/float64(starts))
		}
		t, err := s.follow(ctx, &c, engine, samples)
		if t == nil {
			return nil, err
		}
		if err != nil && ctx.Err() == nil {
			return nil, err
		}
		run.add(&c, t, k)
		if err != nil {
			run.Partial = true
			return run, err
		}
		if s.Prune {
			p, err := Prune(ctx, m, fresh, t.Last(), PruneOptions{Tolerance: s.Tolerance, Reoptimize: s.Reoptimize, Exact: s.exact(), Train: samples})
			if err != nil {
				run.Partial = true
				return run, err
			}
			p.Start = uint64(k)
			run.Prunings = append(run.Prunings, p)
		}
		if k == 0 {
			if err := run.linearize(ctx, &c, samples, t); err != nil {
				return run, err
			}
		}
	}
	run.Pruned = pruneSteps(run.Prunings)
	return run, s.against(ctx, run, &c, engine, samples)
}

// exact is the most heads for which pruning tries all subsets: fewer where nobody
// asked for pruning.
func (s *Study) exact() int {
	if s.Reoptimize {
		return exactHeads
	}
	return 8
}

func (s *Study) follow(ctx context.Context, c *Settings, engine string, samples *Samples) (*Trajectory, error) {
	switch {
	case engine == EngineODE:
		return Integrate(ctx, c, samples, c.InitialState())
	case s.Vectors:
		return Vectors(ctx, c, samples, c.InitialState())
	}
	return SGD(ctx, c, samples, c.InitialState())
}

// add puts a start's outcome into the run.
func (r *Run) add(c *Settings, t *Trajectory, k int) {
	n := len(t.Loss) - 1
	F := c.Model.Features
	r.Losses = append(r.Losses, t.Loss[n])
	st := t.Last()
	if k > 0 {
		r.Other = append(r.Other, OtherStart{Start: uint64(k), Loss: t.Loss[n], M: rows(st.M(F))})
		return
	}
	r.Loss, r.LossError, r.Steps = t.Loss[n], t.Error[n], t.Steps
	r.M, r.R, r.B = rows(st.M(F)), rows(st.R()), append([]float64{}, st.B...)
	for i, at := range t.States {
		r.Trajectory = append(r.Trajectory, Moment{Time: t.Times[i], Loss: t.Loss[i], LossError: t.Error[i],
			Specialization: Specialization(at, F), M: rows(at.M(F)), B: append([]float64{}, at.B...)})
	}
	for _, i := range chosen(t) {
		r.Chosen = append(r.Chosen, Snapshot{Time: t.Times[i], R: rows(t.States[i].R())})
	}
	r.Events = append(r.Events, Events(t, c.Law)...)
	r.Overlap = Simulated(c.Model.String(), c.Model, c.Law, st)
}

// chosen are the first record, those at which tr r first has made a tenth, a half
// and nine tenths of its way, and the last.
func chosen(t *Trajectory) []int {
	n := len(t.States) - 1
	trace := func(i int) (sum float64) {
		for h := range t.States[i].K.Rows {
			sum += linalg.Dot(t.States[i].K.Row(h), t.States[i].K.Row(h))
		}
		return sum
	}
	first, last := trace(0), trace(n)
	list := []int{0}
	for _, share := range []float64{0.1, 0.5, 0.9} {
		for i := range n {
			if (trace(i)-first)/(last-first) >= share && i > list[len(list)-1] {
				list = append(list, i)
				break
			}
		}
	}
	if list[len(list)-1] < n {
		list = append(list, n)
	}
	return list
}

// linearize adds rates at both points, and escape times from the one that the run
// leaves.
func (r *Run) linearize(ctx context.Context, c *Settings, samples *Samples, t *Trajectory) error {
	zero := ZeroPoint(c.Model)
	modes, err := Linearize(c.Model, samples, zero, AtZero)
	if err != nil {
		return err
	}
	r.Modes = append(r.Modes, modes...)
	leaving, at := modes, zero
	mean, _ := c.Law.Moments()
	if Norm(mean) > 0 {
		st, ok, err := SymmetricPoint(ctx, c.Model, samples)
		if err != nil {
			return err
		}
		if !ok {
			return nil
		}
		if leaving, err = Linearize(c.Model, samples, st, AtSymmetric); err != nil {
			return err
		}
		r.Modes, at = append(r.Modes, leaving...), st
	}
	r.Escapes = append(r.Escapes, Escapes(t, c.Law, leaving, at)...)
	return nil
}

// against adds what depends on D.
func (s *Study) against(ctx context.Context, r *Run, c *Settings, engine string, samples *Samples) error {
	if engine != EngineSGD || len(s.Dimensions) < 2 {
		return nil
	}
	starts := max(s.Starts, 3)
	st, _, err := SymmetricPoint(ctx, c.Model, samples)
	if err != nil {
		return err
	}
	modes, err := Linearize(c.Model, samples, st, AtSymmetric)
	if err != nil {
		return err
	}
	if r.Scaling, err = MeasureScaling(ctx, c, samples, s.Dimensions, starts, modes, st); err != nil {
		return err
	}
	if s.Engine != EngineBoth {
		return nil
	}
	if r.Distances, err = MeasureDistances(ctx, c, samples, s.Dimensions, starts); err != nil {
		return err
	}
	var x, y []float64
	for _, d := range r.Distances {
		x, y = append(x, math.Log(float64(d.Dimension))), append(y, math.Log(d.M))
	}
	r.Distance = line(x, y)
	return nil
}

// pruneSteps averages greedy removals over the starts.
func pruneSteps(all []*Pruning) []PruneStep {
	if len(all) == 0 {
		return nil
	}
	var steps []PruneStep
	n := float64(len(all))
	for i := range all[0].Greedy {
		s := PruneStep{Removed: i}
		best, again := 0.0, 0.0
		for _, p := range all {
			s.Mean += p.Greedy[i].Loss / n
			if p.Exact != nil {
				best += p.Exact[i].Loss / n
				s.Best = &best
			}
			if v := p.Greedy[i].Reoptimized; v != nil {
				again += *v / n
				s.Reoptimized = &again
			}
		}
		for _, p := range all {
			d := p.Greedy[i].Loss - s.Mean
			s.SD += d * d / max(n-1, 1)
		}
		s.SD = math.Sqrt(s.SD)
		steps = append(steps, s)
	}
	return steps
}

// Interrupted reports whether an error only says that the work was stopped.
func Interrupted(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
