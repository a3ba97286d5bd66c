package tokenizer

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Splitters are regular expressions of Oniguruma, a backtracking engine. Those
// in common use are written out as functions in split.go. Of the rest, those
// that mean the same in Go's regexp, which takes linear time whatever the
// expression, are translated here; what has look-around, possessive repetition,
// anchors or sets within sets is left to be refused by name.

// white is \s: Unicode's White_Space, which Go's regexp has no name for.
const white = `\t-\r\x{85}\p{Z}`

// maxRegex bounds the length of an expression (chosen: the longest in use, that
// of DeepSeek LLM, has 600 bytes).
const maxRegex = 4096

// translate returns Go's form of an expression; false where there is none, and
// for expressions that match nothing at all.
func translate(pattern string) (*regexp.Regexp, bool) {
	if pattern == "" || len(pattern) > maxRegex || !utf8.ValidString(pattern) {
		return nil, false
	}
	var b strings.Builder
	b.WriteString("(?m)") // $ is the end of a line
	inSet := false
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\' && i+1 < len(pattern):
			i++
			s, ok := escape(pattern[i], inSet)
			if !ok {
				return nil, false
			}
			b.WriteString(s)
		case c == '[' && inSet, c == '&' && inSet && strings.HasPrefix(pattern[i:], "&&"), c == '^' && !inSet,
			c == '{' && strings.HasPrefix(pattern[i:], "{,"):
			return nil, false
		case c == '[':
			inSet = true
			b.WriteByte(c)
			if strings.HasPrefix(pattern[i+1:], "^") {
				b.WriteByte('^')
				i++
			}
		case c == ']':
			inSet = false
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	re, err := regexp.Compile(b.String())
	if err != nil || re.MatchString("") {
		return nil, false
	}
	return re, true
}

// escape returns Go's form of a backslash and a byte.
func escape(c byte, inSet bool) (string, bool) {
	switch {
	case c == 's' && inSet:
		return white, true
	case c == 's':
		return "[" + white + "]", true
	case c == 'S' && !inSet:
		return "[^" + white + "]", true
	case c == 'd':
		return `\p{Nd}`, true
	case strings.IndexByte("pPnrtx", c) >= 0, c < utf8.RuneSelf && !unicode.IsLetter(rune(c)) && !unicode.IsDigit(rune(c)):
		return `\` + string(rune(c)), true
	}
	return "", false
}

// regexMatcher is a matcher of an expression of ours that translate takes; it
// is compiled when first used.
func regexMatcher(pattern string) matcher {
	re := sync.OnceValue(func() *regexp.Regexp {
		re, ok := translate(pattern)
		if !ok {
			panic("tokenizer: no translation of " + pattern)
		}
		return re
	})
	return func(text []byte) (int, int) { return find(re(), text) }
}

// find returns the first match that is not empty.
func find(re *regexp.Regexp, text []byte) (from, to int) {
	at := 0
	for at < len(text) {
		loc := re.FindIndex(text[at:])
		if loc == nil {
			break
		}
		if loc[1] > loc[0] {
			return at + loc[0], at + loc[1]
		}
		_, n := utf8.DecodeRune(text[at+loc[1]:])
		at += loc[1] + max(n, 1)
	}
	return len(text), len(text)
}

// isolate splits at the matches of an expression of ours.
func isolate(pattern string) stage {
	s, _ := splitStage(regexMatcher(pattern), "Isolated", false)
	return s
}
