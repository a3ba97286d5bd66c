package eigenhead

import "sync"

// steps adds up the work of both stages: a head measured is one step, and a whole
// forward pass is as many steps as there are heads to measure in it.
type steps struct {
	report           func(done, total int64)
	mu               sync.Mutex
	forwarded, heads int64
	perPass, passes  int64
	pass             int64 // the one that runs, from 0
}

func newSteps(report func(done, total int64), heads, passes int) *steps {
	return &steps{report: report, perPass: int64(heads), passes: int64(passes)}
}

// forward takes the progress of the forward pass, in any unit.
func (s *steps) forward(done, total int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forwarded = s.pass*s.perPass + s.perPass*int64(done)/int64(max(total, 1))
	s.tell()
}

// head counts one head measured.
func (s *steps) head() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heads++
	s.tell()
}

func (s *steps) tell() {
	if s.report != nil {
		s.report(s.forwarded+s.heads, 2*s.perPass*s.passes)
	}
}
