package tokenizer

import (
	"bytes"

	"golang.org/x/text/unicode/norm"
)

// meta is the character that stands for a space in SentencePiece vocabularies.
const meta = "▁"

func hasMeta(text []byte) bool {
	return len(text) >= len(meta) && string(text[:len(meta)]) == meta
}

// prefixRule says which pieces of text get the space in front.
type prefixRule uint8

const (
	prefixNever prefixRule = iota
	prefixFirst            // what begins the text
	prefixEach             // what follows an added token, too
)

// normalizer is what happens to text before it is split. Most files ask for
// nothing.
type normalizer struct {
	nfc     bool
	space   string     // what stands for a space; "" leaves spaces alone
	prefix  prefixRule // a space in front, before added tokens are looked for again
	after   prefixRule // a space in front, where there is none, before splitting
	afterIs string     // that space, as it is then spelled
}

// apply normalizes a stretch of text; first says that the text begins with it.
func (n normalizer) apply(text []byte, first bool) []byte {
	if n.nfc && !norm.NFC.IsNormal(text) {
		text = norm.NFC.Bytes(text)
	}
	if len(text) > 0 && (n.prefix == prefixEach || n.prefix == prefixFirst && first) {
		text = append([]byte(" "), text...)
	}
	if n.space != "" {
		text = bytes.ReplaceAll(text, []byte(" "), []byte(n.space))
	}
	return text
}

// prefixed puts the space of the pre-tokenizer in front of a stretch of
// normalized text that does not begin with one.
func (n normalizer) prefixed(text []byte, first bool) []byte {
	if n.after == prefixNever || n.after == prefixFirst && !first || len(text) == 0 {
		return text
	}
	if bytes.HasPrefix(text, []byte(n.afterIs)) {
		return text
	}
	return append([]byte(n.afterIs), text...)
}
