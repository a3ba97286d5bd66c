package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// ranks is the list of merges: a pair of ids → its place in the list and the
// id that it makes.
type ranks map[uint64]ranked

type ranked struct {
	rank uint32
	id   int32
}

func pairKey(left, right int32) uint64 { return uint64(uint32(left))<<32 | uint64(uint32(right)) }

func (r ranks) join(_ []byte, left, right *symbol) (uint32, int32, bool) {
	if left.id == noID || right.id == noID {
		return 0, 0, false
	}
	m, ok := r[pairKey(left.id, right.id)]
	return m.rank, m.id, ok
}

// mergeList collects merges and their errors.
type mergeList struct {
	file string // where the merges are, for errors: file and key
	ids  map[string]int32
	last bool // the last of two equal pairs counts, as in tokenizers; else the first, as in llama.cpp
	out  ranks

	prefix string // continuing_subword_prefix: the right part loses it
}

// add takes the merge with the given place in the list. A merge whose parts or
// result are no tokens is refused, as tokenizers does: llama.cpp would drop
// text where one applies.
func (m *mergeList) add(place int, left, right string) error {
	var id [3]int32
	for i, s := range [3]string{left, right, left + strings.TrimPrefix(right, m.prefix)} {
		var ok bool
		if id[i], ok = m.ids[s]; !ok {
			return &xerr.Format{File: m.file, What: fmt.Sprintf("merge %d (%q %q)", place, left, right),
				Found: fmt.Sprintf("%q is no token", s), Want: "parts and result in the vocabulary"}
		}
	}
	key := pairKey(id[0], id[1])
	if _, dup := m.out[key]; dup && !m.last {
		return nil
	}
	m.out[key] = ranked{uint32(place), id[2]}
	return nil
}

// addLine takes a merge written as "left right".
func (m *mergeList) addLine(place int, line string) error {
	// A token may itself begin with a space, so the separator is looked for
	// from the second byte on.
	if len(line) > 2 {
		if i := strings.IndexByte(line[1:], ' '); i >= 0 {
			return m.add(place, line[:i+1], line[i+2:])
		}
	}
	return &xerr.Format{File: m.file, What: fmt.Sprintf("merge %d", place), Found: fmt.Sprintf("%q", line),
		Want: "two tokens and a space between them"}
}

// byteBPE is byte-level BPE: every byte is a symbol to begin with.
type byteBPE struct {
	bytes [256]int32 // token of each byte, or noID
	ranks ranks
	whole map[string]int32 // text → token, taken before any merge; nil: merges only
	unk   int32            // for bytes without a token, or noID
}

func (b *byteBPE) encode(e *encoder, piece []byte) {
	if id, ok := b.whole[string(piece)]; ok {
		e.out = append(e.out, int(id))
		return
	}
	m := &e.merger
	m.reset()
	for i, c := range piece {
		id := b.bytes[c]
		if id == noID {
			if id = b.unk; id == noID {
				e.lose(piece[i : i+1])
				continue // dropped, as the references do
			}
		}
		m.push(i, 1, id)
	}
	m.merge(piece, b.ranks)
	m.emit(e)
}

// emit appends the ids of the symbols that are left.
func (m *merger) emit(e *encoder) {
	if len(m.symbols) == 0 {
		return
	}
	for i := int32(0); i >= 0; i = m.symbols[i].next {
		e.out = append(e.out, int(m.symbols[i].id))
	}
}

// charBPE is BPE over characters: SentencePiece vocabularies as tokenizer.json
// writes them, older vocabularies that mark what continues or ends a word, and
// lists of characters (no merges).
type charBPE struct {
	ids      map[string]int32
	ranks    ranks
	fallback *[256]int32 // byte tokens for characters without one; nil: none
	unk      int32       // or noID
	fuse     bool        // neighbors without a token share one unknown token
	whole    bool        // a piece that is a token is taken whole, before any merge
	prefix   string      // in front of every character but the first of a piece
	suffix   string      // behind the last
}

func (c *charBPE) encode(e *encoder, piece []byte) {
	if id, ok := c.ids[string(piece)]; ok && c.whole {
		e.out = append(e.out, int(id))
		return
	}
	m := &e.merger
	m.reset()
	lastUnk := false
	for i := 0; i < len(piece); {
		_, n := utf8.DecodeRune(piece[i:])
		char := piece[i : i+n]
		if i > 0 && c.prefix != "" {
			char = append([]byte(c.prefix), char...)
		}
		if i+n == len(piece) && c.suffix != "" {
			char = append(char[:len(char):len(char)], c.suffix...)
		}
		id, ok := c.ids[string(char)]
		known := ok || c.spelled(char)
		switch {
		case ok:
			m.push(i, n, id)
		case known:
			for _, b := range char {
				m.push(i, n, c.fallback[b])
			}
		case c.unk == noID:
			e.lose(piece[i : i+n])
		case lastUnk && c.fuse:
			m.symbols[len(m.symbols)-1].n += int32(n)
		default:
			m.push(i, n, c.unk)
		}
		lastUnk = !known
		i += n
	}
	m.merge(piece, c.ranks)
	m.emit(e)
}

// spelled reports whether there is a byte token for each byte.
func (c *charBPE) spelled(char []byte) bool {
	if c.fallback == nil {
		return false
	}
	for _, b := range char {
		if c.fallback[b] == noID {
			return false
		}
	}
	return true
}
