package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// qwen35Piece is llama3Piece for letters with their marks, digits one by one:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|
//	 ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func qwen35Piece(text []byte) int {
	if n := contraction(text, true); n > 0 {
		return n
	}
	word := func(r rune) bool { return isLetter(r) || isMark(r) }
	r, size := utf8.DecodeRune(text)
	if word(r) {
		return prefixOf(text, word)
	}
	if isNumber(r) {
		return size
	}
	if r != '\r' && r != '\n' {
		if n := prefixOf(text[size:], word); n > 0 {
			return size + n
		}
	}
	lead := 0
	if r == ' ' {
		lead = 1
	}
	if n := prefixOf(text[lead:], func(r rune) bool { return !unicode.IsSpace(r) && !word(r) && !isNumber(r) }); n > 0 {
		return lead + n + newlines(text[lead+n:])
	}
	if n := throughNewline(text); n > 0 {
		return n
	}
	return spaces(text)
}

// prefixOf returns the length of the longest prefix of characters in a set.
func prefixOf(text []byte, in func(rune) bool) int {
	return until(text, func(r rune) bool { return !in(r) })
}

// o200kPiece splits as GPT-4o does, and Mistral's Tekken, which takes digits one
// by one and no contractions:
//
//	[^\r\n\p{L}\p{N}]?U*L+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|
//	[^\r\n\p{L}\p{N}]?U+L*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|
//	\p{N}{1,digits}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// where U is [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] and L is [\p{Ll}\p{Lm}\p{Lo}\p{M}].
func o200kPiece(contractions bool, digits int) func([]byte) int {
	return func(text []byte) int {
		k, size := classOf(text)
		lead := 0
		if k != letter && k != number && text[0] != '\r' && text[0] != '\n' {
			lead = size
		}
		for _, word := range [2]func([]byte) int{lowerWord, upperWord} {
			n := word(text[lead:])
			if n > 0 {
				n += lead
			} else if lead > 0 {
				n = word(text) // a mark can be in front of a word or its beginning
			}
			if n > 0 {
				if contractions {
					n += contraction(text[n:], true)
				}
				return n
			}
		}
		if k == number {
			return numbers(text, digits)
		}
		if text[0] == ' ' {
			size = run(text[1:], other) + 1
		} else {
			size = run(text, other)
		}
		if size > 1 || size == 1 && text[0] != ' ' {
			return size + prefixOf(text[size:], func(r rune) bool { return r == '\r' || r == '\n' || r == '/' })
		}
		if n := throughNewline(text); n > 0 {
			return n
		}
		return spaces(text)
	}
}

// lowerWord returns the length of U*L+ as a backtracking engine matches it: U*
// takes all it can, then gives back until L+ has something.
func lowerWord(text []byte) int {
	upper := prefixOf(text, isUpperSide)
	if n := prefixOf(text[upper:], isLowerSide); n > 0 {
		return upper + n
	}
	for upper > 0 {
		r, n := utf8.DecodeLastRune(text[:upper])
		if isLowerSide(r) {
			return upper
		}
		upper -= n
	}
	return 0
}

// upperWord returns the length of U+L*.
func upperWord(text []byte) int {
	n := prefixOf(text, isUpperSide)
	if n > 0 {
		n += prefixOf(text[n:], isLowerSide)
	}
	return n
}

// deepseekPiece is the last of DeepSeek-V3's three expressions:
//
//	[ASCII punctuation][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|
//	 ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// Numbers and controls match nowhere and stay together up to the next match.
func deepseekPiece(text []byte) int {
	if n := deepseekMatch(text); n > 0 {
		return n
	}
	for at := 0; at < len(text); {
		_, n := utf8.DecodeRune(text[at:])
		at += n
		if at < len(text) && deepseekMatch(text[at:]) > 0 {
			return at
		}
	}
	return len(text)
}

func deepseekMatch(text []byte) int {
	word := func(r rune) bool { return isLetter(r) || isMark(r) }
	sign := func(r rune) bool { return isPunct(r) || isSymbol(r) }
	r, size := utf8.DecodeRune(text)
	if r < utf8.RuneSelf && sign(r) {
		ascii := func(r rune) bool { return 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' }
		if n := prefixOf(text[1:], ascii); n > 0 {
			return 1 + n
		}
	}
	if r != '\r' && r != '\n' && !isLetter(r) && !sign(r) {
		if n := prefixOf(text[size:], word); n > 0 {
			return size + n
		}
	}
	if n := prefixOf(text, word); n > 0 {
		return n
	}
	lead := 0
	if r == ' ' {
		lead = 1
	}
	if n := prefixOf(text[lead:], sign); n > 0 {
		return lead + n + newlines(text[lead+n:])
	}
	if n := throughNewline(text); n > 0 {
		return n
	}
	return spaces(text)
}
