package tokenizer

import (
	"fmt"
	"regexp"
	"strconv"
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
		case c == '\\':
			s, n := escape(pattern[i+1:], inSet)
			if n == 0 {
				return nil, false
			}
			b.WriteString(s)
			i += n
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

// escape returns Go's form of what follows a backslash, and its length; 0 where
// there is none.
func escape(rest string, inSet bool) (string, int) {
	if rest == "" {
		return "", 0
	}
	switch c := rest[0]; {
	case c == 's' && inSet:
		return white, 1
	case c == 's':
		return "[" + white + "]", 1
	case c == 'S' && !inSet:
		return "[^" + white + "]", 1
	case c == 'd':
		return `\p{Nd}`, 1
	case c == 'u' && len(rest) >= 5:
		if _, err := strconv.ParseUint(rest[1:5], 16, 16); err == nil {
			return `\x{` + rest[1:5] + "}", 5
		}
	case c == 'p' || c == 'P':
		return class16(rest, inSet)
	case strings.IndexByte("nrtx", c) >= 0, c < utf8.RuneSelf && !unicode.IsLetter(rune(c)) && !unicode.IsDigit(rune(c)):
		return `\` + string(rune(c)), 1
	}
	return "", 0
}

// newer has the characters of a class that Oniguruma knows and Go does not.
var newer = map[string]*unicode.RangeTable{
	"L": letters16, "N": numbers16, "M": marks16, "P": puncts16, "S": symbols16,
	"Lu": uppers16, "Ll": lowers16, "Lm": modifiers16, "Lo": others16,
}

// class16 returns \p{X} with the newer characters of X.
func class16(rest string, inSet bool) (string, int) {
	n := strings.IndexByte(rest, '}') + 1
	if n == 0 || rest[1] != '{' {
		return "", 0
	}
	table := newer[rest[2:n-1]]
	if table == nil {
		return `\` + rest[:n], n
	}
	var b strings.Builder
	b.WriteString(`\p` + rest[1:n])
	for _, r := range table.R16 { // all strides are 1
		fmt.Fprintf(&b, `\x{%x}-\x{%x}`, r.Lo, r.Hi)
	}
	for _, r := range table.R32 {
		fmt.Fprintf(&b, `\x{%x}-\x{%x}`, r.Lo, r.Hi)
	}
	switch {
	case inSet && rest[0] == 'p':
		return b.String(), n
	case inSet:
		return "", 0 // the rest of a class that has grown cannot be said in a set
	case rest[0] == 'P':
		return "[^" + b.String() + "]", n
	}
	return "[" + b.String() + "]", n
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
