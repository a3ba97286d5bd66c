package alert

import (
	"math"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

// Clip is the what-if of QK-Clip (Kimi K2, arXiv 2507.20534): which heads are above τ
// and by what factors their weights would shrink. Scores are bilinear in W_Q and W_K,
// so that factors a on W_Q and b on W_K scale every score of the head by a·b = γ.
type Clip struct {
	Tau   float64    `json:"tau"`
	Gamma float64    `json:"gamma"` // τ/max of this alert's head; 1 below τ
	Heads []ClipHead `json:"heads"` // the heads of its layer that change; for a shared W_K its whole group
	Above int        `json:"heads_above_tau"`
	Do    string     `json:"do"`
}

// ClipHead is one head of the what-if.
type ClipHead struct {
	Where  string  `json:"where"`
	KVHead int     `json:"kv_head"`
	Max    float64 `json:"max"`
	Gamma  float64 `json:"gamma"` // min(1, τ/max)
	WQ     float64 `json:"w_q"`   // factor on W_Q of the head
	WK     float64 `json:"w_k"`   // factor on W_K of its KV head, the same for its whole group
}

const (
	clipSeparate = "multiply W_Q and W_K of the head, and their biases, by √γ each"
	clipShared   = "W_K belongs to several query heads: multiply it by the √γ of the head that needs most, and W_Q of each head of the " +
		"group by γ/√γ of that head, which leaves the scores of heads below τ as they are; or multiply W_Q alone by γ"
	clipNorm = "queries and keys pass a norm, so that W_Q and W_K do not set the size of scores: multiply the gains of the two norms by √γ each"
)

// clipOf returns the what-if for the head of l: nil where it is below τ.
func clipOf(s *scope, l *monitor.Logit) *Clip {
	tau := s.t.MaxLogit.Warn
	if !(l.Max > tau) {
		return nil
	}
	c := &Clip{Tau: tau, Gamma: tau / l.Max, Do: clipSeparate}
	least := 1.0 // γ of the head of the group that needs most
	layer := layerOf(l.Where)
	var group []*monitor.Logit
	for i := range s.logits {
		o := &s.logits[i]
		if o.Max > tau {
			c.Above++
		}
		if o.KVHead == l.KVHead && layerOf(o.Where) == layer {
			group = append(group, o)
			least = min(least, gammaOf(o, tau))
		}
	}
	for _, o := range group {
		g := gammaOf(o, tau)
		c.Heads = append(c.Heads, ClipHead{Where: o.Where, KVHead: o.KVHead, Max: o.Max, Gamma: g, WQ: g / math.Sqrt(least), WK: math.Sqrt(least)})
	}
	switch {
	case s.qkNorm:
		c.Do = clipNorm
	case len(group) > 1:
		c.Do = clipShared
	}
	return c
}

func gammaOf(l *monitor.Logit, tau float64) float64 {
	if l.Max > tau {
		return tau / l.Max
	}
	return 1
}
