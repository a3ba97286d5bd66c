package specialize

import (
	"math"

	"github.com/eigenhead/eigenhead/linalg"
)

// leastNodes is the least Gauss–Hermite rule that counts as accurate: 12 nodes
// integrate polynomials up to degree 23 exactly. Chosen, not derived: the softmax
// of scores with standard deviation 3 is then good to a few 1e-4.
const leastNodes = 12

// gaussian and theta dimensions of the tensor rule.
func (s *Samples) tensorDims() int {
	dims := s.Tokens * s.Columns
	if s.Law.Kind == Gaussian {
		dims += s.Law.Features()
	}
	return dims
}

// tensorNodes returns the nodes in each direction of the largest tensor rule with
// at most 4n points, or 0 where that would be a poor one.
func (s *Samples) tensorNodes(n int) int {
	points := 1
	if s.Law.Kind != Gaussian {
		support, _, finite := s.Law.Points()
		if !finite {
			return 0
		}
		points = len(support)
	}
	nodes := int(math.Pow(4*float64(n)/float64(points), 1/float64(s.tensorDims())) + 1e-9)
	if nodes < leastNodes {
		return 0
	}
	return min(nodes, 48)
}

// tensor fills the samples with the product rule.
func (s *Samples) tensor(nodes int) {
	x, w := gaussHermite(nodes)
	dims, F := s.tensorDims(), s.Law.Features()
	support, probabilities, finite := s.Law.Points()
	if !finite {
		support, probabilities = [][]float64{make([]float64, F)}, []float64{1}
	}
	s.N = len(support) * power(nodes, dims)
	s.groups, s.quadratic = 1, true
	s.Method = "Gauss–Hermite quadrature, tensor rule"
	s.blocks = make([]block, (s.N+blockSize-1)/blockSize)
	s.perGroup = len(s.blocks)
	theta, g := make([]float64, F), make([]float64, dims)
	for i := range s.blocks {
		b := s.newBlock(i)
		for k := range blockSize {
			index := i*blockSize + k
			if index >= s.N {
				break
			}
			point := index % len(support)
			weight := probabilities[point]
			copy(theta, support[point])
			for rest, d := index/len(support), 0; d < dims; rest, d = rest/nodes, d+1 {
				g[d] = x[rest%nodes]
				weight *= w[rest%nodes]
			}
			s.gaussianTheta(theta, g)
			b.put(k, theta, g[:s.Tokens*s.Columns], s.Columns, weight)
		}
		b.finish()
	}
}

// gaussianTheta makes θ from the last directions where the law is Gaussian.
func (s *Samples) gaussianTheta(theta, g []float64) {
	if s.Law.Kind != Gaussian {
		return
	}
	for f, z := range g[s.Tokens*s.Columns:] {
		theta[f] = s.Law.mean(f) + math.Sqrt(s.Law.Variances[f])*z
	}
}

func power(base, exponent int) int {
	p := 1
	for range exponent {
		p *= base
	}
	return p
}

// gaussHermite returns nodes and weights for the standard Gaussian, by the
// eigenvalues of its Jacobi matrix (Golub and Welsch 1969).
func gaussHermite(n int) (x, w []float64) {
	j := linalg.New(n, n)
	for i := 1; i < n; i++ {
		j.Set(i-1, i, math.Sqrt(float64(i)))
		j.Set(i, i-1, math.Sqrt(float64(i)))
	}
	x, v, err := linalg.SymEigen(j)
	if err != nil {
		panic("specialize: Gauss–Hermite: " + err.Error()) // a fixed, finite matrix
	}
	w = make([]float64, n)
	for i := range w {
		w[i] = v.At(0, i) * v.At(0, i)
	}
	return x, w
}
