package tokenizer

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// A stage turns a text into pieces, which the next stage turns into smaller
// ones. One of next and spans is set, or neither, where rewrite is all it does.
type stage struct {
	rewrite func(text []byte, first bool) []byte       // before splitting; first: the text begins here
	next    func(text []byte) int                      // the length of the first piece
	spans   func(text []byte, emit func(from, to int)) // all pieces, where those before depend on those behind
	drop    func(piece []byte) bool                    // pieces that vanish
}

// splitAll hands the pieces of text to emit, in order; an empty text has none.
func splitAll(stages []stage, text []byte, first bool, emit func(piece []byte)) {
	if len(text) == 0 {
		return
	}
	if len(stages) == 0 {
		emit(text)
		return
	}
	s, rest := &stages[0], stages[1:]
	if s.rewrite != nil {
		text = s.rewrite(text, first)
	}
	switch {
	case s.next != nil:
		for at := 0; at < len(text); {
			n := s.next(text[at:])
			if piece := text[at : at+n : at+n]; s.drop == nil || !s.drop(piece) {
				splitAll(rest, piece, first && at == 0, emit)
			}
			at += n
		}
	case s.spans != nil:
		s.spans(text, func(from, to int) {
			if piece := text[from:to:to]; s.drop == nil || !s.drop(piece) {
				splitAll(rest, piece, first && from == 0, emit)
			}
		})
	default:
		splitAll(rest, text, first, emit)
	}
}

// splits makes a stage of a function that returns the length of the first piece.
func splits(next func(text []byte) int) stage { return stage{next: next} }

// prefixStage replaces spaces by space and puts one in front of a text that
// does not begin with one.
func prefixStage(space string, rule prefixRule) stage {
	return stage{rewrite: func(text []byte, first bool) []byte {
		if space != " " {
			text = bytes.ReplaceAll(text, []byte(" "), []byte(space))
		}
		if rule == prefixNever || rule == prefixFirst && !first || bytes.HasPrefix(text, []byte(space)) {
			return text
		}
		return append([]byte(space), text...)
	}}
}

// wordsStage drops white space and splits at it.
func wordsStage() stage {
	isSpace := func(r rune) bool { return unicode.IsSpace(r) }
	return stage{next: func(text []byte) int { return alternate(text, isSpace) }, drop: startsWith(isSpace)}
}

// wordsAndOthersStage is \w+|[^\w\s]+ with white space dropped.
func wordsAndOthersStage() stage {
	kind := func(r rune) int {
		switch {
		case unicode.IsSpace(r):
			return 0
		case wordRune(r):
			return 1
		}
		return 2
	}
	next := func(text []byte) int {
		r, _ := utf8.DecodeRune(text)
		first := kind(r)
		return alternate(text, func(r rune) bool { return kind(r) == first })
	}
	return stage{next: next, drop: startsWith(unicode.IsSpace)}
}

func startsWith(in func(rune) bool) func([]byte) bool {
	return func(piece []byte) bool {
		r, _ := utf8.DecodeRune(piece)
		return in(r)
	}
}

// matcher returns the next match in text: its ends, or from = to = len(text)
// where there is none. Matches are never empty.
type matcher func(text []byte) (from, to int)

// matchRune matches single characters.
func matchRune(in func(rune) bool) matcher {
	return func(text []byte) (int, int) {
		for i := 0; i < len(text); {
			r, n := utf8.DecodeRune(text[i:])
			if in(r) {
				return i, i + n
			}
			i += n
		}
		return len(text), len(text)
	}
}

// matchString matches a string.
func matchString(s string) matcher {
	return func(text []byte) (int, int) {
		if i := bytes.Index(text, []byte(s)); i >= 0 && s != "" {
			return i, i + len(s)
		}
		return len(text), len(text)
	}
}

// match is a hit, or a gap between hits.
type match struct {
	from, to int
	hit      bool
}

// matches lists hits and the gaps between them, in order.
func (m matcher) matches(text []byte, invert bool) []match {
	var list []match
	for at := 0; at < len(text); {
		from, to := m(text[at:])
		if from > 0 {
			list = append(list, match{at, at + from, invert})
		}
		if to > from {
			list = append(list, match{at + from, at + to, !invert})
		}
		at += to
	}
	return list
}

// splitStage splits at the matches of m as the behavior says; false for an
// unknown one.
// Source: tokenizers, NormalizedString::split.
func splitStage(m matcher, behavior string, invert bool) (stage, bool) {
	var join func(list []match) []match
	switch behavior {
	case "Isolated":
		join = func(list []match) []match { return list }
	case "Removed":
		join = func(list []match) []match {
			kept := list[:0]
			for _, x := range list {
				if !x.hit {
					kept = append(kept, x)
				}
			}
			return kept
		}
	case "MergedWithPrevious":
		join = mergedWithPrevious
	case "MergedWithNext":
		join = mergedWithNext
	case "Contiguous":
		join = contiguous
	default:
		return stage{}, false
	}
	return stage{spans: func(text []byte, emit func(from, to int)) {
		for _, x := range join(m.matches(text, invert)) {
			emit(x.from, x.to)
		}
	}}, true
}

// mergedWithPrevious appends a hit to the piece before it; of neighboring hits
// only the first.
func mergedWithPrevious(list []match) (out []match) {
	hit := false
	for _, x := range list {
		if x.hit && !hit && len(out) > 0 {
			out[len(out)-1].to = x.to
		} else {
			out = append(out, x)
		}
		hit = x.hit
	}
	return out
}

// mergedWithNext puts a hit in front of the piece behind it; of neighboring
// hits only the last.
func mergedWithNext(list []match) (out []match) {
	for i, x := range list {
		if i > 0 && list[i-1].hit && !x.hit {
			out[len(out)-1].to = x.to
		} else {
			out = append(out, x)
		}
	}
	return out
}

// contiguous joins neighbors of one kind.
func contiguous(list []match) (out []match) {
	for _, x := range list {
		if n := len(out); n > 0 && out[n-1].hit == x.hit {
			out[n-1].to = x.to
		} else {
			out = append(out, x)
		}
	}
	return out
}
