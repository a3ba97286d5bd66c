package tokenizer

import "unicode/utf8"

// wordPiece cuts a word into the longest tokens, from its beginning; a word
// that cannot be cut so is one unknown token.
// Source: tokenizers, models/wordpiece.
type wordPiece struct {
	words    words
	start    string // in front of what begins a word, in the spelling of tokens
	rest     string // in front of what continues it
	unk      int32
	maxRunes int // longer words are unknown; 0: any length
}

func (w *wordPiece) encode(e *encoder, piece []byte) {
	if w.maxRunes > 0 && utf8.RuneCount(piece) > w.maxRunes {
		e.unknown(w.unk, piece)
		return
	}
	from := len(e.out)
	for at := 0; at < len(piece); {
		front := w.rest
		if at == 0 {
			front = w.start
		}
		id, n := w.longest(front, piece[at:])
		if n == 0 {
			e.out = e.out[:from]
			e.unknown(w.unk, piece)
			return
		}
		e.out = append(e.out, int(id))
		at += n
	}
}

// longest returns the longest token that text begins with, n = 0 if none.
func (w *wordPiece) longest(front string, text []byte) (id int32, n int) {
	node, ok := int32(0), true
	for i := range len(front) {
		if node, ok = w.words.child(node, front[i]); !ok {
			return noID, 0
		}
	}
	for i, b := range text {
		if node, ok = w.words.child(node, b); !ok {
			break
		}
		if k := w.words.nodes[node].id; k != noID && (i+1 == len(text) || utf8.RuneStart(text[i+1])) {
			id, n = k, i+1
		}
	}
	return id, n
}

// unknown writes the unknown token, or reports text where there is none.
func (e *encoder) unknown(unk int32, text []byte) {
	if unk == noID {
		e.lose(text)
		return
	}
	e.out = append(e.out, int(unk))
}
