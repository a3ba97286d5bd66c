package measure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/eigenhead/eigenhead/attention"
	"github.com/eigenhead/eigenhead/head"
)

// Kinds of null, as Null.Kind names them.
const (
	kindClosed = "closed form"
	kindTable  = "table"
	kindMonte  = "monte carlo"
)

// Nulls hands out nulls and remembers them by shape. One serves a whole scan:
// safe for concurrent use. A null depends on its shape only, never on what was
// asked before, on the cache or on the number of cores.
type Nulls struct {
	cacheDir string
	progress func(what string, done, total int)
	lookup   catalogue
	mu       sync.Mutex
	cells    map[string]*lazy[*cell]
	profiles map[string]*lazy[[]float64]
	overlaps sync.Map // of overlapShape: Null
}

// NewNulls returns nulls from the embedded table; a shape outside it is simulated
// once and kept in cacheDir ("": eigenhead/nulls in the user's cache folder).
// progress, if not nil, is told how many of total draws of a simulation are done;
// calls come from several goroutines, one at a time for each simulation.
func NewNulls(cacheDir string, progress func(what string, done, total int)) *Nulls {
	return &Nulls{cacheDir: cacheDir, progress: progress, lookup: Lookup,
		cells: make(map[string]*lazy[*cell]), profiles: make(map[string]*lazy[[]float64])}
}

// shape is all that the law of a Gaussian head's measures depends on, beside s.
type shape struct {
	T, Dim     int
	Mask       head.Mask
	Convention attention.Convention
}

// catalogue finds a measure by name. It is handed down from NewNulls: measures
// name their nulls, and a null that named the list of all measures would make the
// list's initialization go in a circle.
type catalogue func(name string) (*Measure, error)

// normal returns the shape with a window that hides nothing written as causal.
func (sh shape) normal() shape {
	if sh.Mask.Kind == head.MaskWindow && sh.Mask.Window >= sh.T {
		sh.Mask = head.Causal
	}
	return sh
}

// cell holds the nulls of one shape: by measure, one moment per node of s, or one
// alone where they do not depend on s.
type cell struct {
	Nodes   []float64           `json:"nodes,omitempty"`
	Moments map[string][]moment `json:"moments"`
	Draws   int                 `json:"draws"`
	kind    string
}

// moment is the law of one measure at one place: its mean, and its spread.
type moment struct{ Mean, SD float64 }

// noSpread is the least spread that a z is divided by. Measures with a null are of
// order one or larger; where logits are so large that a Gaussian head is one-hot to
// twelve digits, a difference of 1e-10 is no finding.
const noSpread = 1e-9

// null turns a moment of the cell into a Null with its stated error.
func (c *cell) null(m moment) *Null {
	n := &Null{Mean: m.Mean, SD: m.SD, Kind: c.kind}
	if n.SD < noSpread {
		n.SD = 0
	}
	if c.kind == kindMonte {
		n.Error = 2 * m.SD / math.Sqrt(float64(c.Draws)) // sampling, two standard errors
	}
	if c.kind == kindTable || c.Nodes != nil {
		n.Error += max(m.SD/2, math.Abs(m.Mean)/100) // interpolation: see tools/nulltable -check
	}
	return n
}

// at returns the moment of a measure at logit standard deviation s.
func (c *cell) at(name string, s float64) (moment, error) {
	m, ok := c.Moments[name]
	if !ok {
		return moment{}, omit("a Gaussian head of this shape has no value either")
	}
	if len(c.Nodes) == 0 {
		return m[0], nil
	}
	if top := c.Nodes[len(c.Nodes)-1]; s > top {
		return moment{}, omit("logit standard deviation %.3g is beyond %g, the largest that nulls are known for", s, top)
	}
	return alongS(name, c.Nodes, m, s), nil
}

// cell returns the cell of this key, made by f when first asked for.
func (n *Nulls) cell(key string, f func() (*cell, error)) (*cell, error) {
	n.mu.Lock()
	l, ok := n.cells[key]
	if !ok {
		l = new(lazy[*cell])
		n.cells[key] = l
	}
	n.mu.Unlock()
	c, err := l.get(f)
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		n.mu.Lock()
		delete(n.cells, key) // interrupted: a later scan may want it
		n.mu.Unlock()
	}
	return c, err
}

// attentionCell returns the nulls of attention.* for a shape, over the nodes of s
// up to 10, or over those beyond.
func (n *Nulls) attentionCell(ctx context.Context, sh shape, high bool) (*cell, error) {
	sh = sh.normal()
	sh.Convention = "" // softmax does not see it
	key := fmt.Sprintf("attention T=%d d=%d mask=%v", sh.T, sh.Dim, sh.Mask)
	if high {
		key += " high"
	}
	return n.cell(key, func() (*cell, error) {
		if c := tableAttention(sh); c != nil && !high {
			return c, nil
		}
		if sh.T > maxSimulated {
			return nil, tooLong(sh.T)
		}
		return n.cached(key, func() (*cell, error) {
			return simulateAttention(ctx, n.lookup, sh, nodesFor(sh.T, high), drawsFor(sh.T), n.report(key))
		})
	})
}

// factorCell returns the nulls that depend on T and d only: of key.*, and of the
// channels of a field in the full convention.
func (n *Nulls) factorCell(ctx context.Context, T, d int) (*cell, error) {
	key := fmt.Sprintf("factors T=%d d=%d", T, d)
	return n.cell(key, func() (*cell, error) {
		if c := tableFactors(T, d); c != nil {
			return c, nil
		}
		return n.cached(key, func() (*cell, error) {
			return simulateFactors(ctx, n.lookup, shape{T: T, Dim: d}, min(64, drawsFor(T)), n.report(key))
		})
	})
}

// spectrumCell returns the nulls of functions of singular values.
func (n *Nulls) spectrumCell(ctx context.Context, T, d int) (*cell, error) {
	key := fmt.Sprintf("spectrum T=%d d=%d", T, d)
	return n.cell(key, func() (*cell, error) {
		return n.cached(key, func() (*cell, error) {
			return simulateSpectrum(ctx, n.lookup, T, d, n.report(key))
		})
	})
}

// fieldCell returns the nulls of energy.* and channel.* in a convention other than
// full, which do not depend on s either.
func (n *Nulls) fieldCell(ctx context.Context, sh shape) (*cell, error) {
	sh = sh.normal()
	key := fmt.Sprintf("field T=%d d=%d energy=%s mask=%v", sh.T, sh.Dim, sh.Convention, sh.Mask)
	return n.cell(key, func() (*cell, error) {
		if sh.T > maxSimulated {
			return nil, tooLong(sh.T)
		}
		return n.cached(key, func() (*cell, error) {
			return simulateField(ctx, n.lookup, sh, min(64, drawsFor(sh.T)), n.report(key))
		})
	})
}

func tooLong(T int) error {
	return omit("T = %d is beyond %d, where simulating a null takes longer than a scan", T, maxSimulated)
}

// report returns the progress callback of one simulation, calls in turn.
func (n *Nulls) report(key string) func(done, total int) {
	if n.progress == nil {
		return func(int, int) {}
	}
	var mu sync.Mutex
	return func(done, total int) {
		mu.Lock()
		defer mu.Unlock()
		n.progress("null of "+key, done, total)
	}
}

// attentionNull is the null of a measure whose mean and spread depend on s.
func attentionNull(name string) func(*Subject) (*Null, error) {
	return func(s *Subject) (*Null, error) {
		c, m, err := attentionMoment(s, name)
		if err != nil {
			return nil, err
		}
		return c.null(m), nil
	}
}

// attentionMoment looks up a measure at the head's own s.
func attentionMoment(s *Subject, name string) (*cell, moment, error) {
	p := s.pair()
	if p.Sink != nil {
		return nil, moment{}, omit("the null has no learned sink")
	}
	if p.Softcap > 0 {
		return nil, moment{}, omit("the null has no softcap")
	}
	if p.ALiBi != 0 {
		return nil, moment{}, omit("the null has no bias of distance (ALiBi)")
	}
	r, err := s.rows()
	if err != nil {
		return nil, moment{}, err
	}
	std, err := r.LogitStd()
	if err != nil {
		return nil, moment{}, errOneKey
	}
	sh := shape{T: p.T(), Dim: p.Dim(), Mask: p.Mask}
	c, err := s.run.opts.Nulls.attentionCell(s.run.ctx, sh, std > highS)
	if err != nil {
		return nil, moment{}, err
	}
	m, err := c.at(name, std)
	return c, m, err
}

// uniformNull is the null of a measure that is linear in A. Keys of a Gaussian
// head are exchangeable, so its mean is that of uniform attention, whatever s;
// only the spread is looked up.
func uniformNull(name string, uniform func(T int, m head.Mask) float64) func(*Subject) (*Null, error) {
	return func(s *Subject) (*Null, error) {
		c, m, err := attentionMoment(s, name)
		if err != nil {
			return nil, err
		}
		p := s.pair()
		return &Null{Mean: uniform(p.T(), p.Mask), SD: c.null(m).SD, Kind: kindClosed + ", spread from " + c.kind}, nil
	}
}

// factorNull is the null of a measure that does not depend on s: in the full
// convention and for keys by T and d alone.
func factorNull(name string) func(*Subject) (*Null, error) {
	return func(s *Subject) (*Null, error) {
		p, nulls := s.pair(), s.run.opts.Nulls
		var c *cell
		var err error
		switch {
		case !s.measuresKeys && s.convention() != attention.Full:
			c, err = nulls.fieldCell(s.run.ctx, shape{T: p.T(), Dim: p.Dim(), Mask: p.Mask, Convention: s.convention()})
		case slices.Contains(spectrumNames, name):
			c, err = nulls.spectrumCell(s.run.ctx, p.T(), p.Dim())
		default:
			c, err = nulls.factorCell(s.run.ctx, p.T(), p.Dim())
		}
		if err != nil {
			return nil, err
		}
		m, err := c.at(name, 0)
		if err != nil {
			return nil, err
		}
		return c.null(m), nil
	}
}
