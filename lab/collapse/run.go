package collapse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// Options of a run. The zero value means: every experiment on its own configurations.
type Options struct {
	Experiments []string  // names of Experiments; nil: all
	Config      *Config   // run these on this one (and, beside a fix, on the same without); nil: each experiment's own
	T           []int     // sizes; nil: each experiment's own
	Gamma       []float64 // T/d; nil: 1, and the published three for Paper
	Depth       int       // layers; 0: each experiment's own
	Layer       int       // whose weights gradients are taken by; 0: 1
	Seeds       int       // simulations of each cell; 0: each experiment's own
	Seed        uint64    // of everything drawn
	Paper       bool      // the published sweep instead of experiments
	Values      int       // singular values of A to list; 0: 2
	Undoubled   bool      // Paper: without the doubling after a plain skip
	Resume      string    // file of JSON lines that keeps finished simulations; "": none
	Progress    func(done, total int64)
}

// Run makes the plan, runs it on all cores and analyzes what came out.
//
// Every simulation is seeded by its own name: the result depends on neither order nor
// cores. Errors: *xerr.Usage for options that make no sense, *xerr.Format for a damaged
// resume file. When ctx ends early the result of the finished simulations is returned
// beside ctx's error, marked partial.
func Run(ctx context.Context, o *Options) (*Result, error) {
	if o == nil {
		o = &Options{}
	}
	plan, chosen, err := o.plan()
	if err != nil {
		return nil, err
	}
	r := &Result{Experiments: chosen, Paper: o.Paper, Undoubled: o.Undoubled, Seed: o.Seed}
	outcomes, err := sweep(ctx, plan, o.Resume, o.Progress)
	if err != nil && !(errors.Is(err, context.Canceled) && ctx.Err() != nil) {
		return nil, err
	}
	r.Partial = err != nil
	r.Cells, r.Bulks = collect(plan, outcomes)
	if o.Paper {
		r.Published = Compare(r.Cells)
		r.paperLines()
	}
	for _, e := range Experiments {
		if slices.Contains(chosen, e.Name) {
			e.analyze(r)
		}
	}
	return r, err
}

// plan lists the simulations, and the experiments chosen.
func (o *Options) plan() ([]unit, []string, error) {
	if err := o.check(); err != nil {
		return nil, nil, err
	}
	if o.Paper {
		plan, err := o.checked(o.paperPlan())
		return plan, []string{"paper"}, err
	}
	var names []string
	var plan []unit
	for _, e := range Experiments {
		if len(o.Experiments) > 0 && !slices.Contains(o.Experiments, e.Name) && !slices.Contains(o.Experiments, "all") {
			continue
		}
		units := e.plan(o)
		if o.Config != nil && len(o.Experiments) != 1 {
			units = o.possible(units)
		}
		names = append(names, e.Name)
		plan = append(plan, units...)
	}
	plan, err := o.checked(plan)
	return plan, names, err
}

// possible leaves out what an experiment cannot do with a chosen configuration, where
// the user asked for more than that one experiment.
func (o *Options) possible(units []unit) []unit {
	return slices.DeleteFunc(units, func(u unit) bool {
		if u.kind != gradientKind {
			return false
		}
		c := u.config.filled()
		if c.Attention == KeyQuery {
			return checkNetwork(c) != nil
		}
		return productForm(c) != nil
	})
}

func (o *Options) check() error {
	for _, name := range o.Experiments {
		if name != "all" && lookup(name) == nil {
			return &xerr.Usage{Flag: "--experiment", Found: name, Want: strings.Join(append(experimentNames(), "all"), ", ")}
		}
	}
	switch {
	case o.Paper && (o.Config != nil || len(o.Experiments) > 0):
		return &xerr.Usage{Flag: "--paper", Found: "other experiments or configurations", Want: "none of them: the published sweep has its own"}
	case o.Undoubled && !o.Paper && o.Config == nil:
		return &xerr.Usage{Flag: "--undoubled", Found: "no plain skip", Want: "--paper or --skip plain"}
	case o.Values < 0 || o.Values == 1 || o.Values > 64:
		return &xerr.Usage{Flag: "--values", Found: o.Values, Want: "2 to 64 singular values"}
	case o.Layer < 0 || o.Depth > 0 && o.Layer > o.Depth || o.Depth == 0 && o.Layer > 4:
		return &xerr.Usage{Flag: "--layer", Found: o.Layer, Want: fmt.Sprintf("1 to the depth, %d", or(o.Depth, 4))}
	case o.Depth < 0 || o.Depth > 10000:
		return &xerr.Usage{Flag: "--depth", Found: o.Depth, Want: "1 to 10000 layers"}
	case o.Seeds < 0 || o.Seeds > 100000:
		return &xerr.Usage{Flag: "--seeds", Found: o.Seeds, Want: "1 to 100000 simulations"}
	}
	return nil
}

// checked fills in and validates every unit.
func (o *Options) checked(plan []unit) ([]unit, error) {
	for i, u := range plan {
		c, err := u.config.Check()
		if err != nil {
			return nil, err
		}
		plan[i].config = c
		if err := u.size.Check(c.Heads); err != nil {
			return nil, err
		}
		if least := min(u.size.T, u.size.Width()); u.kind != matrixKind && least > MaxWhole {
			return nil, &xerr.Usage{Flag: "--T", Found: u.size.T, Want: fmt.Sprintf("at most %d for whole spectra of tokens", MaxWhole),
				Hint: "--experiment gap takes the first two singular values of A alone, at any size that fits in memory"}
		}
		if u.kind == gradientKind {
			if c.Attention == KeyQuery {
				err = checkNetwork(c)
			} else {
				err = productForm(c)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return plan, nil
}

// paperPlan is the published sweep.
func (o *Options) paperPlan() []unit {
	var plan []unit
	for _, gamma := range orList(o.Gamma, PaperGammas) {
		for _, c := range PaperConfigs(o.Undoubled) {
			for _, t := range orList(o.T, PaperSizes) {
				for seed := range or(o.Seeds, PaperSeeds) {
					plan = append(plan, unit{experiment: "paper", kind: forwardKind, config: c, size: Size{t, gamma},
						depth: or(o.Depth, PaperDepth), light: true, seed: o.seed(seed)})
				}
			}
		}
	}
	return plan
}

// seed is that of the n-th simulation of a cell.
func (o *Options) seed(n int) uint64 { return o.Seed<<20 + uint64(n) }

func orList[T any](v, fallback []T) []T {
	if len(v) > 0 {
		return v
	}
	return fallback
}
