package tokenizer

import (
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// spm is SentencePiece BPE: any two neighbors that together spell a token may
// be joined, the token with the highest score first, the leftmost of equals.
// What then has no token is spelled in byte tokens.
// Source: llama.cpp src/llama-vocab.cpp (llm_tokenizer_spm); ours never joins
// to a control, unknown or byte token, as SentencePiece does not.
type spm struct {
	ids    map[string]int32 // tokens that text can become
	ranks  []uint32         // id → order of its score, best first
	maxLen int32            // bytes of the longest token
	bytes  [256]int32       // <0xNN>, or noID
	unk    int32            // or noID
}

func (s *spm) join(piece []byte, left, right *symbol) (uint32, int32, bool) {
	if left.n+right.n > s.maxLen {
		return 0, 0, false
	}
	id, ok := s.ids[string(piece[left.from:right.from+right.n])]
	if !ok {
		return 0, 0, false
	}
	return s.ranks[id], id, true
}

func (s *spm) encode(e *encoder, piece []byte) {
	m := &e.merger
	m.reset()
	for i := 0; i < len(piece); {
		_, n := utf8.DecodeRune(piece[i:])
		id, ok := s.ids[string(piece[i:i+n])]
		if !ok {
			id = noID
		}
		m.push(i, n, id)
		i += n
	}
	m.merge(piece, s)
	for i := int32(0); i >= 0 && len(m.symbols) > 0; i = m.symbols[i].next {
		sym := m.symbols[i]
		if sym.id != noID {
			e.out = append(e.out, int(sym.id))
			continue
		}
		s.spell(e, piece[sym.from:sym.from+sym.n])
	}
}

// spell writes a character without a token in byte tokens; where one is
// missing, the character is one unknown token.
func (s *spm) spell(e *encoder, char []byte) {
	for _, b := range char {
		if s.bytes[b] == noID {
			if s.unk == noID {
				e.lose(char)
				return
			}
			e.out = append(e.out, int(s.unk))
			return
		}
	}
	for _, b := range char {
		e.out = append(e.out, int(s.bytes[b]))
	}
}

// sentencePiece makes t a SentencePiece BPE vocabulary; space is what stands
// for a space in it.
func (t *Tokenizer) sentencePiece(file string, scores []float64, space string, prefix bool, unk int32) error {
	m := &spm{ids: make(map[string]int32, len(t.pieces)), ranks: make([]uint32, len(t.pieces)), unk: unk}
	for i, s := range scores {
		if math.IsNaN(s) {
			return &xerr.Format{File: file, What: fmt.Sprintf("score of token %d", i), Found: s, Want: "a number"}
		}
		m.ranks[i] = scoreRank(float32(s))
		if k := t.kinds[i]; (k == normalToken || k == userToken) && t.pieces[i] != "" {
			m.ids[t.pieces[i]] = int32(i)
			m.maxLen = max(m.maxLen, int32(len(t.pieces[i])))
		}
	}
	m.bytes, _ = byteTokens(t.ids)
	t.kind = "SentencePiece BPE"
	t.model = m
	if prefix {
		t.norm = append(t.norm, prepend(" "))
	}
	t.strip = prefix
	if space != " " {
		t.norm = append(t.norm, replace(" ", space))
		t.split = withMetaStage(nil, m.ids)
		t.decode(plainSpaces)
	} else {
		t.decode(func(p string) string { return p })
	}
	return nil
}

// scoreRank maps scores to ranks: a higher score is a lower rank, equal scores
// (0 and −0 too) are equal ranks. The score must not be NaN.
func scoreRank(score float32) uint32 {
	bits := math.Float32bits(score + 0) // −0 becomes 0
	if bits>>31 == 1 {
		return bits // negative: more bits, less score
	}
	return math.MaxInt32 - bits
}

// byteSpelling returns how SentencePiece vocabularies spell a byte.
func byteSpelling(b int) string { return fmt.Sprintf("<0x%02X>", b) }

// byteTokens finds the token of each byte and says whether all are there.
func byteTokens(ids map[string]int32) (tokens [256]int32, all bool) {
	all = true
	for b := range tokens {
		id, ok := ids[byteSpelling(b)]
		if !ok {
			id, all = noID, false
		}
		tokens[b] = id
	}
	return tokens, all
}
