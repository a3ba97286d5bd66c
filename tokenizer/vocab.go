package tokenizer

import (
	"fmt"
	"strings"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// newVocab returns a Tokenizer with its tables filled from the spelling and
// kind of each token, and without a model. A spelling that occurs twice is
// refused, as llama.cpp does: text could mean either. Holes ("") are allowed.
func newVocab(file string, pieces []string, kinds []tokenKind) (*Tokenizer, error) {
	if len(pieces) == 0 {
		return nil, &xerr.Format{File: file, What: "tokens", Found: "none", Want: "a vocabulary"}
	}
	t := &Tokenizer{pieces: pieces, kinds: kinds, ids: make(map[string]int32, len(pieces))}
	t.vocab = t.ids
	for i, p := range pieces {
		if p == "" {
			continue
		}
		if j, twice := t.ids[p]; twice {
			return nil, &xerr.Format{File: file, What: "tokens", Found: fmt.Sprintf("%q as id %d and as id %d", p, j, i),
				Want: "every token once"}
		}
		t.ids[p] = int32(i)
	}
	return t, nil
}

// decode fills the table of what tokens stand for; text gives that of normal
// tokens.
func (t *Tokenizer) decode(text func(piece string) string) {
	t.decoded = make([]string, len(t.pieces))
	for i, p := range t.pieces {
		switch t.kinds[i] {
		case normalToken:
			p = text(p)
		case byteToken:
			if b, ok := spelledByte(p); ok {
				p = string([]byte{b})
			}
		}
		t.decoded[i] = p
	}
}

// plainSpaces returns a piece with ▁ as the space that it stands for.
func plainSpaces(piece string) string { return strings.ReplaceAll(piece, meta, " ") }

// spelledByte reads <0xNN>.
func spelledByte(piece string) (byte, bool) {
	var b byte
	if len(piece) != 6 || piece[:3] != "<0x" || piece[5] != '>' {
		return 0, false
	}
	if _, err := fmt.Sscanf(piece[3:5], "%02x", &b); err != nil {
		return 0, false
	}
	return b, true
}

// withMetaStage splits in front of runs of ▁ where that changes no id: where
// no token that text can become has ▁ after something else, and ▁ is a token.
func withMetaStage(stages []stage, ids map[string]int32) []stage {
	if _, ok := ids[meta]; !ok {
		return stages
	}
	for p := range ids {
		if strings.Contains(strings.TrimLeft(p, meta), meta) {
			return stages
		}
	}
	return append(stages[:len(stages):len(stages)], splits(metaRunPiece))
}
