package eigenhead

import (
	"fmt"
	"slices"
	"strings"

	"github.com/eigenhead/eigenhead/capture"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/report"
)

// layerFacts is what the report says of one layer's attention.
type layerFacts struct {
	scale   float64
	mask    head.Mask
	softcap float64
}

func (s *source) facts(layer int) layerFacts {
	if s.capture != nil {
		scale, mask, softcap := s.capture.Meta.For(layer)
		return layerFacts{scale, mask, softcap}
	}
	b := s.model.Blocks[layer]
	return layerFacts{scale: b.Scale, mask: b.Mask, softcap: b.Softcap}
}

func (s *source) causal() bool {
	return !slices.ContainsFunc(s.layerNumbers(), func(l int) bool { return s.facts(l).mask.Kind == head.MaskNone })
}

// scale says how scores are scaled, layer by layer where they differ.
func (s *source) scale() string {
	return s.byLayer(func(f layerFacts) string {
		text := fmt.Sprintf("%.6g·qk", f.scale)
		if f.softcap > 0 {
			text += fmt.Sprintf(", softcap %g", f.softcap)
		}
		return text
	})
}

// mask says which keys a query sees, layer by layer where it differs.
func (s *source) mask() string {
	return s.byLayer(func(f layerFacts) string { return f.mask.String() })
}

// byLayer writes one text for all layers, or each text with its layers.
func (s *source) byLayer(text func(layerFacts) string) string {
	var order []string
	layers := map[string][]string{}
	for _, l := range s.layerNumbers() {
		t := text(s.facts(l))
		if layers[t] == nil {
			order = append(order, t)
		}
		layers[t] = append(layers[t], fmt.Sprint(l))
	}
	if len(order) == 1 {
		return order[0]
	}
	for i, t := range order {
		order[i] = t + " (layers " + strings.Join(layers[t], ",") + ")"
	}
	return strings.Join(order, "; ")
}

func describeCapture(c *capture.Capture) report.Model {
	m := report.Model{Name: c.Meta.Model, Family: "capture", QKNorm: c.Meta.QKNorm, Layers: len(c.Layers())}
	for _, l := range c.Layers() {
		d := c.Dims(l)
		m.Heads, m.KVHeads = max(m.Heads, d.Heads), max(m.KVHeads, d.KVHeads)
		m.HeadDim, m.Width = max(m.HeadDim, d.Dim), max(m.Width, d.DModel)
	}
	return m
}

// captureMeta is the metadata of a capture made of a model.
func (s *scan) captureMeta() capture.Meta {
	m := s.src.model
	first := s.src.facts(s.layers[0])
	meta := capture.Meta{Scale: first.scale, Mask: first.mask, Softcap: first.softcap, QKNorm: m.QKNorm,
		Tokens: s.window.ids, Model: s.src.name}
	for _, l := range s.layers[1:] {
		if f := s.src.facts(l); f != first {
			meta.Layers = append(meta.Layers, capture.Override{Layer: l, Scale: &f.scale, Mask: &f.mask, Softcap: &f.softcap})
		}
	}
	return meta
}
