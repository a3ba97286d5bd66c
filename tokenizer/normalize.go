package tokenizer

import (
	"bytes"
	"unicode"
	"unicode/utf8"

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

// A normalizer is what happens to text before it is split: steps, one after the
// other. Most files ask for none. A step may return its argument, but never
// writes to it; bytes that are not UTF-8 pass through all of them.
type normalizer []func(text []byte) []byte

func (n normalizer) apply(text []byte) []byte {
	for _, step := range n {
		text = step(text)
	}
	return text
}

// keepsFront reports whether the beginning of text survives: where it is taken
// away, what is left does not count as the beginning of a text any more.
func (n normalizer) keepsFront(text []byte) bool {
	_, size := utf8.DecodeRune(text)
	return len(n) == 0 || len(n.apply(text[:size])) > 0
}

// prepend puts s in front of text that is not empty.
func prepend(s string) func([]byte) []byte {
	return func(text []byte) []byte {
		if len(text) == 0 {
			return text
		}
		return append([]byte(s), text...)
	}
}

// replace replaces one string by another.
func replace(old, new string) func([]byte) []byte {
	return func(text []byte) []byte {
		if old == "" || !bytes.Contains(text, []byte(old)) {
			return text
		}
		return bytes.ReplaceAll(text, []byte(old), []byte(new))
	}
}

// form returns a Unicode normalization form. Characters that the library's older
// tables do not know stay as they are, where they are.
func form(f norm.Form, compat bool) func([]byte) []byte {
	late := func(r rune) bool {
		return r >= 0x300 && (unicode.Is(lateForms, r) || compat && unicode.Is(lateCompat, r))
	}
	return func(text []byte) []byte {
		if f.IsNormal(text) {
			return text
		}
		var out []byte
		for len(text) > 0 {
			n := until(text, late)
			out = append(out, f.Bytes(text[:n])...)
			k := prefixOf(text[n:], late)
			out = append(out, text[n:n+k]...)
			text = text[n+k:]
		}
		return out
	}
}

// until returns the length of the prefix before the first character that stop
// accepts.
func until(text []byte, stop func(rune) bool) int {
	n := 0
	for n < len(text) {
		r, size := utf8.DecodeRune(text[n:])
		if stop(r) {
			break
		}
		n += size
	}
	return n
}

// mapRunes rebuilds text character by character; f appends what stands for one.
// Bytes that are not UTF-8 are kept.
func mapRunes(text []byte, f func(out []byte, r rune, raw []byte) []byte) []byte {
	out := make([]byte, 0, len(text)+8)
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if raw := text[i : i+n]; r == utf8.RuneError && n == 1 {
			out = append(out, raw...)
		} else {
			out = f(out, r, raw)
		}
		i += n
	}
	return out
}

// lowercase maps each character by itself: the final sigma has no rule.
func lowercase(text []byte) []byte {
	return mapRunes(text, func(out []byte, r rune, raw []byte) []byte {
		if r < utf8.RuneSelf {
			if 'A' <= r && r <= 'Z' {
				r += 'a' - 'A'
			}
			return append(out, byte(r))
		}
		if r == 'İ' {
			return append(out, "i\u0307"...)
		}
		if l := unicode.ToLower(r); l != r {
			return utf8.AppendRune(out, l)
		}
		if l, ok := lateLower[r]; ok {
			return utf8.AppendRune(out, l)
		}
		return append(out, raw...)
	})
}

// without takes away the characters of a table.
func without(table *unicode.RangeTable) func([]byte) []byte {
	return func(text []byte) []byte {
		return mapRunes(text, func(out []byte, r rune, raw []byte) []byte {
			if unicode.Is(table, r) {
				return out
			}
			return append(out, raw...)
		})
	}
}

// strip takes white space away at the ends.
func strip(left, right bool) func([]byte) []byte {
	return func(text []byte) []byte {
		if left {
			text = text[until(text, func(r rune) bool { return !unicode.IsSpace(r) }):]
		}
		if right {
			text = text[:trimRight(text)]
		}
		return text
	}
}

// nmt is SentencePiece's clean-up of text from the web: controls vanish, and
// all that looks like white space becomes a space.
// Source: tokenizers, normalizers/unicode.rs (do_nmt).
func nmt(text []byte) []byte {
	return mapRunes(text, func(out []byte, r rune, raw []byte) []byte {
		switch {
		case r >= 1 && r <= 8, r == 0x0B, r >= 0x0E && r <= 0x1F, r == 0x7F, r == 0x8F, r == 0x9F:
			return out
		case r == 9, r == 10, r == 12, r == 13, r == 0x1680, r >= 0x200B && r <= 0x200F, r == 0x2028, r == 0x2029, r == 0x2581, r == 0xFEFF, r == 0xFFFD:
			return append(out, ' ')
		}
		return append(out, raw...)
	})
}

// bertClean takes controls away and makes all white space a space.
func bertClean(text []byte) []byte {
	return mapRunes(text, func(out []byte, r rune, raw []byte) []byte {
		switch {
		case unicode.Is(bertControls, r):
			return out
		case unicode.IsSpace(r):
			return append(out, ' ')
		}
		return append(out, raw...)
	})
}

// bertIdeographs puts a space on both sides of Chinese characters.
func bertIdeographs(text []byte) []byte {
	return mapRunes(text, func(out []byte, r rune, raw []byte) []byte {
		if unicode.Is(ideographs, r) {
			return append(append(append(out, ' '), raw...), ' ')
		}
		return append(out, raw...)
	})
}

// ideographs are those of the BERT normalizer; the library has U+2B920 for
// U+2B820, and so have we.
var ideographs = &unicode.RangeTable{
	R16: []unicode.Range16{{Lo: 0x3400, Hi: 0x4DBF, Stride: 1}, {Lo: 0x4E00, Hi: 0x9FFF, Stride: 1}, {Lo: 0xF900, Hi: 0xFAFF, Stride: 1}},
	R32: []unicode.Range32{{Lo: 0x20000, Hi: 0x2A6DF, Stride: 1}, {Lo: 0x2A700, Hi: 0x2B73F, Stride: 1}, {Lo: 0x2B740, Hi: 0x2B81F, Stride: 1},
		{Lo: 0x2B920, Hi: 0x2CEAF, Stride: 1}, {Lo: 0x2F800, Hi: 0x2FA1F, Stride: 1}},
}

// bertNormalizer returns the steps of BERT's normalizer.
// Source: tokenizers, normalizers/bert.rs.
func bertNormalizer(clean, chinese, accentsToo, lower bool) (n normalizer) {
	if clean {
		n = append(n, bertClean)
	}
	if chinese {
		n = append(n, bertIdeographs)
	}
	if accentsToo {
		n = append(n, form(norm.NFD, false), without(bertAccents))
	}
	if lower {
		n = append(n, lowercase)
	}
	return n
}
