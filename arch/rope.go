package arch

import (
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// Rope is a rotary position embedding over all of head_dim: component pair j of
// a head turns by position · Frequency(j). Pairs are (j, j + dim/2), Hugging
// Face's order; rows that llama.cpp stores interleaved are put back on loading.
type Rope struct {
	Base   float64
	Dim    int
	Linear float64 // every frequency divided by it; 1: none
	Llama3 *Llama3 // nil: none
	Table  *Vector // [dim/2] divisors stored as a tensor (rope_freqs.weight); nil: none
}

// Llama3 is the frequency scaling of Llama 3.1: long waves are slowed by Factor,
// short ones kept, those between interpolated.
type Llama3 struct {
	Factor, LowFactor, HighFactor float64
	Original                      float64 // context before the extension
}

// Frequencies returns the angle per position of each component pair, in radians:
//
//	θ_j = base^(−2j/dim), divided by the scaling in force
//
// rounded to float32, as the reference computes and the model was trained with.
// Errors: of reading the table of divisors, or a divisor that is not above 0.
func (r *Rope) Frequencies() ([]float32, error) {
	divisors := make([]float32, r.Dim/2)
	for j := range divisors {
		divisors[j] = 1
	}
	if r.Table != nil {
		if err := r.Table.Load(divisors); err != nil {
			return nil, err
		}
	}
	freqs := make([]float32, r.Dim/2)
	for j, d := range divisors {
		if !(d > 0) {
			return nil, &xerr.Format{File: r.Table.where(), What: fmt.Sprintf("value %d", j), Found: d, Want: "a divisor above 0"}
		}
		f := math.Pow(r.Base, -float64(2*j)/float64(r.Dim)) / float64(d) / r.Linear
		if r.Llama3 != nil {
			f = r.Llama3.scale(f)
		}
		freqs[j] = float32(f)
	}
	return freqs, nil
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

func (r *Rope) scaling() string {
	switch {
	case r.Llama3 != nil:
		return fmt.Sprintf(", llama3 scaling by %g", r.Llama3.Factor)
	case r.Table != nil:
		return ", frequencies scaled by rope_freqs.weight"
	case r.Linear != 1:
		return fmt.Sprintf(", linear scaling by %g", r.Linear)
	}
	return ""
}

// ropeConfig reads the rotary settings of a config.json: rope_theta and
// rope_scaling at the top, or all of it in rope_parameters as transformers 5
// writes it.
func ropeConfig(s *settings, dim int, base float64, source string) *Rope {
	r := &Rope{Base: base, Dim: dim, Linear: 1}
	top := s.has("rope_theta")
	if top {
		r.Base = s.positive("rope_theta")
	}
	inSection := false
	for _, key := range []string{"rope_parameters", "rope_scaling"} {
		p := s.section(key)
		if p == nil {
			continue
		}
		if p.has("rope_theta") {
			inSection = true
			theta := p.positive("rope_theta")
			if top && theta != r.Base && p.err == nil {
				s.wrong(key, s.values[key], fmt.Sprintf("one base: rope_theta at the top is %g", r.Base))
			}
			r.Base = theta
		}
		ropeType(p, r)
		s.close(p)
	}
	if !top && !inSection {
		s.byDefault("rope_theta", base, source)
	}
	if dim%2 != 0 && s.err == nil {
		s.err = &xerr.Unsupported{File: s.file, What: "head dimension", Found: dim, Want: "an even number for RoPE"}
	}
	return r
}

// ropeType reads the kind of scaling and its parameters.
func ropeType(p *settings, r *Rope) {
	kind, key := "default", "rope_type"
	if p.has("type") { // its older name
		kind, key = p.word("type", "a RoPE type"), "type"
	}
	if p.has("rope_type") {
		newer := p.word("rope_type", "a RoPE type")
		if key == "type" && newer != kind {
			p.wrong("rope_type", newer, fmt.Sprintf("%q, as type says", kind))
		}
		kind, key = newer, "rope_type"
	}
	switch kind {
	case "default", "":
	case "linear":
		r.Linear = p.positive("factor")
	case "llama3":
		r.Llama3 = &Llama3{Factor: p.positive("factor"), LowFactor: p.positive("low_freq_factor"),
			HighFactor: p.positive("high_freq_factor"), Original: p.positive("original_max_position_embeddings")}
		if r.Llama3.HighFactor <= r.Llama3.LowFactor {
			p.wrong("high_freq_factor", r.Llama3.HighFactor, fmt.Sprintf("above low_freq_factor %g", r.Llama3.LowFactor))
		}
	default:
		if p.err != nil {
			return
		}
		p.refuse(key, "default, linear or llama3", "other RoPE types change the angles in ways that are not supported")
	}
}

// ropeMetadata reads the rotary settings of a GGUF.
func ropeMetadata(s *settings, dim int) *Rope {
	r := &Rope{Dim: dim, Linear: 1}
	r.Base = s.positiveOr("rope.freq_base", 10000, "llama.cpp default")
	if s.has("rope.dimension_count") {
		if n := s.count("rope.dimension_count", maxHeadDim); n != dim && s.err == nil {
			s.refuse("rope.dimension_count", fmt.Sprintf("%d, the head dimension", dim), "rotary embeddings over a part of the head are not supported in this family")
		}
	}
	factor := 1.0
	for _, key := range []string{"rope.scale_linear", "rope.scaling.factor"} { // the second is the newer name and wins
		if s.has(key) && !off(s.values[key]) {
			factor = s.positive(key)
		}
	}
	kind := "linear" // llama.cpp's default, with a factor of 1 where there is none
	if s.has("rope.scaling.type") {
		kind = s.word("rope.scaling.type", "a RoPE type")
	}
	switch {
	case s.err != nil || kind == "none":
	case kind == "linear":
		r.Linear = factor
	default:
		s.refuse("rope.scaling.type", `"none" or "linear"`, "this RoPE scaling is not supported")
	}
	for _, key := range []string{"rope.scaling.finetuned", "rope.scaling.original_context_length"} {
		s.asked[key] = true // tell how the model was made: no part of the angles of none and linear
	}
	if dim%2 != 0 && s.err == nil {
		s.err = &xerr.Unsupported{File: s.file, What: "head dimension", Found: dim, Want: "an even number for RoPE"}
	}
	return r
}
