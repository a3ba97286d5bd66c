package collapse

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"

	"github.com/eigenhead/eigenhead/internal/par"
	"github.com/eigenhead/eigenhead/linalg"
)

// stream hands out the random matrices of one simulation. Each matrix, and in it
// each block of rows, has a generator of its own, keyed by the simulation's name,
// the seed and a running number: what is drawn depends on neither the order of
// simulations nor the number of cores.
type stream struct {
	key  uint64
	next uint64
}

func newStream(name string, seed uint64) *stream {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, seed))
	return &stream{key: h.Sum64()}
}

// rowsPerBlock rows share a generator.
const rowsPerBlock = 64

// parallelFrom elements on, blocks are filled in parallel; below, simulations
// themselves are what runs in parallel.
const parallelFrom = 1 << 20

// fill calls f for each block of rows of a new matrix with the block's generator.
func (s *stream) fill(rows, cols int, f func(row []float64, g *rand.Rand)) linalg.Matrix {
	m := linalg.New(rows, cols)
	number := s.next
	s.next++
	block := func(b int) {
		g := rand.New(rand.NewPCG(s.key, number<<24+uint64(b)))
		for i := b * rowsPerBlock; i < min((b+1)*rowsPerBlock, rows); i++ {
			f(m.Row(i), g)
		}
	}
	blockwise((rows+rowsPerBlock-1)/rowsPerBlock, rows*cols, block)
	return m
}

// blockwise calls f for each block, in parallel where there is enough to do.
func blockwise(blocks, elements int, f func(b int)) {
	if elements >= parallelFrom {
		par.Do(blocks, f)
		return
	}
	for b := range blocks {
		f(b)
	}
}

// eachRow calls f for the rows of an [n, cols] matrix, which must be independent.
func eachRow(n, cols int, f func(i int)) {
	blockwise((n+rowsPerBlock-1)/rowsPerBlock, n*cols, func(b int) {
		for i := b * rowsPerBlock; i < min((b+1)*rowsPerBlock, n); i++ {
			f(i)
		}
	})
}

// normals returns a matrix of independent N(0, sd²).
func (s *stream) normals(rows, cols int, sd float64) linalg.Matrix {
	return s.fill(rows, cols, func(row []float64, g *rand.Rand) {
		for j := range row {
			row[j] = sd * g.NormFloat64()
		}
	})
}

// wideLog is the standard deviation of ln w above which e^x − 1 rounds to 1e-14 of it
// and a row at a time is faster than Expm1.
const wideLog = 0.1

// excesses returns independent w − 1 for weights w of mean 1, without the rounding
// of the subtraction where σ is small.
func (s *stream) excesses(rows, cols int, law Law, sigma float64) linalg.Matrix {
	logStd := math.Sqrt(math.Log1p(sigma * sigma))
	if law == LogNormal && logStd > wideLog {
		return s.fill(rows, cols, func(row []float64, g *rand.Rand) {
			for j := range row {
				row[j] = logStd * g.NormFloat64()
			}
			linalg.Exp(row, row, logStd*logStd/2)
			for j := range row {
				row[j]--
			}
		})
	}
	return s.fill(rows, cols, func(row []float64, g *rand.Rand) {
		for j := range row {
			switch law {
			case LogNormal:
				row[j] = math.Expm1(logStd*g.NormFloat64() - logStd*logStd/2)
			case Gamma:
				row[j] = gammaVariate(g, 1/(sigma*sigma))*sigma*sigma - 1
			case Uniform:
				row[j] = sigma * math.Sqrt(3) * (2*g.Float64() - 1)
			case TwoPoint:
				row[j] = sigma * float64(2*g.IntN(2)-1)
			}
		}
	})
}

// gammaVariate draws from the Gamma law of the given shape and scale 1 (Marsaglia
// and Tsang 2000).
func gammaVariate(g *rand.Rand, shape float64) float64 {
	if shape < 1 {
		return gammaVariate(g, shape+1) * math.Pow(1-g.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := g.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v *= v * v
		if math.Log(1-g.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}
