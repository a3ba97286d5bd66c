package measure

import (
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/eigenhead/eigenhead/attention"
	"github.com/eigenhead/eigenhead/head"
)

// Costs of parts, in operations of the forward pass's products, by what was timed
// on AVX-512 (go run ./bench/ours). They move a progress bar and nothing else.
const (
	costScore    = 400 // beside its products: exponential and statistics of one entry of A
	costKept     = 900 // σ₁ and σ₂ over one entry that is kept
	passesSigma  = 9   // over entries that are not
	passesSure   = 18  // with Options.Certify
	costFactor   = 40  // a row of a factor and a square of its columns
	costCore     = 400 // a cube of the columns: small decompositions
	costGram     = 4   // a row and a square of the columns of a matrix of the whole layer
	costCoreWide = 10  // its cube
)

// Work estimates what measuring a layer costs, in operations of forward's unit, so
// that the two add up. l may hold the shapes of its matrices alone. Where blocks of
// A are kept, the cores share Options.Memory.
func Work(l *head.Layer, opts *Options) int64 {
	total := int64(0)
	r := layerRun{layer: l}
	for _, c := range costs(l, prepared(opts), r.firstReaders()) {
		total += c
	}
	return total
}

// costs estimates the tasks of a layer: its own, those of its KV heads, given by
// the first pair that reads each, and those of its heads.
func costs(l *head.Layer, o *Options, readers []int) []int64 {
	out := []int64{layerCost(l, o)}
	for _, i := range readers {
		out = append(out, factorCost(l.Pairs[i]))
	}
	for _, p := range l.Pairs {
		out = append(out, headCost(l, p, o))
	}
	return out
}

func factorCost(p head.Pair) int64 {
	T, d := float64(p.T()), float64(p.Dim())
	return int64(costFactor*T*d*d + costCore*d*d*d)
}

// layerCost is that of the residual stream's spectrum.
func layerCost(l *head.Layer, o *Options) int64 {
	T, w := float64(l.X.Rows), float64(l.X.Cols)
	if !wanted(o, "residual.") {
		return 1
	}
	return 1 + int64(costGram*T*w*w+costCoreWide*w*w*w)
}

// headCost is that of one head, its share in what the layer's heads do together
// included.
func headCost(l *head.Layer, p head.Pair, o *Options) int64 {
	T, d, n := float64(p.T()), float64(p.Dim()), float64(len(l.Pairs))
	cost := 1.0
	if wanted(o, "energy.") || wanted(o, "channel.") || o.Profiles {
		cost += float64(factorCost(p))
	}
	if wanted(o, "weights.") && l.WQ.Rows > 0 {
		cost += costFactor*float64(l.WQ.Cols)*d*d + costCore*d*d*d
	}
	for _, group := range []string{"overlap.", "output."} {
		if wanted(o, group) {
			cost += costGram * T * n * d * d
		}
	}
	if l.Sparse {
		return int64(cost)
	}
	if wanted(o, "attention.") || o.Profiles {
		cost += operatorCost(p, o, o.sigmas)
	}
	if o.Convention == attention.Masked && wanted(o, "energy.") {
		cost += operatorCost(p, o, true)
	}
	return int64(cost)
}

// operatorCost is that of the pass over A, and of its singular values.
func operatorCost(p head.Pair, o *Options, sigmas bool) float64 {
	scores, passes := float64(attention.Scores(p.T(), p.Mask)), float64(passesSigma)
	cost := scores * scoreCost(p)
	if o.Certify {
		passes += passesSure
	}
	if sigmas {
		kept := math.Min(1, math.Max(0, float64(o.share(p))/8/scores))
		cost += scores * (kept*costKept + (1-kept)*passes*scoreCost(p))
	}
	return cost
}

// scoreCost is what one score costs until it is counted.
func scoreCost(p head.Pair) float64 { return 4*float64(p.Dim()) + costScore }

func wanted(o *Options, group string) bool {
	return slices.ContainsFunc(o.Measures, func(m *Measure) bool { return strings.HasPrefix(m.Name, group) })
}

// progress adds up what the tasks of a layer have done, from several goroutines.
type progress struct {
	report      func(done, total int64) // nil: not told
	mu          sync.Mutex
	done, total int64
	left        []int64 // of the estimate of each task
}

func newProgress(report func(done, total int64), tasks []int64) *progress {
	p := &progress{report: report, left: tasks}
	for _, c := range tasks {
		p.total += c
	}
	return p
}

// add counts n operations of a task, up to what it was estimated at.
func (p *progress) add(task int, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n = min(n, p.left[task])
	if p.left[task] -= n; n > 0 && p.report != nil {
		p.done += n
		p.report(p.done, p.total)
	}
}

// finish counts the whole of a task.
func (p *progress) finish(task int) { p.add(task, math.MaxInt64) }
