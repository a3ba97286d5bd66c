package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/measure"
)

// sample makes a report of a model that does not exist: values of the size that
// a small trained model has, nulls beside them, roles that some heads play. The
// same arguments give the same report.
func sample(layers, heads, kvHeads, tokens int) *Report {
	s := &sampler{rng: rand.New(rand.NewPCG(1, 2)), tokens: tokens, heads: heads}
	nll, perplexity, bos := 2.832, math.Exp(2.832), 0
	r := &Report{
		Schema: Schema, Tool: Tool{Name: "eigenhead", Version: "0.0.0", Kernel: "generic"},
		Source: Source{Path: "sample.gguf", Format: "gguf", DType: "Q4_1 (210), F32 (61), Q8_0 (1)", SHA256: strings.Repeat("0123456789abcdef", 4), SHA256Of: "headers"},
		Model: Model{Name: "Sample", Family: "llama", Layers: layers, Heads: heads, KVHeads: kvHeads, HeadDim: 64, Width: 576, Vocab: 49152,
			Parameters: 134515008, Context: 8192, Position: "rope", RopeBase: 100000, Norm: "rmsnorm",
			Defaults: []string{"rope_theta 10000 (the default of transformers' LlamaConfig)"}},
		Input: Input{Text: "wikitext2-test.txt", TextSHA256: strings.Repeat("fedcba9876543210", 4), Tokens: tokens, Available: 312144, Context: tokens,
			BOS: &bos, BOSSource: "tokenizer.ggml.add_bos_token", NLL: &nll, Perplexity: &perplexity, Protocol: "mean over tokens 2..T of one window"},
		Conventions: Conventions{Energy: "full", Scale: "1/√64", Mask: "causal", MaxLogit: "scaled, visible, signed",
			Precision: "forward float32, spectra float64", Null: "i.i.d. Gaussian queries and keys of the same T, d, mask and logit spread"},
		Warnings: []string{},
	}
	table := &measure.Table{}
	for l := range layers {
		table.Layers = append(table.Layers, measure.LayerResult{Layer: l, Measures: s.layer(l)})
		for k := range kvHeads {
			table.KVHeads = append(table.KVHeads, measure.KVResult{Layer: l, KVHead: k, Measures: s.kv()})
		}
		for h := range heads {
			table.Heads = append(table.Heads, s.head(head.ID{Layer: l, Head: h}, h*kvHeads/heads))
		}
	}
	table.Omitted = []measure.Omission{{Measure: "attention.null_mass", Where: "all", Reason: "the model has no learned sinks"}}
	r.Heads, r.KVHeads, r.Layers, r.Omitted = table.Heads, table.KVHeads, table.Layers, table.Omitted
	r.Findings = finding.Run(&finding.Input{Table: table, Model: finding.Model{Causal: true, Tokens: tokens}})
	return r
}

type sampler struct {
	rng    *rand.Rand
	tokens int
	heads  int
}

func (s *sampler) normal(mean, sd float64) float64 { return mean + sd*s.rng.NormFloat64() }

// mass draws a share of attention: mostly small, sometimes near 1.
func (s *sampler) mass(power float64) float64 { return math.Pow(s.rng.Float64(), power) }

func against(value, mean, sd float64) measure.Value {
	v := measure.Value{Value: value, Null: &measure.Null{Mean: mean, SD: sd, Kind: "table"}}
	if sd > 0 {
		z := (value - mean) / sd
		v.Z = &z
	}
	return v
}

func alone(value float64) measure.Value { return measure.Value{Value: value} }

func (s *sampler) head(id head.ID, kv int) measure.HeadResult {
	T := float64(s.tokens)
	uniform := (math.Log(T) - 0.42) / (T - 1)
	sink := s.mass(1.2)
	left := 1 - sink
	bound := 1e-9
	k90 := math.Round(s.normal(12, 4))
	m := map[string]measure.Value{
		"energy.rank": alone(64), "energy.k90": against(max(k90, 3), 47, 0.3), "energy.k95": against(max(k90, 3)+6, 54, 0.3),
		"energy.k99": against(max(k90, 3)+20, 61, 0.2), "energy.top20": against(0.9+0.09*s.rng.Float64(), 0.515, 0.004),
		"energy.stable_rank": against(2+3*s.rng.Float64(), 29, 0.6), "energy.effective_rank": against(30+10*s.rng.Float64(), 57, 0.2),
		"energy.sigma1": alone(s.normal(300, 40)), "energy.frobenius": alone(s.normal(600, 60)),
		"channel.key_ipr": against(3+60*s.mass(4), 2.99, 0.1), "channel.query_ipr": against(3+5*s.mass(2), 2.99, 0.1), "channel.key_ipr_max": against(4+300*s.mass(4), 3.6, 0.3),
		"attention.logit_std": alone(1 + 3*s.mass(3)), "attention.max_logit": alone(5 + 60*s.mass(3)),
		"attention.entropy": against(left*0.7+0.02, 0.91, 0.004), "attention.entropy_p05": against(left*0.4, 0.88, 0.006),
		"attention.sink": against(sink, uniform, 0.002), "attention.sink_max": against(sink, uniform*1.4, 0.003),
		"attention.diagonal": against(left*s.mass(4), uniform, 0.002), "attention.previous": against(left*s.mass(8), uniform, 0.002),
		"attention.induction": against(left*s.mass(10), 0.012, 0.001), "attention.distance": against(T/4+T/5*(sink-0.5), (T-1)/4, 0.9),
		"attention.sigma1": {Value: 2 + 20*sink, Bound: &bound, BoundKind: "Collatz-Wielandt"}, "attention.sigma2": {Value: 1.1 + s.rng.Float64(), Bound: &bound, BoundKind: "Kahan"},
		"overlap.max": against(0.96*s.rng.Float64(), 0, 1/T), "output.share": alone(0.005 + 0.7*s.mass(1.5)), "output.part": alone(s.normal(0.11, 0.1)),
	}
	r := measure.HeadResult{ID: id, KVHead: kv, Measures: m, Profile: s.profile(sink)}
	for c := range 64 {
		r.Spectrum = append(r.Spectrum, 300*math.Exp(-float64(c)/(k90+4)))
	}
	if s.heads > 1 {
		r.Overlap = &measure.Overlap{Head: (id.Head + 1) % s.heads, Cosine: -m["overlap.max"].Value}
	}
	return r
}

func (s *sampler) profile(sink float64) *measure.Profile {
	bins := min(s.tokens, measure.ProfileBins)
	p := &measure.Profile{}
	for b := range bins {
		p.Start = append(p.Start, b*s.tokens/bins)
		p.Entropy = append(p.Entropy, (1-sink)*0.8*(1-math.Exp(-float64(b+1)/20)))
		p.Sink = append(p.Sink, min(1, sink+0.1*s.rng.Float64()))
		p.MaxLogit = append(p.MaxLogit, s.normal(8, 2))
	}
	for c := range 64 {
		p.NullSigma = append(p.NullSigma, 90-float64(c))
	}
	share := 0.5
	for range min(4, bins) {
		p.Channels = append(p.Channels, measure.Channel{Sigma: 600 * math.Sqrt(share), Share: share, Query: s.weights(bins), Key: s.weights(bins)})
		share /= 2
	}
	return p
}

func (s *sampler) weights(n int) []float64 {
	w, sum := make([]float64, n), 0.0
	for i := range w {
		w[i] = math.Pow(s.rng.NormFloat64(), 4)
		sum += w[i]
	}
	for i := range w {
		w[i] /= sum
	}
	return w
}

func (s *sampler) kv() map[string]measure.Value {
	mu := s.normal(1.64, 0.2) + 3*s.mass(8)
	return map[string]measure.Value{"key.incoherence": against(mu, 1.63, 0.09), "key.incoherence_centered": against(mu*1.1, 1.63, 0.09),
		"key.condition": against(s.normal(30, 5), 2.1, 0.05), "key.leverage_max": against(0.3+0.7*s.mass(2), 0.2, 0.02), "key.norm_min_median": against(0.4, 0.7, 0.03)}
}

func (s *sampler) layer(l int) map[string]measure.Value {
	return map[string]measure.Value{"residual.stable_rank": alone(1 + 5*s.rng.Float64()), "residual.gram_stable_rank": alone(1.01),
		"residual.effective_rank": alone(100 + 5*float64(l)), "residual.cosine": alone(0.2 + 0.3*s.rng.Float64()),
		"residual.token_residual": alone(0.9), "residual.massive": alone(math.Pow(10, 1+3*s.rng.Float64()))}
}

// shapes are the reports that every writer must be good at; tests do not change them.
var shapes = sync.OnceValue(func() map[string]*Report {
	list := map[string]*Report{}
	for _, s := range [][4]int{{3, 3, 3, 11}, {30, 9, 3, 512}, {48, 64, 8, 4096}} {
		list[fmt.Sprintf("%dx%d", s[0], s[1])] = sample(s[0], s[1], s[2], s[3])
	}
	return list
})

// ill is a report with findings of every severity, one of them without a measure.
func ill() *Report {
	r := sample(4, 4, 2, 128)
	r.Heads[5].Measures["attention.max_logit"] = alone(140)
	r.Heads[6].Measures["attention.max_logit"] = alone(2200)
	r.Layers[3].Measures["residual.token_residual"] = alone(0.02)
	r.Layers[3].Measures["residual.cosine"] = alone(0.99)
	r.Warnings = []string{"context 9000 is beyond the trained length 8192: positions there were never trained"}
	r.Findings = finding.Run(&finding.Input{
		Table: &measure.Table{Heads: r.Heads, KVHeads: r.KVHeads, Layers: r.Layers,
			NonFinite: []measure.NonFinite{{Where: "L2H1", Tensor: "q", Token: 17, Column: 3, Value: "NaN"}}},
		Model: finding.Model{Causal: true, Tokens: 128}})
	return r
}
