package attention

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
	"pgregory.net/rapid"
)

var coarseModes = []Coarse{CoarseNone, CoarseRounded, CoarseComputed}

// hardCases are heads that float32 sees badly, or that have no single leading pair.
func hardCases() []pairCase {
	T := 150
	one := func(f func(p *head.Pair)) head.Pair {
		p := gaussianPair(77, T, 8, head.Causal)
		f(&p)
		return p
	}
	hot := func(group int) func(p *head.Pair) { // one-hot rows: singular values repeat
		return func(p *head.Pair) {
			clear(p.Q.Data)
			clear(p.K.Data)
			for i := range T {
				p.Q.Set(i, i/group%8, 400)
				p.K.Set(i, i/group%8, 1)
			}
		}
	}
	return []pairCase{
		{"equal keys", one(func(p *head.Pair) {
			for i := range T {
				copy(p.K.Row(i), p.K.Row(0))
			}
		})},
		{"rank one", one(func(p *head.Pair) { p.Mask, p.Scale = head.Mask{}, 0 })},
		{"one-hot rows", one(hot(1))},
		{"one-hot groups", one(hot(19))},
		{"logits of 1e4", one(func(p *head.Pair) { linalg.Scale(1e4, p.Q.Data) })},
		{"logits of 1e9", one(func(p *head.Pair) { linalg.Scale(1e9, p.Q.Data) })},
		{"scores beyond float32", one(func(p *head.Pair) { linalg.Scale(1e30, p.Q.Data); linalg.Scale(1e30, p.K.Data) })},
		{"queries beyond float32", one(func(p *head.Pair) { linalg.Scale(1e60, p.Q.Data); linalg.Scale(1e-60, p.K.Data) })},
		{"denormal scores", one(func(p *head.Pair) { linalg.Scale(0x1p-1060, p.Q.Data) })},
		{"sink takes nearly all", one(func(p *head.Pair) { p.Sink = ptr(60) })},
		{"sink beyond float32", one(func(p *head.Pair) { p.Sink = ptr(300) })},
		{"sink takes all", one(func(p *head.Pair) { p.Sink = ptr(900) })},
		{"window of one", one(func(p *head.Pair) { p.Mask = head.Mask{Kind: head.MaskWindow, Window: 1} })},
		{"window", one(func(p *head.Pair) { p.Mask = head.Mask{Kind: head.MaskWindow, Window: 70} })},
		{"ALiBi", one(func(p *head.Pair) { p.ALiBi = .3 })},
		{"softcap", one(func(p *head.Pair) { p.Softcap = 2; linalg.Scale(30, p.Q.Data) })},
	}
}

func TestCoarseAgainstTwin(t *testing.T) {
	for _, mode := range coarseModes {
		for _, c := range append(hardCases(), pairCases()...) {
			t.Run(fmt.Sprintf("%d/%s", mode, c.name), func(t *testing.T) { checkTopWith(t, c.p, &Options{Coarse: mode}) })
		}
	}
}

func TestCoarseProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkTopWith(t, drawPair(t), &Options{Coarse: rapid.SampledFrom(coarseModes).Draw(t, "coarse")})
	})
}

// The coarse operator is A to what float32 gives.
func TestCoarseProducts(t *testing.T) {
	rng := rand.New(rand.NewPCG(61, 62))
	for _, c := range pairCases() {
		for _, mode := range coarseModes[1:] {
			a, err := New(background, c.p, &Options{Coarse: mode, Memory: 20000})
			if err != nil {
				t.Fatal(err)
			}
			if tolerance(a.Stats()) > 1e-10 {
				continue // float32 is lost on these scores
			}
			low, T := newCoarse(a, 20000), c.p.T()
			x := gaussian(rng, 5, T)
			y, z, want, back := linalg.New(5, T), linalg.New(5, T), linalg.New(5, T), linalg.New(5, T)
			a.MulPair(want, back, x, linalg.Matrix{})
			low.MulPair(y, z, x, linalg.Matrix{})
			size := float64(T) * 1e-6 * (1 + a.size) // rounding of scores up to size, and of sums
			compare(t, fmt.Sprintf("%s: coarse %d", c.name, mode), y, want, size)
			compare(t, fmt.Sprintf("%s: coarse %d, back", c.name, mode), z, back, size*float64(T))
			again := linalg.New(5, T)
			low.Mul(again, x)
			same(t, again, y)
			low.MulT(again, x)
			a.MulT(back, x)
			compare(t, fmt.Sprintf("%s: coarse %d, transposed", c.name, mode), again, back, size*math.Sqrt(float64(T)))
		}
	}
}

// What is kept, what is not, and how many cores there are change no bit, wherever σ
// is looked for first.
func TestCoarseSameBits(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	long := func(T int, mask head.Mask) pairCase {
		return pairCase{fmt.Sprintf("%d tokens", T), gaussianPair(uint64(T), T, 4, mask)}
	}
	cases := append(hardCases(), long(coarseT+60, head.Causal), long(computedT+70, head.Mask{Kind: head.MaskWindow, Window: 300}),
		long(4*longT+100, head.Mask{Kind: head.MaskWindow, Window: 200}))
	for _, mode := range append(coarseModes, CoarseByLength) {
		for _, c := range cases {
			if c.p.T() > 200 && mode != CoarseByLength {
				continue
			}
			var first *TopValues
			for _, o := range []struct {
				procs  int
				memory int64
			}{{1, 0}, {2, -1}, {2, 40000}, {1, 150000}, {2, 3 << 20}} {
				runtime.GOMAXPROCS(o.procs)
				a, err := New(background, c.p, &Options{Memory: o.memory, Coarse: mode})
				if err != nil {
					t.Fatal(err)
				}
				r, err := Top(background, a, 1)
				if err != nil {
					t.Fatalf("%s, coarse %d: %v", c.name, mode, err)
				}
				a.Release()
				if first == nil {
					first = r
				}
				if r.First != first.First || *r.Second != *first.Second || r.Products != first.Products {
					t.Errorf("%s, coarse %d: %+v with %+v, want %+v", c.name, mode, r, o, first)
				}
			}
		}
	}
}

// A second look, after the coarse blocks were given away, and one after Release see
// the same.
func TestTopAgain(t *testing.T) {
	p := gaussianPair(5, coarseT+40, 8, head.Causal)
	a, err := New(background, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all [3]*TopValues
	for i := range all {
		if all[i], err = Top(background, a, 1); err != nil {
			t.Fatal(err)
		}
		if all[i].First != all[0].First || *all[i].Second != *all[0].Second {
			t.Errorf("look %d: %+v, want %+v", i, all[i], all[0])
		}
		if i == 1 {
			a.Release()
		}
	}
	if linalg.Few32 && all[0].Products > 4 {
		t.Errorf("%d products in float64 after a coarse run, want 2 or 4", all[0].Products)
	}
}

func TestCoarseStops(t *testing.T) {
	for _, mode := range coarseModes {
		ctx, cancel := context.WithCancel(context.Background())
		a, err := New(ctx, gaussianPair(3, 300, 8, head.Causal), &Options{Memory: -1, Coarse: mode})
		if err != nil {
			t.Fatal(err)
		}
		other, stop := context.WithCancel(context.Background())
		stop()
		if _, err := Top(other, a, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("coarse %d: stopped: %v", mode, err)
		}
		cancel()
		if _, err := Top(background, a, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("coarse %d: σ of a stopped operator: %v", mode, err)
		}
	}
}

// Sweeps end with the context of Top, which need not be the operator's.
func TestSweepsStop(t *testing.T) {
	a, err := New(background, gaussianPair(3, 100, 8, head.Causal), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	w := &witness{Operator: a, bound: math.Inf(1)}
	w.upper(ctx, make([]float64, 100), 1)
	if w.next != nil {
		t.Error("a product after the context was done")
	}
}

// A head of a length at which the mode is chosen and not forced, with logits of low
// rank and noise as real ones have, against the dense decomposition.
func TestCoarseByLengthAgainstDense(t *testing.T) {
	const T, d = 1024, 32
	p := gaussianPair(91, T, d, head.Causal)
	rng := rand.New(rand.NewPCG(92, 93))
	for _, m := range []linalg.Matrix{p.Q, p.K} {
		common := gaussian(rng, 3, d)
		for i := range T {
			for r := range common.Rows {
				linalg.Axpy(1+rng.NormFloat64()/2, common.Row(r), m.Row(i))
			}
		}
	}
	if a, err := New(background, p, nil); err != nil || linalg.Few32 && a.mode != CoarseRounded {
		t.Fatalf("not as real heads of this length: %v", err)
	}
	checkTopWith(t, p, nil)
}

// Every bound that products on the way give holds.
func TestWitness(t *testing.T) {
	for _, c := range append(hardCases(), pairCases()...) {
		a, err := New(background, c.p, nil)
		if err != nil {
			t.Fatal(err)
		}
		if tolerance(a.Stats()) > 1e-6 {
			continue
		}
		twin, _ := twinSoftmax(c.p)
		sigma := singular(t, dense(twin))[0]
		T := c.p.T()
		w := &witness{Operator: a, near: true, bound: math.Inf(1)}
		x, y, z := linalg.New(1, T), linalg.New(1, T), linalg.New(1, T)
		for i := range x.Data {
			x.Data[i] = 1 + float64(i%3)
		}
		w.MulPair(y, z, x, linalg.Matrix{})
		first := w.bound
		w.MulPair(y, z, x, y.Clone())
		for _, b := range []float64{first, w.bound} {
			if !(b >= sigma*(1-1e-12)) {
				t.Errorf("%s: bound %v below σ₁ = %v", c.name, b, sigma)
			}
		}
		if math.IsInf(first, 1) || w.bound > first {
			t.Errorf("%s: bounds %v, then %v", c.name, first, w.bound)
		}
	}
}
