package specialize

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
)

var chiCase = [][]float64{{1, 0, -1}, {.5, -.5, 0}}

// TestPlainReference holds one sample of each activation to the numbers of the
// theory's deterministic case, given to six digits.
func TestPlainReference(t *testing.T) {
	for _, c := range []struct {
		a    Activation
		b    []float64
		w    []float64
		loss float64
		grad [][]float64
	}{
		{Softmax, []float64{0, 0}, []float64{.585861, .215526, .198613}, .257410, [][]float64{{-.139211, .102884, .036326}, {-.154758, .060389, .094369}}},
		{Softmax1, []float64{.1, -.2}, []float64{.912930, .335848, .297090}, .208637, [][]float64{{-.140339, .117844, .037639}, {-.122914, .069383, .097077}}},
		{Bayes, []float64{.1, -.2}, []float64{.606319, .223052, .170629}, .233851, [][]float64{{-.195661, .117851, .037419}, {-.087916, .052954, .075353}}},
	} {
		s := plain(NewModel(3, 2, 1, c.a), chiCase, c.b)
		near(t, string(c.a)+" loss", s.loss, c.loss, 1e-6)
		for l := range c.w {
			near(t, string(c.a)+" w", s.weights[l], c.w[l], 1e-6)
			for h := range c.grad {
				near(t, string(c.a)+" gradient", s.grad[h][l], c.grad[h][l], 1e-6)
			}
		}
	}
}

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol) {
		t.Errorf("%s: %.7g, want %.7g ± %g", what, got, want, tol)
	}
}

// variants are all models that differ in more than sizes.
func variants(tokens, heads, features int) []Model {
	var all []Model
	for _, a := range Activations {
		m := NewModel(tokens, heads, features, a)
		all = append(all, m)
		if a == Bayes {
			m.Bias = false
			all = append(all, m)
			continue
		}
		for _, agg := range []Aggregate{Mean, Sum} {
			for _, bias := range []bool{false, true} {
				v := m
				v.Aggregate, v.Bias = agg, bias && a != Softmax
				if v != m {
					all = append(all, v)
				}
			}
		}
	}
	return all
}

func laws(F int) []*Law {
	v, mean := []float64{8, 3, 1}[:F], []float64{.5, -1, 0}[:F]
	points := [][]float64{{3, 0, 1}, {0, -2, 0}, {1, 1, 1}}
	for i := range points {
		points[i] = points[i][:F]
	}
	return []*Law{
		{Kind: Fixed, Variances: v}, {Kind: Rademacher, Variances: v}, {Kind: Gaussian, Variances: v, Mean: mean},
		{Kind: OneHot, Variances: v}, {Kind: Discrete, Support: points, Probabilities: []float64{.5, .3, .2}},
		{Kind: Flipped, Variances: v, Probabilities: []float64{.7, .3}},
	}
}

func randomState(m Model, size float64, seed uint64) State {
	rng := rand.New(rand.NewPCG(seed, 1))
	st := NewState(m)
	for i := range st.K.Data {
		st.K.Data[i] = size * rng.NormFloat64()
	}
	for h := range st.B {
		if m.Bias {
			st.B[h] = size * rng.NormFloat64()
		}
	}
	return st
}

// TestGradientAgainstDifferences compares with central differences of the loss on
// the same samples: the truncation error is of order step², so 1e-7 here.
func TestGradientAgainstDifferences(t *testing.T) {
	const step = 1e-4
	for i, law := range laws(2) {
		for _, m := range variants(3, 3, 2) {
			s := NewSamples(law, 3, 3, 1024, 7)
			st := randomState(m, .6, uint64(i))
			e := s.Gradient(m, st)
			check := func(name string, x *float64, got float64) {
				old := *x
				*x = old + step
				up := s.Loss(m, st).Loss
				*x = old - step
				down := s.Loss(m, st).Loss
				*x = old
				near(t, law.Kind+" "+m.String()+" "+name, got, (up-down)/(2*step), 1e-7)
			}
			for j := range st.K.Data {
				check("K", &st.K.Data[j], e.K.Data[j])
			}
			if m.Activation == Softmax {
				continue
			}
			for h := range st.B {
				check("b", &st.B[h], e.B[h])
			}
		}
	}
}

// TestBlockedAgainstPlain compares the fast form with the plain one, also at
// scores so large that it takes the careful path.
func TestBlockedAgainstPlain(t *testing.T) {
	law := &Law{Kind: Gaussian, Variances: []float64{8, 3}}
	for _, size := range []float64{.1, 1, 60} {
		for _, m := range variants(4, 3, 2) {
			s := NewSamples(law, 4, 3, 1024, 3)
			st := randomState(m, size, 5)
			e := s.Noisy(m, st)
			loss, noise, k := plainSums(s, m, st)
			near(t, m.String()+" loss", e.Loss, loss, 1e-12)
			for i := range noise {
				near(t, m.String()+" noise", e.Noise.Data[i], noise[i], 1e-11)
			}
			for i := range k {
				near(t, m.String()+" gradient", e.K.Data[i], k[i], 1e-11)
			}
		}
	}
}

func plainSums(s *Samples, m Model, st State) (loss float64, noise, k []float64) {
	H := st.K.Rows
	noise, k = make([]float64, H*H), make([]float64, H*s.Columns)
	for _, b := range s.blocks {
		for i, weight := range b.weight {
			chi := make([][]float64, H)
			for h := range chi {
				chi[h] = make([]float64, s.Tokens)
				for l := range chi[h] {
					for p, v := range st.K.Row(h) {
						chi[h][l] += v * b.x.At(p, l*blockSize+i)
					}
				}
			}
			one := plain(m, chi, st.B)
			loss += weight * one.loss
			for h := range H {
				for l := range s.Tokens {
					for g := range H {
						noise[h*H+g] += weight * one.grad[h][l] * one.grad[g][l]
					}
					for p := range s.Columns {
						k[h*s.Columns+p] += weight * one.grad[h][l] * b.x.At(p, l*blockSize+i)
					}
				}
			}
		}
	}
	return loss, noise, k
}

// TestSameBitsOnAnyNumberOfCores runs one evaluation on 1 and 4 processors.
func TestSameBitsOnAnyNumberOfCores(t *testing.T) {
	law := &Law{Kind: Gaussian, Variances: []float64{8, 3}}
	m := NewModel(5, 4, 2, Bayes)
	st := randomState(m, 1, 9)
	run := func(procs int) *Eval {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		return NewSamples(law, 5, 4, 4096, 11).Noisy(m, st)
	}
	a, b := run(1), run(4)
	if a.Loss != b.Loss || a.Error != b.Error {
		t.Errorf("loss %v ± %v on one core, %v ± %v on four", a.Loss, a.Error, b.Loss, b.Error)
	}
	for i := range a.K.Data {
		if a.K.Data[i] != b.K.Data[i] {
			t.Fatalf("gradient %d differs", i)
		}
	}
}

// TestSamplesAreNormal checks mean and second moments of every direction, which
// quasi-Monte Carlo gets right far beyond 1/√N.
func TestSamplesAreNormal(t *testing.T) {
	law := &Law{Kind: Rademacher, Variances: []float64{4, 1}}
	s := NewSamples(law, 3, 2, 8192, 1)
	for p := range s.Columns {
		for l := range s.Tokens {
			mean, second := 0.0, 0.0
			for _, b := range s.blocks {
				for i, w := range b.weight {
					v := b.x.At(p, l*blockSize+i)
					mean += w * v
					second += w * v * v
				}
			}
			want := 1.0
			if l == 0 && p < 2 {
				want += law.Variances[p]
			}
			near(t, "mean", mean, 0, 2e-3)
			near(t, "second moment", second, want, 2e-2)
		}
	}
}

func TestPrimitivePolynomials(t *testing.T) {
	counts := map[int]int{}
	for _, p := range primitive(480) {
		d := 0
		for 2<<d <= p {
			d++
		}
		counts[d]++
	}
	for d, n := range map[int]int{1: 1, 2: 1, 3: 2, 4: 2, 5: 6, 6: 6, 7: 18, 8: 16, 9: 48, 10: 60} {
		if counts[d] != n {
			t.Errorf("degree %d: %d primitive polynomials, want %d", d, counts[d], n)
		}
	}
}

func BenchmarkGradient(b *testing.B) {
	law := &Law{Kind: Gaussian, Variances: []float64{8, 3}}
	for _, a := range Activations {
		b.Run(string(a), func(b *testing.B) {
			m := NewModel(5, 4, 2, a)
			s := NewSamples(law, 5, 4, 16384, 1)
			st := randomState(m, 1, 1)
			for b.Loop() {
				s.Gradient(m, st)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(s.N*20), "ns/elt")
		})
	}
}
