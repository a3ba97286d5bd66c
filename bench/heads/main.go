// Command heads checks σ₁ and σ₂ of attention.Top, and the bounds they come with,
// against a dense decomposition, over many heads: Gaussian ones, adversarial
// clusters, and windows of the heads of a capture. A value above the truth, or one
// further below it than its bound and the tolerance of the iteration, is a defect.
//
//	go run ./bench/heads [-n 10000] [-certify] [CAPTURE]
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"sync"

	"github.com/eigenhead/eigenhead/attention"
	"github.com/eigenhead/eigenhead/capture"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/par"
	"github.com/eigenhead/eigenhead/linalg"
)

func main() {
	n := flag.Int("n", 10000, "number of heads")
	certify := flag.Bool("certify", false, "check the probabilistic bound as well")
	flag.Parse()
	var real []head.Pair
	if flag.NArg() > 0 {
		var err error
		if real, err = windows(flag.Arg(0)); err != nil {
			fmt.Fprintln(os.Stderr, "heads:", err)
			os.Exit(1)
		}
	}
	s := check(*n, real, *certify)
	s.print(os.Stdout)
	if s.defects > 0 {
		os.Exit(1)
	}
}

// windows cuts the heads of a capture into windows of 128 tokens, one a head, at
// places that move through the text.
func windows(file string) ([]head.Pair, error) {
	const T = 128
	c, err := capture.Open(file)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var all []head.Pair
	for _, i := range c.Layers() {
		l, err := c.Layer(i)
		if err != nil {
			return nil, err
		}
		for _, p := range l.Pairs {
			if p.T() < T {
				return nil, fmt.Errorf("%s: %d tokens, want at least %d", file, p.T(), T)
			}
			from := len(all) * 37 % (p.T() - T + 1)
			p.Q, p.K, p.V = p.Q.RowSlice(from, from+T).Clone(), p.K.RowSlice(from, from+T).Clone(), linalg.Matrix{}
			all = append(all, p)
		}
	}
	return all, nil
}

// summary adds up what check saw.
type summary struct {
	mu       sync.Mutex
	heads    int
	defects  int
	messages []string
	kinds    map[string]int
	worst    [2]float64 // largest |value − σ|/σ₁ of σ₁ and σ₂
	bracket  float64    // widest upper/σ₁ − 1
	loosest  float64    // largest certified upper/σ₂, of σ₂ above a thousandth of σ₁
}

func (s *summary) print(w *os.File) {
	fmt.Fprintf(w, "%d heads: %d defects\n", s.heads, s.defects)
	fmt.Fprintf(w, "largest error, relative to σ₁: σ₁ %.2g, σ₂ %.2g; widest bracket of σ₁ %.2g\n", s.worst[0], s.worst[1], s.bracket)
	if s.loosest > 0 {
		fmt.Fprintf(w, "loosest certified bound of σ₂: %.3f times σ₂\n", s.loosest)
	}
	fmt.Fprintf(w, "kinds: %v\n", s.kinds)
	for _, m := range s.messages {
		fmt.Fprintln(w, m)
	}
}

func (s *summary) defect(format string, args ...any) {
	s.defects++
	if len(s.messages) < 20 {
		s.messages = append(s.messages, fmt.Sprintf(format, args...))
	}
}

// check draws n heads; every seventh is one of real, if there are any.
func check(n int, real []head.Pair, certify bool) *summary {
	s := &summary{kinds: map[string]int{}}
	par.Do(n, func(i int) {
		kind, p := adversary(i)
		if len(real) > 0 && i%7 == 0 {
			kind, p = "real", real[i/7%len(real)]
		}
		s.one(kind, p, uint64(i), certify)
	})
	return s
}

// modes are the ways to look for σ; heads here are too short for the others to be
// chosen by length.
var modes = []attention.Coarse{attention.CoarseNone, attention.CoarseRounded, attention.CoarseComputed}

// one checks one head, each way.
func (s *summary) one(kind string, p head.Pair, seed uint64, certify bool) {
	var want []float64
	for _, mode := range modes {
		a, t, err := top(p, mode, seed, certify)
		if err == nil && want == nil {
			want, err = linalg.SingularValues(dense(a))
		}
		s.compare(fmt.Sprintf("head %d (%s, coarse %d)", seed, kind, mode), t, want, certify, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heads++
	s.kinds[kind]++
}

func top(p head.Pair, mode attention.Coarse, seed uint64, certify bool) (*attention.Operator, *attention.TopValues, error) {
	ctx := context.Background()
	a, err := attention.New(ctx, p, &attention.Options{Coarse: mode})
	if err != nil {
		return nil, nil, err
	}
	t, err := attention.Top(ctx, a, seed)
	if err == nil && certify {
		err = attention.Certify(ctx, a, t, seed)
	}
	return a, t, err
}

// compare holds what was found against the values of the dense matrix.
func (s *summary) compare(what string, t *attention.TopValues, want []float64, certify bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.defect("%s: %v", what, err)
		return
	}
	values := []attention.TopValue{t.First}
	if t.Second != nil {
		values = append(values, *t.Second)
	}
	for k, v := range values {
		rounding := t.Rounding + 1e-13*want[0] // of both sides
		s.worst[k] = max(s.worst[k], math.Abs(v.Value-want[k])/want[0])
		if v.Value > want[k]+rounding {
			s.defect("%s: σ%d %v is above %v", what, k+1, v.Value, want[k])
		}
		if v.Value < want[k]-rounding-v.Bound-2e-6*want[0] {
			s.defect("%s: σ%d %v missed, found %v with bound %v", what, k+1, want[k], v.Value, v.Bound)
		}
		if v.Upper < want[k]-rounding {
			s.defect("%s: σ%d %v is above its upper bound %v (%s)", what, k+1, want[k], v.Upper, v.UpperKind)
		}
	}
	s.bracket = max(s.bracket, t.First.Upper/want[0]-1)
	if certify && t.Second != nil && want[1] > 1e-3*want[0] {
		s.loosest = max(s.loosest, t.Second.Upper/want[1])
	}
}

// dense forms A by products with unit vectors.
func dense(a *attention.Operator) linalg.Matrix {
	T, _ := a.Dims()
	x, m := linalg.New(T, T), linalg.New(T, T)
	for i := range T {
		x.Set(i, i, 1)
	}
	a.MulT(m, x) // row i of the product is row i of A
	return m
}
