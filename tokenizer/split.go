package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// Byte-level BPE merges within pieces only; which pieces is said by a regular
// expression of the family. The few expressions in use are written out here as
// functions: Go's regexp lacks their lookahead, and a function is faster.

// class is what the expressions ask of a character.
type class uint8

const (
	other  class = iota // [^\s\p{L}\p{N}]
	letter              // \p{L}
	number              // \p{N}
	space               // \s, as Unicode's White_Space
	none                // the end of the text
)

// classOf returns the class of the first character of text and its length. A
// byte that is not UTF-8 is a character of its own, of the class of U+FFFD.
func classOf(text []byte) (class, int) {
	if len(text) == 0 {
		return none, 0
	}
	if b := text[0]; b < utf8.RuneSelf {
		return asciiClass[b], 1
	}
	r, n := utf8.DecodeRune(text)
	switch {
	case isLetter(r):
		return letter, n
	case isNumber(r):
		return number, n
	case unicode.IsSpace(r):
		return space, n
	}
	return other, n
}

var asciiClass = func() (table [utf8.RuneSelf]class) {
	for r := range rune(utf8.RuneSelf) {
		switch {
		case isLetter(r):
			table[r] = letter
		case isNumber(r):
			table[r] = number
		case unicode.IsSpace(r):
			table[r] = space
		}
	}
	return table
}()

// run returns the length of the longest prefix of characters of class c.
func run(text []byte, c class) int {
	n := 0
	for {
		k, size := classOf(text[n:])
		if k != c {
			return n
		}
		n += size
	}
}

// gpt2Piece splits as GPT-2 does:
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
func gpt2Piece(text []byte) int {
	if n := contraction(text, false); n > 0 {
		return n
	}
	lead := 0
	if text[0] == ' ' {
		lead = 1
	}
	switch k, _ := classOf(text[lead:]); k {
	case letter, number, other:
		return lead + run(text[lead:], k)
	}
	return spaces(text)
}

// llama3Piece splits as Llama 3 and its relatives do; digits is 3 for Llama 3,
// 1 for Qwen2:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}|
//	 ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func llama3Piece(digits int) func([]byte) int {
	return func(text []byte) int {
		if n := contraction(text, true); n > 0 {
			return n
		}
		k, size := classOf(text)
		if k == letter {
			return run(text, letter)
		}
		if k == number {
			return numbers(text, digits)
		}
		if text[0] != '\r' && text[0] != '\n' {
			if n := run(text[size:], letter); n > 0 {
				return size + n
			}
		}
		lead := 0
		if text[0] == ' ' {
			lead = 1
		}
		if n := run(text[lead:], other); n > 0 {
			return lead + n + newlines(text[lead+n:])
		}
		if n := throughNewline(text); n > 0 {
			return n
		}
		return spaces(text)
	}
}

// digitPiece splits every number off by itself: \p{N}, isolated.
func digitPiece(text []byte) int {
	if k, n := classOf(text); k == number {
		return n
	}
	return beforeNumber(text)
}

// numberPiece splits numbers off in groups of up to digits: \p{N}{1,digits}.
func numberPiece(digits int) func([]byte) int {
	return func(text []byte) int {
		if k, _ := classOf(text); k == number {
			return numbers(text, digits)
		}
		return beforeNumber(text)
	}
}

// beforeNumber returns the length of the prefix before the first number.
func beforeNumber(text []byte) int {
	n := 0
	for n < len(text) {
		k, size := classOf(text[n:])
		if k == number {
			break
		}
		n += size
	}
	return n
}

// numbers returns the length of the first up to max numbers.
func numbers(text []byte, max int) int {
	n := 0
	for range max {
		k, size := classOf(text[n:])
		if k != number {
			break
		}
		n += size
	}
	return n
}

// contraction returns the length of 's, 't, 're, 've, 'm, 'll or 'd in front.
func contraction(text []byte, fold bool) int {
	if len(text) < 2 || text[0] != '\'' {
		return 0
	}
	a, n := utf8.DecodeRune(text[1:])
	b, m := utf8.DecodeRune(text[1+n:])
	if fold {
		a, b = foldCase(a), foldCase(b)
	}
	switch a {
	case 's', 't', 'm', 'd':
		return 1 + n
	}
	if m > 0 && (a == 'r' && b == 'e' || a == 'v' && b == 'e' || a == 'l' && b == 'l') {
		return 1 + n + m
	}
	return 0
}

// foldCase maps the letters of contractions as (?i) does: the long s is an s.
func foldCase(r rune) rune {
	if r == 'ſ' {
		return 's'
	}
	return unicode.ToLower(r)
}

// spaces returns the length of \s+(?!\S)|\s+: white space before a word leaves
// its last character to the word.
func spaces(text []byte) int {
	n, last := 0, 0
	for {
		k, size := classOf(text[n:])
		if k != space {
			if k != none && n > last {
				return n - last
			}
			return n
		}
		n, last = n+size, size
	}
}

// newlines returns the length of [\r\n]*.
func newlines(text []byte) int {
	n := 0
	for n < len(text) && (text[n] == '\r' || text[n] == '\n') {
		n++
	}
	return n
}

// throughNewline returns the length of \s*[\r\n]+: the white space in front up
// to and with its last line end.
func throughNewline(text []byte) int {
	end := 0
	for n := 0; ; {
		k, size := classOf(text[n:])
		if k != space {
			return end
		}
		if text[n] == '\r' || text[n] == '\n' {
			end = n + 1
		}
		n += size
	}
}

// metaPiece splits in front of every ▁.
func metaPiece(text []byte) int {
	for i := 1; i < len(text); i++ {
		if hasMeta(text[i:]) {
			return i
		}
	}
	return len(text)
}

// metaRunPiece splits in front of every ▁ that does not follow another. It
// changes no id where no token has ▁ after something else, and keeps pieces
// short.
func metaRunPiece(text []byte) int {
	n := 0
	for hasMeta(text[n:]) {
		n += len(meta)
	}
	if n == 0 {
		n = 1
	}
	for n < len(text) && !hasMeta(text[n:]) {
		n++
	}
	return n
}
