package measure

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"sync/atomic"

	"github.com/eigenhead/eigenhead/attention"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/par"
	"github.com/eigenhead/eigenhead/linalg"
	"github.com/eigenhead/eigenhead/spectrum"
)

// nullSeed starts every simulation; with the shape and the number of the draw it
// fixes all its random numbers, so a null depends on nothing else.
const nullSeed = 0x65696765 // "eige"

// Simulations stop at maxSimulated tokens: beyond it one null costs more than the
// scan that asks for it.
const maxSimulated = 8192

// highS is the largest s of the table. Beyond it, and up to the last of highNodes,
// shapes are simulated; attention is then one-hot but for ties.
const highS = 10

var (
	lowNodes    = []float64{0, 0.25, 0.5, 0.7, 0.85, 1, 1.15, 1.35, 1.6, 1.85, 2.15, 2.5, 3, 3.6, 4.5, 6, 8, highS}
	coarseNodes = []float64{0, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8, highS}
	highNodes   = []float64{highS, 13, 18, 25, 40, 70, 120}
)

// nodesFor returns the values of s that a simulation at T tokens visits.
func nodesFor(T int, high bool) []float64 {
	switch {
	case high:
		return highNodes
	case T > 2048:
		return coarseNodes
	}
	return lowNodes
}

// drawsFor returns the number of heads that a simulation draws: fewer for long
// sequences, whose measures spread less and cost more. Null.Error says what that
// does to the mean.
func drawsFor(T int) int {
	switch {
	case T <= 128:
		return 192
	case T <= 1024:
		return max(32, 32*1024/T)
	case T <= 2048:
		return 16
	case T <= 4096:
		return 6
	}
	return 4
}

// simulatedTolerance is what σ₁ and σ₂ of a simulated head are computed to, as a
// share of σ₁. It is stricter without a mask: for faint logits σ₂ is then a few
// hundredths of σ₁, and the first of a cluster.
func simulatedTolerance(m head.Mask) float64 {
	if m.Kind == head.MaskNone {
		return simulatedTol / 10
	}
	return simulatedTol
}

// attentionNames are the measures whose null depends on s.
var attentionNames = []string{
	"attention.entropy", "attention.entropy_p05", "attention.sink", "attention.sink_max",
	"attention.uniform_distance", "attention.frobenius", "attention.diagonal", "attention.previous",
	"attention.distance", "attention.sigma1", "attention.sigma2", "attention.gap",
	"attention.eigen_gap", "attention.stable_rank",
}

// factorNames are those whose null depends on T and d only, and is smooth in them.
var factorNames = []string{
	"key.incoherence", "key.incoherence_centered", "key.leverage_max", "key.norm_min_median", "channel.key_ipr_max",
}

// spectrumNames are functions of the singular values of E or K_c. They count, or
// have a kink at T = d, so they are not interpolated but drawn for each shape:
// singular values need the triangles of Q and K_c alone, whatever T is.
var spectrumNames = []string{
	"energy.k90", "energy.k95", "energy.k99", "energy.top20", "energy.stable_rank", "energy.effective_rank", "key.condition",
}

// source returns the random numbers of one draw of one simulation.
func source(what string, sh shape, draw int) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s T=%d d=%d mask=%v energy=%s", what, sh.T, sh.Dim, sh.Mask, sh.Convention)
	return rand.New(rand.NewPCG(nullSeed^h.Sum64(), uint64(draw)))
}

func gaussian(r *rand.Rand, rows, cols int) linalg.Matrix {
	m := linalg.New(rows, cols)
	for i := range m.Data {
		m.Data[i] = r.NormFloat64()
	}
	return m
}

// gaussianPair draws a head whose scores have a standard deviation of about 1.
func gaussianPair(r *rand.Rand, sh shape) head.Pair {
	return head.Pair{Q: gaussian(r, sh.T, sh.Dim), K: gaussian(r, sh.T, sh.Dim),
		Scale: 1 / math.Sqrt(float64(sh.Dim)), Mask: sh.Mask}
}

// simulateAttention draws heads and measures each at every node of s. One draw
// serves all nodes: scaled so that its own s, as attention.logit_std has it, is
// exactly the node's.
func simulateAttention(ctx context.Context, lookup catalogue, sh shape, nodes []float64, draws int, report func(done, total int)) (*cell, error) {
	one := func(draw int, put func(node int, name string, v float64)) error {
		p := gaussianPair(source("attention", sh, draw), sh)
		s, err := attention.LogitStd(ctx, p)
		if err != nil {
			return omit("T = %d: %v", sh.T, err)
		}
		unit := p.Scale / s
		for k, node := range nodes {
			p.Scale = node * unit
			draw := newDraw(ctx, p, attention.Full)
			if err := measureDraw(draw, lookup, attentionNames, func(name string, v float64) { put(k, name, v) }); err != nil {
				return err
			}
		}
		return nil
	}
	return gather(ctx, nodes, attentionNames, draws, one, report)
}

// simulateFactors draws heads for factorNames. The channels' vectors are not
// computed: of a Gaussian product they are a random orthonormal frame, drawn as
// such, several times over.
func simulateFactors(ctx context.Context, lookup catalogue, sh shape, draws int, report func(done, total int)) (*cell, error) {
	names, last := factorNames[:len(factorNames)-1], factorNames[len(factorNames)-1:]
	c, err := gather(ctx, nil, names, draws, func(draw int, put func(int, string, float64)) error {
		p := gaussianPair(source("factors", sh, draw), sh)
		return measureDraw(newDraw(ctx, p, attention.Full), lookup, names, func(name string, v float64) { put(0, name, v) })
	}, report)
	if err != nil {
		return nil, err
	}
	frames, err := gather(ctx, nil, last, frameDraws, func(draw int, put func(int, string, float64)) error {
		if v, ok := largestIPR(source("frame", shape{T: sh.T}, draw), sh); ok {
			put(0, last[0], v)
		}
		return nil
	}, quiet)
	if err != nil {
		return nil, err
	}
	if m, ok := frames.Moments[last[0]]; ok {
		c.Moments[last[0]] = m
	}
	return c, nil
}

// simulateField draws heads for energy.* and channel.* in a convention other than
// full, where no short cut is known.
func simulateField(ctx context.Context, lookup catalogue, sh shape, draws int, report func(done, total int)) (*cell, error) {
	names := append([]string{"channel.key_ipr", "channel.query_ipr", "channel.key_ipr_max"}, spectrumNames[:6]...)
	return gather(ctx, nil, names, draws, func(draw int, put func(int, string, float64)) error {
		p := gaussianPair(source("field", sh, draw), sh)
		return measureDraw(newDraw(ctx, p, sh.Convention), lookup, names, func(name string, v float64) { put(0, name, v) })
	}, report)
}

// simulateSpectrum draws the triangles of Q and K_c for spectrumNames:
// E = Q_q·(R_q R_kᵀ)·Q_kᵀ with orthonormal Q_q and Q_k.
func simulateSpectrum(ctx context.Context, lookup catalogue, T, d int, report func(done, total int)) (*cell, error) {
	sh := shape{T: T, Dim: d}
	return gather(ctx, nil, spectrumNames, spectrumDrawsFor(d), func(draw int, put func(int, string, float64)) error {
		r := source("spectrum", sh, draw)
		q, k := triangle(r, T, d), triangle(r, T-1, d)
		sigma, err := linalg.SingularValues(k)
		if err != nil || len(sigma) == 0 {
			return err
		}
		e, err := spectrum.OfProduct(q, k)
		if err != nil {
			return err
		}
		// Shapes without numbers: nothing below looks at Q or K themselves.
		empty := linalg.Matrix{Rows: T, Cols: d}
		s := newDraw(ctx, head.Pair{Q: empty, K: empty}, attention.Full)
		_, _ = s.head().energy.get(func() (spectrum.Spectrum, error) { return e, nil })
		_, _ = s.keyState().basis.get(func() (*basis, error) { return &basis{sigma: sigma, rank: len(sigma)}, nil })
		return measureDraw(s, lookup, spectrumNames, func(name string, v float64) { put(0, name, v) })
	}, report)
}

// spectrumDrawsFor keeps these nulls to a fraction of a second.
func spectrumDrawsFor(d int) int {
	switch {
	case d <= 64:
		return 96
	case d <= 128:
		return 48
	}
	return 24
}

// frameDraws is the number of random frames behind channel.key_ipr_max.
const frameDraws = 400

// randomFrame draws m orthonormal vectors with zero sum, m < T, as columns.
func randomFrame(r *rand.Rand, T, m int) linalg.Matrix {
	q, _ := linalg.QR(linalg.Center(gaussian(r, T, m)))
	return q
}

// largestIPR is the largest T·Σx⁴ of min(8, rank) such vectors.
func largestIPR(r *rand.Rand, sh shape) (float64, bool) {
	m := min(leading, sh.Dim, sh.T-1)
	if m < 1 {
		return 0, false
	}
	q := randomFrame(r, sh.T, m)
	largest := 0.0
	for k := range m {
		largest = max(largest, ipr(q, k))
	}
	return largest, true
}

// simulatedMemory is the bytes of A's blocks that all running draws keep.
const simulatedMemory = 512 << 20

// newDraw makes the subject of one simulated head.
func newDraw(ctx context.Context, p head.Pair, conv attention.Convention) *Subject {
	l := &head.Layer{Pairs: []head.Pair{p}, KVHeads: 1, KVIDs: []int{0}}
	o := &Options{Convention: conv, Memory: simulatedMemory, simulated: true, sigmas: true}
	return &Subject{Layer: l, run: newRun(ctx, l, o)}
}

// measureDraw computes measures of one head by the catalogue's own functions.
func measureDraw(s *Subject, lookup catalogue, names []string, put func(string, float64)) error {
	for _, name := range names {
		m, err := lookup(name)
		if err != nil {
			panic(err)
		}
		s.measuresKeys = m.Per == PerKVHead
		v, err := m.Compute(s)
		switch {
		case s.run.ctx.Err() != nil:
			return s.run.ctx.Err()
		case err == nil:
			put(name, v.Value)
		}
	}
	return nil
}

// gather runs the draws in parallel and reduces them in their order. A measure
// that any draw has no value for is left out of the cell.
func gather(ctx context.Context, nodes []float64, names []string, draws int,
	one func(draw int, put func(node int, name string, v float64)) error, report func(done, total int)) (*cell, error) {
	index := make(map[string]int, len(names))
	for i, n := range names {
		index[n] = i
	}
	places := max(1, len(nodes))
	values := make([][]float64, draws) // [draw][node·names]
	seen := make([][]bool, draws)
	var done atomic.Int64
	err := par.DoCtx(ctx, draws, func(i int) error {
		values[i], seen[i] = make([]float64, places*len(names)), make([]bool, places*len(names))
		err := one(i, func(node int, name string, v float64) {
			at := node*len(names) + index[name]
			values[i][at], seen[i][at] = v, true
		})
		report(int(done.Add(1)), draws)
		return err
	})
	if err != nil {
		return nil, err
	}
	c := &cell{Nodes: nodes, Moments: make(map[string][]moment, len(names)), Draws: draws, kind: kindMonte}
	for k, name := range names {
		if m := reduce(values, seen, places, len(names), k); m != nil {
			c.Moments[name] = m
		}
	}
	return c, nil
}

// reduce returns the mean and spread over draws of column k at every place.
func reduce(values [][]float64, seen [][]bool, places, width, k int) []moment {
	out := make([]moment, places)
	n := float64(len(values))
	for p := range out {
		at := p*width + k
		sum := 0.0
		for i := range values {
			if !seen[i][at] {
				return nil
			}
			sum += values[i][at]
		}
		m := sum / n
		squares := 0.0
		for i := range values {
			squares += (values[i][at] - m) * (values[i][at] - m)
		}
		out[p] = moment{Mean: m, SD: math.Sqrt(squares / max(1, n-1))}
		if out[p].SD <= 1e-12*math.Abs(m) {
			out[p].SD = 0 // rounding of equal values is no spread
		}
	}
	return out
}
