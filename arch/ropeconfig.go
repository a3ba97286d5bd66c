package arch

import (
	"fmt"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// ropeSpec is what a family knows of its RoPE before the scaling is read.
type ropeSpec struct {
	head    int     // head dimension
	partial float64 // share of it that turns
	base    float64 // the reference's default
	key     string  // of the base at the top of config.json
	source  string  // of the default
	context int     // trained context, which some scalings start from

	original   int  // the reference's default of the context before the extension by LongRoPE; 0: none
	yarnIsLong bool // "yarn" means LongRoPE
}

// ropeConfig reads the rotary settings of a config.json: the base and
// rope_scaling at the top, or all of it in rope_parameters as transformers 5
// writes it.
func ropeConfig(s *settings, spec ropeSpec) *Rope {
	r := &Rope{Base: spec.base, Linear: 1, Attention: 1}
	top := s.has(spec.key)
	if top {
		r.Base = s.positive(spec.key)
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
				s.wrong(key, s.values[key], fmt.Sprintf("one base: %s at the top is %g", spec.key, r.Base))
			}
			r.Base = theta
		}
		if p.has("partial_rotary_factor") {
			spec.partial = p.positive("partial_rotary_factor")
		}
		r.Dim = int(float64(spec.head) * spec.partial)
		ropeType(s, p, r, spec)
		s.close(p)
	}
	if !top && !inSection {
		s.byDefault(spec.key, spec.base, spec.source)
	}
	r.Dim = int(float64(spec.head) * spec.partial)
	checkRopeDim(s, r.Dim, spec.head)
	return r
}

func checkRopeDim(s *settings, dim, head int) {
	if s.err == nil && (dim%2 != 0 || dim < 2 || dim > head) {
		s.err = &xerr.Unsupported{File: s.file, What: "rotated components of a head", Found: dim, Want: fmt.Sprintf("an even number up to the head dimension %d", head)}
	}
}

// ropeType reads the kind of scaling and its parameters.
func ropeType(s, p *settings, r *Rope, spec ropeSpec) {
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
	if p.err != nil {
		return
	}
	if kind == "yarn" && spec.yarnIsLong {
		kind = "longrope"
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
	case "dynamic":
		p.asked["original_max_position_embeddings"] = true // the reference starts from max_position_embeddings
		r.Dynamic = &Dynamic{Factor: p.positive("factor"), Original: float64(spec.context)}
	case "yarn":
		yarnConfig(p, r, spec)
	case "longrope", "su": // su is its older name
		longConfig(s, p, r, spec)
	default:
		p.refuse(key, "default, linear, dynamic, llama3, yarn or longrope", "other RoPE types change the angles in ways that are not supported")
	}
}

// yarnConfig reads YaRN's parameters.
func yarnConfig(p *settings, r *Rope, spec ropeSpec) {
	const source = "YaRN default of transformers"
	y := &Yarn{Factor: p.positive("factor"), BetaFast: p.positiveOr("beta_fast", 32, source), BetaSlow: p.positiveOr("beta_slow", 1, source),
		Original: p.positiveOr("original_max_position_embeddings", float64(spec.context), "max_position_embeddings"),
		Truncate: p.flagOr("truncate", true, source)}
	r.Yarn = y
	_, mscale := p.get("mscale")
	_, all := p.get("mscale_all_dim")
	switch {
	case p.has("attention_factor"):
		r.Attention = p.positive("attention_factor")
	case mscale && all:
		r.Attention = yarnAttention(y.Factor, p.positive("mscale")) / yarnAttention(y.Factor, p.positive("mscale_all_dim"))
	default:
		r.Attention = yarnAttention(y.Factor, 1)
	}
	if y.BetaFast <= y.BetaSlow {
		p.wrong("beta_fast", y.BetaFast, fmt.Sprintf("above beta_slow %g", y.BetaSlow))
	}
	if r.Base <= 1 {
		p.wrong("rope_theta", r.Base, "a base above 1 for YaRN")
	}
}

// longConfig reads LongRoPE's divisors. The original context stands outside the
// section, where the family has it.
func longConfig(s, p *settings, r *Rope, spec ropeSpec) {
	l := &Long{Original: spec.context, Short: p.divisors("short_factor", r.Dim/2), Far: p.divisors("long_factor", r.Dim/2)}
	factor := 1.0
	const key = "original_max_position_embeddings"
	switch {
	case s.has(key):
		l.Original = s.count(key, maxContext)
		p.repeats(key, float64(l.Original), key+" at the top")
	case p.has(key):
		l.Original = p.count(key, maxContext)
	case spec.original != 0:
		l.Original = spec.original
		p.byDefault(key, spec.original, spec.source)
	case p.has("factor"):
		factor = p.positive("factor")
	}
	if l.Original > 0 && l.Original != spec.context {
		p.asked["factor"] = true // the ratio of the contexts overrides it
		factor = float64(spec.context) / float64(l.Original)
	}
	r.Long = l
	if p.has("attention_factor") {
		r.Attention = p.positive("attention_factor")
	} else {
		r.Attention = longAttention(factor, float64(l.Original))
	}
	for _, key := range []string{"short_mscale", "long_mscale"} {
		if p.has(key) { // Phi-3.5-MoE
			p.refuse(key, "no such key", "a factor on long sequences other than attention_factor is not supported")
		}
	}
}

// divisors reads a list of n numbers above 0, which must be there.
func (s *settings) divisors(key string, n int) []float64 {
	if !s.has(key) {
		s.missing(key, fmt.Sprintf("a list of %d numbers", n))
	}
	values := s.numbers(key, n)
	for _, x := range values {
		if !(x > 0) {
			s.wrong(key, x, "numbers above 0")
			return nil
		}
	}
	return values
}

// ropeMetadata reads the rotary settings of a GGUF for heads of dim components.
func ropeMetadata(s *settings, dim int) *Rope {
	r := &Rope{Dim: dim, Linear: 1, Attention: 1}
	r.Base = s.positiveOr("rope.freq_base", 10000, "llama.cpp default")
	if s.has("rope.dimension_count") {
		r.Dim = s.count("rope.dimension_count", maxHeadDim)
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
	case kind == "yarn":
		yarnMetadata(s, r, factor)
	case kind == "longrope":
		r.Long = &Long{Original: s.count("rope.scaling.original_context_length", maxContext)}
		r.Attention = s.positiveOr("rope.scaling.attn_factor", 1, "llama.cpp default")
	default:
		s.refuse("rope.scaling.type", `"none", "linear", "yarn" or "longrope"`, "this RoPE scaling is not supported")
	}
	for _, key := range []string{"rope.scaling.finetuned", "rope.scaling.original_context_length"} {
		s.asked[key] = true // tell how the model was made: no part of the angles of none and linear
	}
	checkRopeDim(s, r.Dim, dim)
	return r
}

// yarnMetadata reads YaRN's parameters as llama.cpp stores them; it takes
// transformers' defaults for the others, and rounds the ramp.
func yarnMetadata(s *settings, r *Rope, factor float64) {
	const source = "llama.cpp default"
	r.Yarn = &Yarn{Factor: factor, BetaFast: s.positiveOr("rope.scaling.yarn_beta_fast", 32, source),
		BetaSlow: s.positiveOr("rope.scaling.yarn_beta_slow", 1, source),
		Original: s.positive("rope.scaling.original_context_length"), Truncate: true}
	r.Attention = yarnAttention(factor, 1) * s.positiveOr("rope.scaling.attn_factor", 1, source)
	if r.Base <= 1 {
		s.wrong("rope.freq_base", r.Base, "a base above 1 for YaRN")
	}
}
