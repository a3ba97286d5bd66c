package measure

import (
	"context"
	"fmt"
	"math"
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

// null turns a moment of the cell into a Null with its stated error.
func (c *cell) null(m moment) *Null {
	n := &Null{Mean: m.Mean, SD: m.SD, Kind: c.kind}
	switch c.kind {
	case kindTable:
		n.Error = max(m.SD/2, math.Abs(m.Mean)/100)
	case kindMonte:
		n.Error = 2 * m.SD / math.Sqrt(float64(c.Draws))
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
	return alongS(c.Nodes, m, s), nil
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
	return l.get(f)
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
		if !high {
			if c, err := tableAttention(sh); c != nil || err != nil {
				return c, err
			}
		}
		if sh.T > maxSimulated {
			return nil, omit("T = %d is beyond %d, where simulating a null takes longer than a scan", sh.T, maxSimulated)
		}
		return n.cached(key, func() (*cell, error) {
			return simulateAttention(ctx, n.lookup, sh, nodesFor(sh.T, high), drawsFor(sh.T), n.report(key))
		})
	})
}

// factorCell returns the nulls that do not depend on s: key.*, and energy.* and
// channel.* in one convention.
func (n *Nulls) factorCell(ctx context.Context, sh shape) (*cell, error) {
	sh = sh.normal()
	if sh.Convention == attention.Full {
		sh.Mask = head.Mask{} // E does not see it
	}
	key := fmt.Sprintf("factors T=%d d=%d energy=%s mask=%v", sh.T, sh.Dim, sh.Convention, sh.Mask)
	return n.cell(key, func() (*cell, error) {
		if sh.Convention == attention.Full {
			if c, err := tableFactors(sh.T, sh.Dim); c != nil || err != nil {
				return c, err
			}
		}
		if sh.Convention == attention.Masked && sh.T > maxSimulated {
			return nil, omit("T = %d is beyond %d, where simulating a null takes longer than a scan", sh.T, maxSimulated)
		}
		return n.cached(key, func() (*cell, error) {
			return simulateFactors(ctx, n.lookup, sh, drawsFor(sh.T), n.report(key))
		})
	})
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
		n := &Null{Mean: uniform(p.T(), p.Mask), SD: m.SD, Kind: kindClosed + ", spread from " + c.kind}
		return n, nil
	}
}

// factorNull is the null of a measure that does not depend on s.
func factorNull(name string) func(*Subject) (*Null, error) {
	return func(s *Subject) (*Null, error) {
		p, conv := s.pair(), s.convention()
		if s.measuresKeys {
			conv = attention.Full // keys do not depend on it
		}
		c, err := s.run.opts.Nulls.factorCell(s.run.ctx, shape{T: p.T(), Dim: p.Dim(), Mask: p.Mask, Convention: conv})
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
