package collapse

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Fit is a power law through one quantity over T, with what theory says of it.
type Fit struct {
	Experiment    string     `json:"experiment"`
	Configuration string     `json:"configuration"`
	Gamma         float64    `json:"gamma"`
	Layer         int        `json:"layer"`
	Depth         int        `json:"depth,omitempty"` // of the network whose gradient it is
	Quantity      string     `json:"quantity"`
	Sizes         []int      `json:"sizes"`
	Seeds         int        `json:"seeds"`
	Exponent      float64    `json:"exponent"` // of T, by least squares on log₁₀
	Interval      [2]float64 `json:"interval"` // 95 %, bootstrap over seeds
	Last          float64    `json:"last"`     // exponent between the two largest T
	Intercept     float64    `json:"intercept"`
	Theory        *float64   `json:"theory,omitempty"`
	Published     *float64   `json:"published,omitempty"` // where the literature says otherwise
	Constant      *float64   `json:"constant,omitempty"`  // measured over theory at the largest T
	Verdict       string     `json:"verdict"`
}

// resamples of the bootstrap; the 2.5 % quantile of so many is stable to a few percent
// of the interval's width.
const resamples = 1000

// fitPower fits y ~ T^e to log₁₀ y by seed: logs[i] holds the seeds' values at sizes[i].
// The interval comes from drawing seeds anew at every T, with a fixed seed of its own.
func fitPower(sizes []int, logs [][]float64) Fit {
	x := make([]float64, len(sizes))
	y := make([]float64, len(sizes))
	seeds := math.MaxInt
	for i, t := range sizes {
		x[i], y[i] = math.Log10(float64(t)), newStat(logs[i]).Mean
		seeds = min(seeds, len(logs[i]))
	}
	f := Fit{Sizes: sizes, Seeds: seeds}
	f.Exponent, f.Intercept = line(x, y)
	n := len(x)
	f.Last = (y[n-1] - y[n-2]) / (x[n-1] - x[n-2])
	g := rand.New(rand.NewPCG(1, uint64(n)))
	slopes := make([]float64, resamples)
	for r := range slopes {
		drawn := make([]float64, n)
		for i, l := range logs {
			for range l {
				drawn[i] += l[g.IntN(len(l))] / float64(len(l))
			}
		}
		slopes[r], _ = line(x, drawn)
	}
	slices.Sort(slopes)
	f.Interval = [2]float64{slopes[resamples*25/1000], slopes[resamples*975/1000]}
	return f
}

// line returns slope and intercept of the least-squares line.
func line(x, y []float64) (slope, intercept float64) {
	mx, my := newStat(x).Mean, newStat(y).Mean
	var xy, xx float64
	for i := range x {
		xy += (x[i] - mx) * (y[i] - my)
		xx += (x[i] - mx) * (x[i] - mx)
	}
	slope = xy / xx
	return slope, my - slope*mx
}

// judge compares the fit with theory in a plain sentence.
func (f *Fit) judge() {
	measured := fmt.Sprintf("exponent %.3g [%.3g, %.3g] over T = %d to %d", f.Exponent, f.Interval[0], f.Interval[1], f.Sizes[0], f.Sizes[len(f.Sizes)-1])
	if f.Theory == nil {
		f.Verdict = measured
		return
	}
	f.Verdict = measured + "; theory " + f.against(*f.Theory)
	if f.Published != nil {
		f.Verdict += "; published " + f.against(*f.Published)
	}
}

// closeExponent is how far, relative to an exponent above 1, a fit may be off to be
// called close: chosen, not derived; terms of relative order 1/T bend the fit by that
// much over the sizes here.
const closeExponent = 0.05

// against says how far the fit is from an exponent. Laws hold for large T: where the
// fit is off but the last pair of sizes comes closer, it says so.
func (f *Fit) against(want float64) string {
	if want >= f.Interval[0] && want <= f.Interval[1] {
		return fmt.Sprintf("%.3g: agrees", want)
	}
	word := "differs by"
	if math.Abs(f.Exponent-want) <= closeExponent*max(1, math.Abs(want)) {
		word = "close, off by"
	}
	s := fmt.Sprintf("%.3g: %s %+.2g", want, word, f.Exponent-want)
	if math.Abs(f.Last-want) < 0.8*math.Abs(f.Exponent-want) {
		s += fmt.Sprintf(", %+.2g between the last two sizes", f.Last-want)
	}
	return s
}
