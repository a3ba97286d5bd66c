package tokenizer

import "unicode/utf8"

// wordPiece cuts a word into the longest tokens, from its beginning; a word
// that cannot be cut so is one unknown token.
// Source: tokenizers, models/wordpiece.
type wordPiece struct {
	ids      map[string]int32
	start    string // in front of what begins a word, in the spelling of tokens
	rest     string // in front of what continues it
	unk      int32
	maxRunes int // longer words are unknown; 0: any length
	maxLen   int // bytes of the longest token
}

func (w *wordPiece) encode(e *encoder, piece []byte) {
	if w.maxRunes > 0 && utf8.RuneCount(piece) > w.maxRunes {
		e.unknown(w.unk, piece)
		return
	}
	from := len(e.out)
	buf := make([]byte, 0, w.maxLen+1)
	for at := 0; at < len(piece); {
		front := w.rest
		if at == 0 {
			front = w.start
		}
		id, n := w.longest(buf, front, piece[at:])
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
func (w *wordPiece) longest(buf []byte, front string, text []byte) (id int32, n int) {
	for n = min(len(text), w.maxLen-len(front)); n > 0; n-- {
		if n < len(text) && !utf8.RuneStart(text[n]) {
			continue
		}
		if id, ok := w.ids[string(append(append(buf[:0], front...), text[:n]...))]; ok {
			return id, n
		}
	}
	return noID, 0
}

// unknown writes the unknown token, or reports text where there is none.
func (e *encoder) unknown(unk int32, text []byte) {
	if unk == noID {
		e.lose(text)
		return
	}
	e.out = append(e.out, int(unk))
}

func longestToken(ids map[string]int32) (n int) {
	for p := range ids {
		n = max(n, len(p))
	}
	return n
}
