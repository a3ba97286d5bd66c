package collapse

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
)

// plain returns tokens as one matrix in plain float64.
func plain(x tokens) linalg.Matrix {
	m, e := x.dense()
	scaleBy(m, e)
	return m
}

func maxAbs(m linalg.Matrix) float64 {
	top := 0.0
	for i := range m.Rows {
		for _, v := range m.Row(i) {
			top = max(top, math.Abs(v))
		}
	}
	return top
}

func maxDiff(a, b linalg.Matrix) float64 {
	d := 0.0
	for i := range a.Rows {
		for j, v := range a.Row(i) {
			d = max(d, math.Abs(v-b.At(i, j)))
		}
	}
	return d
}

func randomTokens(s *stream, n, d int, cExp, rExp int) tokens {
	x := newTokens(s.normals(n, d, 1), rExp)
	x.C = normalized(s.normals(1, d, 1), cExp)
	return x
}

// The split form of every operation is the plain one where plain float64 can follow.
func TestSplitOperationsArePlainOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, d := rapid.IntRange(2, 12).Draw(t, "T"), rapid.IntRange(2, 12).Draw(t, "d")
		s := newStream("split", rapid.Uint64().Draw(t, "seed"))
		x := randomTokens(s, n, d, rapid.IntRange(-3, 3).Draw(t, "c"), rapid.IntRange(-3, 3).Draw(t, "r"))
		m := plain(x)
		near := func(what string, got tokens, want linalg.Matrix) {
			if diff, tol := maxDiff(plain(got), want), 1e-11*max(maxAbs(want), 1e-3); !(diff <= tol) {
				t.Fatalf("%s: off by %g, allowed %g", what, diff, tol)
			}
			if total := maxAbs(mul(ones(1, n), got.R.M)); !(total <= 1e-12*float64(n)) {
				t.Fatalf("%s: rest has mean %g", what, total)
			}
		}
		normed, _ := layerNorm(m)
		near("LayerNorm", (&sim{D: d}).layerNorm(x), normed)
		a, b := normalized(s.normals(1, n, 2), 0), normalized(s.normals(n, n, math.Exp2(float64(rapid.IntRange(-30, 4).Draw(t, "size")))), 0)
		logit := linalg.New(n, n)
		for i := range n {
			for j := range n {
				logit.Set(i, j, math.Ldexp(a.M.Data[j], a.E)+math.Ldexp(b.M.At(i, j), b.E))
			}
		}
		for _, masked := range []bool{false, true} {
			want := maskedSoftmax(logit, masked)
			got := softmax(a, b)
			if masked {
				e, _ := causalExcess(a, b)
				got = causal(e, false)
			}
			if diff := maxDiff(got.dense(), want); !(diff <= 1e-14*float64(n)) {
				t.Fatalf("softmax, causal %v: off by %g", masked, diff)
			}
			near("A·X", got.apply(x), mul(want, m))
		}
		wantSink := linalg.New(n, n)
		for i := range n {
			total := 1.0
			for j := range n {
				total += math.Exp(logit.At(i, j))
			}
			for j := range n {
				wantSink.Set(i, j, math.Exp(logit.At(i, j))/total)
			}
		}
		sim := &sim{Config: Config{Fix: Softmax1}.filled(), T: n, D: d}
		near("softmax-1", sim.fromLogits(a, b, nil).apply(x), mul(wantSink, m))
	})
}

func ones(r, c int) linalg.Matrix {
	m := linalg.New(r, c)
	for i := range m.Data {
		m.Data[i] = 1
	}
	return m
}

func maskedSoftmax(logit linalg.Matrix, masked bool) linalg.Matrix {
	out := logit.Clone()
	for i := range out.Rows {
		row := out.Row(i)
		if masked {
			row = row[:i+1]
			clear(out.Row(i)[i+1:])
		}
		softmaxRow(row)
	}
	return out
}

// A whole network in split form is the plain twin, layer by layer.
func TestNetworkMatchesPlainTwin(t *testing.T) {
	for _, skip := range []Skip{NoSkip, PlainSkip, ScaledSkip} {
		for _, norm := range []Norm{NoNorm, PreNorm, PostNorm} {
			for _, fix := range []Fix{NoFix, Center, CenterCausal, Temperature} {
				c := Config{Attention: KeyQuery, Skip: skip, Norm: norm, Fix: fix, Init: Normal, ValueVar: "1/d"}.filled()
				if fix == CenterCausal {
					c.Mask = head.Causal
				}
				t.Run(c.Name(), func(t *testing.T) { compareTwin(t, c) })
			}
		}
	}
}

func compareTwin(t *testing.T, c Config) {
	const depth = 3
	size := Size{T: 7, Gamma: 1}
	s := newSim(c, size, "twin", 5)
	x := s.input()
	m := plain(x)
	twin := newNetwork(newSim(c, size, "twin weights", 5), depth)
	want, _ := twin.forward(m)
	replay := newSim(c, size, "twin weights", 5)
	for l := 1; l <= depth; l++ {
		x, _ = replay.layer(x, l)
	}
	if d, tol := maxDiff(plain(x), want), 1e-9*maxAbs(want); !(d <= tol) {
		t.Errorf("after %d layers off by %g, allowed %g", depth, d, tol)
	}
}

// The rest keeps its relative accuracy far below the common part: scaling R by 2^-k
// scales what a row-stochastic matrix makes of it, to the last digits.
func TestRestKeepsItsAccuracy(t *testing.T) {
	s := newStream("rest", 1)
	n, d := 9, 6
	a := softmax(normalized(s.normals(1, n, 1), 0), normalized(s.normals(n, n, 1e-3), 0))
	w := s.normals(d, d, 1)
	base := randomTokens(s, n, d, 0, -40)
	want := a.apply(base.mul(w))
	for _, k := range []int{60, 300, 5000} {
		small := base
		small.R.E -= k
		got := a.apply(small.mul(w))
		got.R.E += k
		if diff := maxDiff(plain(tokens{C: scaled{M: linalg.New(1, d)}, R: got.R}), plain(tokens{C: scaled{M: linalg.New(1, d)}, R: want.R})); !(diff <= 1e-14*math.Ldexp(maxAbs(want.R.M), want.R.E)) {
			t.Errorf("rest 2^-%d below: off by %g", k, diff)
		}
		v, err := singularValues(got)
		if err != nil {
			t.Fatal(err)
		}
		if v.Rest[0] == 0 {
			t.Errorf("rest 2^-%d below: second singular value is 0", k)
		}
	}
}

// Singular values from the parts are those of X, on both sides of the split.
func TestSingularValuesOfParts(t *testing.T) {
	s := newStream("singular", 2)
	for _, k := range []int{0, 5, 15, 19, 21, 24} {
		x := randomTokens(s, 8, 5, 0, -k)
		got, err := singularValues(x)
		if err != nil {
			t.Fatal(err)
		}
		want, err := linalg.SingularValues(plain(x))
		if err != nil {
			t.Fatal(err)
		}
		all := []float64{math.Ldexp(got.First, got.FirstExp)}
		for _, v := range got.Rest {
			all = append(all, math.Ldexp(v, got.RestExp))
		}
		for i, w := range want {
			// Relative to σ_2 as far as a plain SVD can tell: ε·σ₁ and the O(2^2·splitBelow) of the split.
			if tol := 1e-14*want[0] + 1e-11*w; !(math.Abs(all[i]-w) <= tol) {
				t.Errorf("2^-%d: σ_%d = %.17g, want %.17g", k, i+1, all[i], w)
			}
		}
	}
}

// Compression keeps the Gram matrix and the mean over channels.
func TestCompressedKeepsGram(t *testing.T) {
	s := newStream("compress", 3)
	x := randomTokens(s, 6, 40, 0, -2)
	r := x.compressed()
	if r.R.M.Cols != 7 {
		t.Fatalf("%d columns, want 7", r.R.M.Cols)
	}
	gram := func(x tokens) linalg.Matrix {
		m := plain(x)
		g := linalg.New(m.Rows, m.Rows)
		linalg.MulTB(g, m, m)
		return g
	}
	if d := maxDiff(gram(x), gram(r)); !(d <= 1e-12*maxAbs(gram(x))) {
		t.Errorf("Gram matrices differ by %g", d)
	}
	if d := maxDiff(plain(x).ColSlice(0, 1), plain(r).ColSlice(0, 1)); d != 0 {
		t.Errorf("first coordinates differ by %g", d)
	}
}

// Thin coordinates have the law of the plain ones: mean stable ranks agree within four
// standard errors, for every kind of layer.
func TestThinHasTheSameLaw(t *testing.T) {
	const seeds, depth = 60, 3
	size := Size{8, 0.2}
	for _, c := range []Config{{}, {Fix: Center}, {Attention: Identity}, {Attention: KeyQuery, Init: Normal}, {Attention: KeyQuery, Init: Normal, Fix: Center, Norm: PostNorm},
		{Fix: Center, Skip: PlainSkip}, {Fix: Center, Skip: ScaledSkip, Norm: PostNorm}, {Attention: KeyQuery, Init: Normal, Fix: Center, Skip: PlainSkip, Norm: PreNorm}, {Input: Correlated}, {Input: GaussianIn, Fix: Center}} {
		t.Run(c.Name(), func(t *testing.T) {
			var by [2][depth][]float64
			for i, light := range []bool{true, false} {
				for seed := range uint64(seeds) {
					all, err := Forward(background, c, size, depth, seed+1000*uint64(i), light)
					if err != nil {
						t.Fatal(err)
					}
					for l, v := range all {
						by[i][l] = append(by[i][l], math.Log(v["stable_rank"]))
					}
				}
			}
			for l := range depth {
				a, b := newStat(by[0][l]), newStat(by[1][l])
				if se := math.Sqrt((a.SD*a.SD + b.SD*b.SD) / seeds); !(math.Abs(a.Mean-b.Mean) <= 4*se+1e-12) {
					t.Errorf("layer %d: mean ln sr %g thin, %g plain, standard error %g", l+1, a.Mean, b.Mean, se)
				}
			}
		})
	}
}

func ExampleConfig_Name() {
	fmt.Println(Config{Attention: KeyQuery, Fix: Center, Skip: ScaledSkip, Norm: PostNorm}.Name())
	fmt.Println(Config{Attention: Gaussian, Sigma: 0.3, Mask: head.Causal, Fix: CenterCausal}.Name())
	// Output:
	// A(X)_perp + upscaled skip + LN
	// A(G)_perp_causal [causal, std 0.3]
}
