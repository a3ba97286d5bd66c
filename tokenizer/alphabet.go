package tokenizer

import "unicode/utf8"

// The byte-level alphabet spells each byte as one printable character, so that
// a vocabulary is readable text: bytes that are printable in Latin-1 stand for
// themselves, the other 68 are U+0100 and following, in order.
// Source: GPT-2, bytes_to_unicode.
var byteToRune, runeToByte = alphabet()

func alphabet() (to [256]rune, from map[rune]byte) {
	from = make(map[rune]byte, 256)
	next := rune(256)
	for b := range 256 {
		r := rune(b)
		printable := b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xAC || b >= 0xAE
		if !printable {
			r = next
			next++
		}
		to[b], from[r] = r, byte(b)
	}
	return to, from
}

// fromAlphabet returns the bytes that a piece spells; a piece with a character
// outside the alphabet stands for itself, as tokenizers decodes it.
func fromAlphabet(piece string) string {
	out := make([]byte, 0, len(piece))
	for _, r := range piece {
		b, ok := runeToByte[r]
		if !ok || r == utf8.RuneError {
			return piece
		}
		out = append(out, b)
	}
	return string(out)
}

// alphabetTokens returns the token of each byte.
func alphabetTokens(ids map[string]int32) (tokens [256]int32) {
	for b := range tokens {
		id, ok := ids[string(byteToRune[b])]
		if !ok {
			id = noID
		}
		tokens[b] = id
	}
	return tokens
}
