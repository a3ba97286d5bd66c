package head

import (
	"fmt"
	"strconv"
	"strings"
)

// MaskKind says which keys a query sees.
type MaskKind int

// The kinds of mask. No other kind is guessed at.
const (
	MaskNone   MaskKind = iota // every key
	MaskCausal                 // keys 0..i
	MaskWindow                 // the last Window keys, self included
)

// Mask is the visibility of keys. The zero value sees everything.
type Mask struct {
	Kind   MaskKind
	Window int // for MaskWindow: at least 1
}

// Causal is the mask of a decoder.
var Causal = Mask{Kind: MaskCausal}

// Visible returns the half-open range of keys that query i of T sees.
func (m Mask) Visible(i, T int) (lo, hi int) {
	switch m.Kind {
	case MaskCausal:
		return 0, i + 1
	case MaskWindow:
		return max(0, i+1-m.Window), i + 1
	}
	return 0, T
}

// String writes the capture format's form: "none", "causal" or "window:N".
func (m Mask) String() string {
	switch m.Kind {
	case MaskCausal:
		return "causal"
	case MaskWindow:
		return "window:" + strconv.Itoa(m.Window)
	}
	return "none"
}

// ParseMask reads what String writes.
func ParseMask(s string) (Mask, error) {
	switch {
	case s == "none":
		return Mask{}, nil
	case s == "causal":
		return Causal, nil
	case strings.HasPrefix(s, "window:"):
		n, err := strconv.Atoi(s[len("window:"):])
		if err == nil && n >= 1 {
			return Mask{Kind: MaskWindow, Window: n}, nil
		}
	}
	return Mask{}, fmt.Errorf("mask %q: want causal, none or window:N with N at least 1", s)
}
