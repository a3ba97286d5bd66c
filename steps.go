package eigenhead

import (
	"sync"

	"github.com/eigenhead/eigenhead/forward"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
	"github.com/eigenhead/eigenhead/measure"
)

// steps adds up the work of both stages, in operations that were estimated before
// the scan: what each stage says of itself is a share of its estimate.
type steps struct {
	report func(done, total int64) // nil: not told

	mu       sync.Mutex
	pass     int64   // what one forward pass costs
	layers   []int64 // what measuring each of its layers does
	total    int64   // all of it, over all windows
	before   int64   // in windows that are done with
	forward  int64   // of the pass that runs
	measured int64   // of its layers that are done with
	layer    int     // the next one
	told     int64
}

// newSteps foresees so many windows, each with a pass and the measures of layers.
func newSteps(report func(done, total int64), windows int, pass int64, layers []int64) *steps {
	s := &steps{report: report, pass: pass, layers: layers, total: pass}
	for _, c := range layers {
		s.total += c
	}
	s.total *= int64(windows)
	return s
}

// passed takes the progress of the forward pass, in any unit.
func (s *steps) passed(done, total int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forward = share(s.pass, done, total)
	s.tell(0)
}

// measure takes the progress of the layer that is measured, in any unit. A layer
// whose work is all done makes way for the next.
func (s *steps) measure(done, total int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.layer == len(s.layers) {
		return
	}
	now := share(s.layers[s.layer], done, total)
	if done >= total {
		s.measured, s.layer, now = s.measured+now, s.layer+1, 0
	}
	s.tell(now)
}

// window ends a window: what is left of it counts as done.
func (s *steps) window() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before += s.pass
	for _, c := range s.layers {
		s.before += c
	}
	s.forward, s.measured, s.layer = 0, 0, 0
	s.tell(0)
}

// tell reports what grew: the two stages know nothing of each other's part.
func (s *steps) tell(part int64) {
	now := s.before + s.forward + s.measured + part
	if s.report != nil && now > s.told {
		s.told = now
		s.report(now, s.total)
	}
}

// share is whole·done/total, exactly whole at the end.
func share(whole, done, total int64) int64 {
	if done >= total {
		return whole
	}
	return int64(float64(whole) * (float64(done) / float64(total)))
}

// foresee estimates the work of a scan.
func (s *scan) foresee() *steps {
	var layers []int64
	for _, l := range s.layers {
		layers = append(layers, measure.Work(s.src.shapes(l, s.window.input.Tokens), s.measure))
	}
	return newSteps(s.opts.Progress, len(s.window.cuts), s.src.passWork(s.layers, s.logits(), s.window.input.Tokens), layers)
}

// readWork is what reading a number of a capture costs, in operations.
const readWork = 20

// passWork foresees the forward pass, or the reading of a capture.
func (s *source) passWork(layers []int, logits bool, T int) int64 {
	if s.model != nil {
		n := s.model.Layers
		if !logits {
			n = layers[len(layers)-1] + 1
		}
		return forward.Work(s.model, T, n, logits)
	}
	total := int64(0)
	for _, l := range layers {
		d := s.capture.Dims(l)
		total += readWork * int64(T) * int64((d.Heads+2*d.KVHeads)*d.Dim+d.DModel)
	}
	return total
}

// shapes returns a layer without its numbers, for estimates of work.
func (s *source) shapes(l, T int) *head.Layer {
	var heads, kvHeads, dim int
	out, mask := &head.Layer{Index: l}, s.facts(l).mask
	if m := s.model; m != nil {
		heads, kvHeads, dim = m.Heads, m.KVHeads, m.HeadDim
		out.X = linalg.Matrix32{Rows: T, Cols: m.Width}
		out.WQ = head.Weights{Rows: heads * dim, Cols: m.Width}
	} else {
		d := s.capture.Dims(l)
		heads, kvHeads, dim = d.Heads, d.KVHeads, d.Dim
		out.X, out.Sparse = linalg.Matrix32{Rows: T, Cols: d.DModel}, s.capture.Meta.Positions != nil
	}
	q := linalg.Matrix{Rows: T, Cols: dim}
	for h := range heads {
		out.Pairs = append(out.Pairs, head.Pair{ID: head.ID{Layer: l, Head: h}, KVHead: h * kvHeads / heads, Q: q, K: q, Mask: mask})
	}
	return out
}
