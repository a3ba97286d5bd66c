package specialize

import (
	"fmt"
	"math"
	"strings"

	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/linalg"
)

// Law is the distribution P_θ of the signal strengths, θ in R^F.
type Law struct {
	Kind          string      `json:"kind"`
	Variances     []float64   `json:"variances,omitempty"`     // v_f
	Mean          []float64   `json:"mean,omitempty"`          // added to θ; rademacher and gaussian only
	Probabilities []float64   `json:"probabilities,omitempty"` // of the points of the support
	Support       [][]float64 `json:"support,omitempty"`       // discrete only: θ of each point
}

// The kinds of law. √v_f is the strength of feature f.
const (
	Fixed      = "fixed"      // θ_f = √v_f
	Rademacher = "rademacher" // θ_f = mean_f ± √v_f, signs independent
	Gaussian   = "gaussian"   // θ_f = N(mean_f, v_f), independent
	OneHot     = "onehot"     // θ = √v_f e_f with probability π_f
	Discrete   = "discrete"   // θ = Support[i] with probability π_i
	Flipped    = "flipped"    // θ = s·(√v_1 … √v_F), one sign s = ±1 for all, s = 1 with probability π_1
)

// Kinds lists the laws in the order that help prints them.
var Kinds = []string{Fixed, Rademacher, Gaussian, OneHot, Discrete, Flipped}

const (
	probabilitySlack = 1e-9 // probabilities typed with a few digits, such as .3333, are refused; rounding is not
	maxSupport       = 4096
	maxVariance      = 1e6
)

// Check returns a *xerr.Usage where the parameters do not fit F features.
func (l *Law) Check(features int) error {
	if l.Kind == Discrete {
		return l.checkDiscrete(features)
	}
	if !known(l.Kind) {
		return &xerr.Usage{Flag: "--law", Found: l.Kind, Want: strings.Join(Kinds, ", ")}
	}
	if len(l.Support) > 0 {
		return &xerr.Usage{Flag: "--support", Found: "law " + l.Kind, Want: "--law discrete"}
	}
	if len(l.Variances) != features {
		return &xerr.Usage{Flag: "--variances", Found: count(len(l.Variances), "number"), Want: fmt.Sprintf("%d, one for each of --features", features)}
	}
	for _, v := range l.Variances {
		if !(v >= 0 && v <= maxVariance) {
			return &xerr.Usage{Flag: "--variances", Found: v, Want: "0 to 1e6"}
		}
	}
	if err := l.checkMean(features); err != nil {
		return err
	}
	switch l.Kind {
	case OneHot:
		return l.checkProbabilities(features, "features")
	case Flipped:
		return l.checkProbabilities(2, "signs, + and −")
	}
	if len(l.Probabilities) > 0 {
		return &xerr.Usage{Flag: "--probabilities", Found: "law " + l.Kind, Want: "onehot, discrete or flipped"}
	}
	return nil
}

func known(kind string) bool {
	for _, k := range Kinds {
		if k == kind {
			return true
		}
	}
	return false
}

func (l *Law) checkMean(features int) error {
	if len(l.Mean) == 0 {
		return nil
	}
	if l.Kind != Rademacher && l.Kind != Gaussian {
		return &xerr.Usage{Flag: "--mean", Found: "law " + l.Kind, Want: "rademacher or gaussian",
			Hint: "the other laws say all of θ: give its points with --law discrete --support"}
	}
	if len(l.Mean) != features {
		return &xerr.Usage{Flag: "--mean", Found: count(len(l.Mean), "number"), Want: fmt.Sprintf("%d, one for each of --features", features)}
	}
	for _, v := range l.Mean {
		if !(math.Abs(v) <= 1000) {
			return &xerr.Usage{Flag: "--mean", Found: v, Want: "-1000 to 1000"}
		}
	}
	return nil
}

func (l *Law) checkDiscrete(features int) error {
	if len(l.Variances) > 0 || len(l.Mean) > 0 {
		return &xerr.Usage{Flag: "--variances, --mean", Found: "law discrete", Want: "--support alone, which says all of θ"}
	}
	if len(l.Support) == 0 || len(l.Support) > maxSupport {
		return &xerr.Usage{Flag: "--support", Found: count(len(l.Support), "point"), Want: fmt.Sprintf("1 to %d, such as '3,0;0,2'", maxSupport)}
	}
	for _, p := range l.Support {
		if len(p) != features {
			return &xerr.Usage{Flag: "--support", Found: fmt.Sprintf("a point of %s", count(len(p), "number")), Want: fmt.Sprintf("%d, one for each of --features", features)}
		}
		for _, v := range p {
			if !(math.Abs(v) <= 1000) {
				return &xerr.Usage{Flag: "--support", Found: v, Want: "-1000 to 1000"}
			}
		}
	}
	return l.checkProbabilities(len(l.Support), "points of --support")
}

// checkProbabilities refuses a list that is not n probabilities; none means equal ones.
func (l *Law) checkProbabilities(n int, of string) error {
	if len(l.Probabilities) == 0 {
		return nil
	}
	if len(l.Probabilities) != n {
		return &xerr.Usage{Flag: "--probabilities", Found: count(len(l.Probabilities), "number"), Want: fmt.Sprintf("%d, one for each of the %s", n, of)}
	}
	sum := 0.0
	for _, p := range l.Probabilities {
		if !(p >= 0 && p <= 1) {
			return &xerr.Usage{Flag: "--probabilities", Found: p, Want: "0 to 1"}
		}
		sum += p
	}
	if math.Abs(sum-1) > probabilitySlack {
		return &xerr.Usage{Flag: "--probabilities", Found: fmt.Sprintf("a sum of %g", sum), Want: "1"}
	}
	return nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Features returns F.
func (l *Law) Features() int {
	if l.Kind == Discrete {
		return len(l.Support[0])
	}
	return len(l.Variances)
}

// Points returns support and probabilities of a law with finitely many points,
// and false for the Gaussian one, or where there would be too many.
func (l *Law) Points() (support [][]float64, probabilities []float64, finite bool) {
	F := l.Features()
	switch l.Kind {
	case Fixed:
		support = [][]float64{l.strengths()}
	case Discrete:
		support = l.Support
	case OneHot:
		for f, s := range l.strengths() {
			p := make([]float64, F)
			p[f] = s
			support = append(support, p)
		}
	case Flipped:
		minus := l.strengths()
		for f := range minus {
			minus[f] = -minus[f]
		}
		support = [][]float64{l.strengths(), minus}
	case Rademacher:
		if F > 12 {
			return nil, nil, false
		}
		support = l.signPoints()
	default:
		return nil, nil, false
	}
	probabilities = l.Probabilities
	if len(probabilities) == 0 {
		probabilities = make([]float64, len(support))
		for i := range probabilities {
			probabilities[i] = 1 / float64(len(support))
		}
	}
	return support, probabilities, true
}

func (l *Law) strengths() []float64 {
	s := make([]float64, len(l.Variances))
	for f, v := range l.Variances {
		s[f] = math.Sqrt(v)
	}
	return s
}

func (l *Law) mean(f int) float64 {
	if len(l.Mean) == 0 {
		return 0
	}
	return l.Mean[f]
}

func (l *Law) signPoints() [][]float64 {
	F := len(l.Variances)
	points := make([][]float64, 1<<F)
	for i := range points {
		points[i] = make([]float64, F)
		for f, s := range l.strengths() {
			if i>>f&1 == 1 {
				s = -s
			}
			points[i][f] = l.mean(f) + s
		}
	}
	return points
}

// Moments returns E[θ] and C = E[θθᵀ].
func (l *Law) Moments() (mean []float64, second linalg.Matrix) {
	F := l.Features()
	mean, second = make([]float64, F), linalg.New(F, F)
	if l.Kind == Gaussian || l.Kind == Rademacher {
		for f := range F {
			mean[f] = l.mean(f)
		}
		for f := range F {
			for g := range F {
				second.Set(f, g, mean[f]*mean[g])
			}
			second.Set(f, f, second.At(f, f)+l.Variances[f])
		}
		return mean, second
	}
	points, probabilities, _ := l.Points()
	for i, p := range points {
		for f := range F {
			mean[f] += probabilities[i] * p[f]
			for g := range F {
				second.Set(f, g, second.At(f, g)+probabilities[i]*p[f]*p[g])
			}
		}
	}
	return mean, second
}

// Variance returns Var θ_f of each feature.
func (l *Law) Variance() []float64 {
	mean, second := l.Moments()
	v := make([]float64, len(mean))
	for f := range v {
		v[f] = max(0, second.At(f, f)-mean[f]*mean[f])
	}
	return v
}

// Power returns E|θ|², the signal-to-noise ratio that a sweep scales.
func (l *Law) Power() float64 {
	_, second := l.Moments()
	sum := 0.0
	for f := range second.Rows {
		sum += second.At(f, f)
	}
	return sum
}

// Scaled returns the law of c·θ.
func (l *Law) Scaled(c float64) *Law {
	out := &Law{Kind: l.Kind, Probabilities: l.Probabilities}
	for _, v := range l.Variances {
		out.Variances = append(out.Variances, c*c*v)
	}
	for _, v := range l.Mean {
		out.Mean = append(out.Mean, c*v)
	}
	for _, p := range l.Support {
		q := make([]float64, len(p))
		for f := range p {
			q[f] = c * p[f]
		}
		out.Support = append(out.Support, q)
	}
	return out
}

// Symmetric reports whether θ and −θ have the same law.
func (l *Law) Symmetric() bool {
	switch l.Kind {
	case Gaussian, Rademacher:
		for f := range l.Variances {
			if l.mean(f) != 0 {
				return false
			}
		}
		return true
	}
	points, probabilities, _ := l.Points()
	for i, p := range points {
		mass, mirrored := 0.0, 0.0
		for j, q := range points {
			same, opposite := true, true
			for f := range p {
				same = same && p[f] == q[f]
				opposite = opposite && p[f] == -q[f]
			}
			if same {
				mass += probabilities[j]
			}
			if opposite {
				mirrored += probabilities[j]
			}
		}
		if math.Abs(mass-mirrored) > probabilitySlack || probabilities[i] < 0 {
			return false
		}
	}
	return true
}

// coordinates is how many uniform numbers one θ takes.
func (l *Law) coordinates() int {
	if l.Kind == Gaussian || l.Kind == Rademacher {
		return l.Features()
	}
	return 1
}

// drawer returns the function that fills θ from uniform numbers in (0, 1).
func (l *Law) drawer() func(theta, u []float64) {
	s := l.strengths()
	switch l.Kind {
	case Gaussian:
		return func(theta, u []float64) {
			for f := range theta {
				theta[f] = l.mean(f) + s[f]*normal(u[f])
			}
		}
	case Rademacher:
		return func(theta, u []float64) {
			for f := range theta {
				theta[f] = l.mean(f) + s[f]
				if u[f] >= 0.5 {
					theta[f] = l.mean(f) - s[f]
				}
			}
		}
	}
	points, probabilities, _ := l.Points()
	return func(theta, u []float64) {
		at, sum := len(points)-1, 0.0
		for i, p := range probabilities {
			if sum += p; u[0] < sum {
				at = i
				break
			}
		}
		copy(theta, points[at])
	}
}

// normal is the quantile function of the standard Gaussian.
func normal(u float64) float64 { return math.Sqrt2 * math.Erfinv(2*u-1) }

// String writes the law as reports do, such as "gaussian, v = 8, 3, mean 1, 0".
func (l *Law) String() string {
	s := l.Kind
	if len(l.Variances) > 0 {
		s += ", v = " + join(l.Variances)
	}
	if len(l.Mean) > 0 {
		s += ", mean " + join(l.Mean)
	}
	if len(l.Support) > 0 {
		var points []string
		for _, p := range l.Support {
			points = append(points, "("+join(p)+")")
		}
		s += ", θ in " + strings.Join(points, " ")
	}
	if len(l.Probabilities) > 0 {
		s += ", π = " + join(l.Probabilities)
	}
	return s
}

func join(list []float64) string {
	parts := make([]string, len(list))
	for i, v := range list {
		parts[i] = fmt.Sprintf("%.4g", v)
	}
	return strings.Join(parts, ", ")
}
