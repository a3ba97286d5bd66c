package forward

import (
	"sync"

	"github.com/eigenhead/eigenhead/arch"
)

// work counts operations as they are done, from several goroutines.
type work struct {
	report      func(done, total int64) // nil: not told
	mu          sync.Mutex
	done, total int64
}

// add counts n operations.
func (w *work) add(n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = min(w.done+n, w.total)
	if w.report != nil {
		w.report(w.done, w.total)
	}
}

// finish counts what was estimated and not done.
func (w *work) finish() {
	if w.done < w.total {
		w.add(w.total - w.done)
	}
}

// products counts a multiplication and an addition for each row and weight.
func products(rows, weights int) int64 { return 2 * int64(rows) * int64(weights) }

// scoreWork counts what a block of scores costs: its own products, those with the
// values, and an exponential that takes as long as some thirty of either.
func scoreWork(rows, keys, d int) int64 { return int64(rows) * int64(keys) * int64(4*d+60) }

// cost counts the operations of n layers and, if they are wanted, of the logits.
func (p *pass) cost(n int) int64 {
	weights := func(ls ...arch.Linear) (n int) {
		for _, l := range ls {
			n += l.Out * l.In
		}
		return n
	}
	T := p.x.Rows
	total := int64(0)
	for i := range p.m.Blocks[:n] {
		b := &p.m.Blocks[i]
		w := weights(b.QKV...) + weights(b.Out)
		if e := b.Experts; e != nil {
			w += weights(e.Router)
			for _, part := range [][]arch.Linear{e.Gate, e.Up, e.GateUp, e.Down} {
				w += weights(part...) / max(1, len(part)) * e.Active
			}
		} else {
			w += weights(b.Up, b.Down)
			if b.Gate != nil {
				w += weights(*b.Gate)
			}
		}
		total += products(T, w) + p.attentionWork(b)
	}
	if p.logitsWanted() {
		w := p.m.Head.Out * p.m.Head.In
		if in := p.m.HeadIn; in != nil {
			w += weights(*in)
		}
		total += products(T, w)
	}
	return total
}

// attentionWork counts the operations of attend.
func (p *pass) attentionWork(b *arch.Block) int64 {
	T, mask := p.x.Rows, effective(b.Mask, p.x.Rows)
	total := int64(0)
	for from := 0; from < T; from += queryBlock {
		to := min(T, from+queryBlock)
		first, _ := mask.Visible(from, T)
		_, last := mask.Visible(to-1, T)
		total += scoreWork(to-from, last-first, p.m.HeadDim)
	}
	return total * int64(p.m.Heads)
}
