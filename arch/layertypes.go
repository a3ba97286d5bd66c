package arch

import (
	"fmt"

	"github.com/eigenhead/eigenhead/head"
)

// layerTypes reads which layers see a window of keys only: those that layer_types
// names or, without it, those of the family's pattern.
func (s *settings) layerTypes(m *Model, pattern func(l int) bool) []bool {
	words := s.words("layer_types")
	if s.err != nil {
		return nil
	}
	if words != nil && len(words) != m.Layers {
		s.wrong("layer_types", s.values["layer_types"], fmt.Sprintf("one kind for each of %d layers", m.Layers))
		return nil
	}
	sliding := make([]bool, m.Layers)
	for l := range sliding {
		sliding[l] = pattern(l)
		if words == nil {
			continue
		}
		sliding[l] = words[l] == "sliding_attention"
		if !sliding[l] && words[l] != "full_attention" {
			s.refuse("layer_types", `"full_attention" or "sliding_attention"`, "")
		}
	}
	if words == nil {
		s.byDefault("layer_types", "the family's pattern", "transformers")
	}
	return sliding
}

// masksOf gives a window to the layers that slide.
func masksOf(sliding []bool, window int) []head.Mask {
	masks := make([]head.Mask, len(sliding))
	for l := range masks {
		masks[l] = head.Causal
		if sliding[l] {
			masks[l] = head.Mask{Kind: head.MaskWindow, Window: window}
		}
	}
	return masks
}

// ropesOf gives the layers that slide a RoPE of their own.
func ropesOf(sliding []bool, full, local *Rope) []*Rope {
	ropes := make([]*Rope, len(sliding))
	for l := range ropes {
		ropes[l] = full
		if sliding[l] {
			ropes[l] = local
		}
	}
	return ropes
}
