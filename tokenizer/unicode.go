package tokenizer

import "unicode"

// Go's tables are those of Unicode 15; the tokenizers library has those of
// Unicode 16, where a few scripts are letters and numbers that Unicode 15 does
// not know. The ranges below are the difference, over all code points.

func isLetter(r rune) bool {
	return unicode.IsLetter(r) || r >= 0x1C89 && unicode.Is(letters16, r)
}

func isNumber(r rune) bool {
	return unicode.IsNumber(r) || r >= 0x10D40 && unicode.Is(numbers16, r)
}

func isMark(r rune) bool { return unicode.Is(unicode.M, r) || r >= 0x897 && unicode.Is(marks16, r) }

func isPunct(r rune) bool { return unicode.IsPunct(r) || r >= 0x1B4E && unicode.Is(puncts16, r) }

func isSymbol(r rune) bool { return unicode.IsSymbol(r) || r >= 0x2427 && unicode.Is(symbols16, r) }

// isUpperSide reports what may stand on the upper side of a word in o200k's
// expression: [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]. isLowerSide is
// [\p{Ll}\p{Lm}\p{Lo}\p{M}].
func isUpperSide(r rune) bool {
	if r < 0x80 {
		return 'A' <= r && r <= 'Z'
	}
	return unicode.In(r, unicode.Lu, unicode.Lt, unicode.Lm, unicode.Lo, unicode.M) ||
		r >= 0x897 && unicode.In(r, uppers16, modifiers16, others16, marks16)
}

func isLowerSide(r rune) bool {
	if r < 0x80 {
		return 'a' <= r && r <= 'z'
	}
	return unicode.In(r, unicode.Ll, unicode.Lm, unicode.Lo, unicode.M) ||
		r >= 0x897 && unicode.In(r, lowers16, modifiers16, others16, marks16)
}

var letters16 = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1C89, Hi: 0x1C8A, Stride: 1}, {Lo: 0xA7CB, Hi: 0xA7CD, Stride: 1}, {Lo: 0xA7DA, Hi: 0xA7DC, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x105C0, Hi: 0x105F3, Stride: 1}, {Lo: 0x10D4A, Hi: 0x10D65, Stride: 1}, {Lo: 0x10D6F, Hi: 0x10D85, Stride: 1},
		{Lo: 0x10EC2, Hi: 0x10EC4, Stride: 1}, {Lo: 0x11380, Hi: 0x11389, Stride: 1}, {Lo: 0x1138B, Hi: 0x1138B, Stride: 1}, {Lo: 0x1138E, Hi: 0x1138E, Stride: 1},
		{Lo: 0x11390, Hi: 0x113B5, Stride: 1}, {Lo: 0x113B7, Hi: 0x113B7, Stride: 1}, {Lo: 0x113D1, Hi: 0x113D1, Stride: 1}, {Lo: 0x113D3, Hi: 0x113D3, Stride: 1},
		{Lo: 0x11BC0, Hi: 0x11BE0, Stride: 1}, {Lo: 0x13460, Hi: 0x143FA, Stride: 1}, {Lo: 0x16100, Hi: 0x1611D, Stride: 1},
		{Lo: 0x16D40, Hi: 0x16D6C, Stride: 1}, {Lo: 0x18CFF, Hi: 0x18CFF, Stride: 1}, {Lo: 0x1E5D0, Hi: 0x1E5ED, Stride: 1},
		{Lo: 0x1E5F0, Hi: 0x1E5F0, Stride: 1}, {Lo: 0x2EBF0, Hi: 0x2EE5D, Stride: 1},
	},
}

var numbers16 = &unicode.RangeTable{
	R32: []unicode.Range32{
		{Lo: 0x10D40, Hi: 0x10D49, Stride: 1}, {Lo: 0x116D0, Hi: 0x116E3, Stride: 1}, {Lo: 0x11BF0, Hi: 0x11BF9, Stride: 1},
		{Lo: 0x16130, Hi: 0x16139, Stride: 1}, {Lo: 0x16D70, Hi: 0x16D79, Stride: 1}, {Lo: 0x1CCF0, Hi: 0x1CCF9, Stride: 1},
		{Lo: 0x1E5F1, Hi: 0x1E5FA, Stride: 1},
	},
}
