package tokenizer

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// charsmap is SentencePiece's compiled normalization: a double array of byte
// strings, each leading to a place in a list of replacements.
//
//	u32 n, n bytes of units (u32 each), replacements with a NUL after each
//
// A unit packs a label (bits 0–7), whether a value hangs below it (bit 8) and
// the way to its children (bits 10–30, times 256 where bit 9 is set).
// Source: sentencepiece, normalizer.cc; darts-clone.
type charsmap struct {
	units []uint32
	texts []byte
}

// maxReplacement bounds a replacement: the longest of Unicode's compatibility
// decompositions, that of U+FDFA, has 33 bytes.
const maxReplacement = 64

func newCharsmap(file string, data []byte) (*charsmap, error) {
	bad := func(found, want any) error {
		return &xerr.Format{File: file, What: "precompiled charsmap", Found: found, Want: want}
	}
	if len(data) < 4 {
		return nil, bad(fmt.Sprintf("%d bytes", len(data)), "at least 4")
	}
	n := binary.LittleEndian.Uint32(data)
	if n%4 != 0 || int64(n) > int64(len(data)-4) {
		return nil, bad(fmt.Sprintf("%d bytes of units", n), fmt.Sprintf("a multiple of 4, at most %d", len(data)-4))
	}
	c := &charsmap{units: make([]uint32, n/4), texts: data[4+n:]}
	for i := range c.units {
		c.units[i] = binary.LittleEndian.Uint32(data[4+4*i:])
	}
	if len(c.texts) == 0 || c.texts[len(c.texts)-1] != 0 {
		return nil, bad("replacements without an end", "a NUL after each")
	}
	for _, r := range bytes.Split(c.texts, []byte{0}) {
		if len(r) > maxReplacement {
			return nil, bad(fmt.Sprintf("a replacement of %d bytes", len(r)), fmt.Sprintf("at most %d", maxReplacement))
		}
	}
	return c, nil
}

// offset is the way from a unit to its children.
func offset(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }

// match walks text and returns the replacement and length of its shortest or
// longest prefix in the map; n = 0 where it has none. What lies outside the
// arrays is no match.
func (c *charsmap) match(text []byte, longest bool) (replacement []byte, n int) {
	at := uint32(0)
	if len(c.units) == 0 {
		return nil, 0
	}
	at ^= offset(c.units[0])
	for i, b := range text {
		at ^= uint32(b)
		if b == 0 || int64(at) >= int64(len(c.units)) || c.units[at]&(1<<31|255) != uint32(b) {
			break
		}
		unit := c.units[at]
		at ^= offset(unit)
		if unit>>8&1 == 0 {
			continue
		}
		if int64(at) >= int64(len(c.units)) {
			break
		}
		if from := c.units[at] &^ (1 << 31); int64(from) < int64(len(c.texts)) {
			replacement, n = c.texts[from:], i+1
			replacement = replacement[:bytes.IndexByte(replacement, 0)]
			if !longest {
				break
			}
		}
	}
	return replacement, n
}

// byGrapheme normalizes as the tokenizers library does: a grapheme below six
// bytes is replaced as a whole by what its shortest prefix in the map stands
// for; otherwise each of its characters is.
// Source: tokenizers, normalizers/precompiled.rs.
func (c *charsmap) byGrapheme(text []byte) []byte {
	out := make([]byte, 0, len(text)+8)
	for it := graphemes.FromBytes(text); it.Next(); {
		g := it.Value()
		if len(g) < 6 {
			if r, n := c.match(g, false); n > 0 {
				out = append(out, r...)
				continue
			}
		}
		for len(g) > 0 {
			_, n := utf8.DecodeRune(g)
			if r, k := c.match(g[:n], false); k > 0 {
				out = append(out, r...)
			} else {
				out = append(out, g[:n]...)
			}
			g = g[n:]
		}
	}
	return out
}

// byPrefix normalizes as SentencePiece does: the longest prefix in the map is
// replaced, and what is not UTF-8 becomes U+FFFD. Names that user finds stay.
func (c *charsmap) byPrefix(text []byte, user *trie) []byte {
	out := make([]byte, 0, len(text)+8)
	for len(text) > 0 {
		if len(user.nodes) > 0 {
			if _, n := user.longest(text); n > 0 {
				out, text = append(out, text[:n]...), text[n:]
				continue
			}
		}
		if r, n := c.match(text, true); n > 0 {
			out, text = append(out, r...), text[n:]
			continue
		}
		r, n := utf8.DecodeRune(text)
		out, text = utf8.AppendRune(out, r), text[n:]
	}
	return out
}
