package arch

import (
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// Rope is a rotary position embedding over the first Dim components of a head:
// component pair j turns by position · frequency j. Pairs are (j, j + Dim/2),
// Hugging Face's order, or (2j, 2j+1) if Interleaved; rows that llama.cpp stores
// interleaved are put back on loading.
type Rope struct {
	Base        float64
	Dim         int
	Interleaved bool
	Linear      float64 // every frequency divided by it; 1: none
	Attention   float64 // factor on the turned components of q and of k; 1: none
	Llama3      *Llama3 // nil: none
	Yarn        *Yarn
	Dynamic     *Dynamic
	Long        *Long
	Table       *Vector // [Dim/2] divisors stored as a tensor (rope_freqs.weight); nil: none
}

// Llama3 is the frequency scaling of Llama 3.1: long waves are slowed by Factor,
// short ones kept, those between interpolated.
type Llama3 struct {
	Factor, LowFactor, HighFactor float64
	Original                      float64 // context before the extension
}

// Yarn interpolates the frequencies that turn less than BetaSlow times in the
// original context, keeps those that turn more than BetaFast times, and ramps
// between; Truncate rounds the ends of the ramp outward to whole components.
type Yarn struct {
	Factor, BetaFast, BetaSlow, Original float64
	Truncate                             bool
}

// Dynamic raises the base with the length of the sequence, beyond Original.
type Dynamic struct{ Factor, Original float64 }

// Long has a divisor for each frequency, one set for sequences up to Original
// tokens and one for longer ones. The sets are in the configuration or, in GGUF,
// in tensors.
type Long struct {
	Original              int
	Short, Far            []float64
	ShortTable, LongTable *Vector
}

// Frequencies returns the angle per position of each component pair, in radians,
// in a sequence of T tokens:
//
//	θ_j = base^(−2j/dim), divided by the scaling in force
//
// rounded to float32, as the reference computes and the model was trained with.
// Errors: of reading the table of divisors, or a divisor that is not above 0.
func (r *Rope) Frequencies(T int) ([]float32, error) {
	divisors, err := r.divisors(T)
	if err != nil {
		return nil, err
	}
	base, n := r.Base, float64(r.Dim)
	if d := r.Dynamic; d != nil {
		length := max(float64(T), d.Original)
		base *= math.Pow(d.Factor*length/d.Original-(d.Factor-1), n/(n-2))
	}
	freqs := make([]float32, r.Dim/2)
	for j, divisor := range divisors {
		f := math.Pow(base, -float64(2*j)/n) / divisor / r.Linear
		if r.Llama3 != nil {
			f = r.Llama3.scale(f)
		}
		if r.Yarn != nil {
			f = r.Yarn.scale(f, j, r)
		}
		freqs[j] = float32(f)
	}
	return freqs, nil
}

// divisors returns what divides each frequency at length T.
func (r *Rope) divisors(T int) ([]float64, error) {
	table := r.Table
	if l := r.Long; l != nil {
		set := l.Short
		table = l.ShortTable
		if T > l.Original {
			set, table = l.Far, l.LongTable
		}
		if set != nil {
			return set, nil
		}
	}
	divisors := make([]float64, r.Dim/2)
	if table == nil {
		for j := range divisors {
			divisors[j] = 1
		}
		return divisors, nil
	}
	stored := make([]float32, r.Dim/2)
	if err := table.Load(stored); err != nil {
		return nil, err
	}
	for j, d := range stored {
		if !(d > 0) {
			return nil, &xerr.Format{File: table.where(), What: fmt.Sprintf("value %d", j), Found: d, Want: "a divisor above 0"}
		}
		divisors[j] = float64(d)
	}
	return divisors, nil
}

// scale slows one frequency. Source: transformers, modeling_rope_utils.py,
// _compute_llama3_parameters.
func (l *Llama3) scale(f float64) float64 {
	turns := l.Original * f / (2 * math.Pi) // in the original context
	switch {
	case turns < l.LowFactor:
		return f / l.Factor
	case turns > l.HighFactor:
		return f
	}
	smooth := (turns - l.LowFactor) / (l.HighFactor - l.LowFactor)
	return (1-smooth)*f/l.Factor + smooth*f
}

// scale slows frequency j. Source: transformers, modeling_rope_utils.py,
// _compute_yarn_parameters.
func (y *Yarn) scale(f float64, j int, r *Rope) float64 {
	component := func(turns float64) float64 { // whose wave turns so often in the original context
		return float64(r.Dim) * math.Log(y.Original/(turns*2*math.Pi)) / (2 * math.Log(r.Base))
	}
	low, high := component(y.BetaFast), component(y.BetaSlow)
	if y.Truncate {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = max(low, 0), min(high, float64(r.Dim-1))
	if low == high {
		high += 0.001 // as the reference avoids a division by 0
	}
	slowed := min(1, max(0, (float64(j)-low)/(high-low)))
	return f/y.Factor*slowed + f*(1-slowed)
}

// yarnAttention is the factor that YaRN takes for an extension where the
// configuration gives none.
func yarnAttention(factor, mscale float64) float64 {
	if factor <= 1 {
		return 1
	}
	return 0.1*mscale*math.Log(factor) + 1
}

// longAttention is the factor of LongRoPE.
func longAttention(factor, original float64) float64 {
	if factor <= 1 {
		return 1
	}
	return math.Sqrt(1 + math.Log(factor)/math.Log(original))
}

func (r *Rope) scaling() string {
	text := ""
	switch {
	case r.Llama3 != nil:
		text = fmt.Sprintf(", llama3 scaling by %g", r.Llama3.Factor)
	case r.Yarn != nil:
		text = fmt.Sprintf(", yarn scaling by %g", r.Yarn.Factor)
	case r.Dynamic != nil:
		text = fmt.Sprintf(", dynamic scaling by %g", r.Dynamic.Factor)
	case r.Long != nil:
		text = fmt.Sprintf(", longrope beyond %d", r.Long.Original)
	case r.Table != nil:
		text = ", frequencies scaled by rope_freqs.weight"
	case r.Linear != 1:
		text = fmt.Sprintf(", linear scaling by %g", r.Linear)
	}
	return text
}
