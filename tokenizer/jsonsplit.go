package tokenizer

import (
	"encoding/json"
	"unicode"
	"unicode/utf8"
)

// preTokenizer is what a file says about splitting.
type preTokenizer struct {
	name      string
	stages    []stage
	byteLevel bool
	prefix    bool // a space goes in front of the text
	meta      bool // Metaspace
	words     bool // white space is dropped
}

// The expressions of Split pre-tokenizers that are written out as functions.
const (
	gpt2Pattern   = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	llama3Pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwen2Pattern  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwen35Pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	o200kWords    = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`
	o200kCapitals = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*`
	o200kSuffix   = `(?i:'s|'t|'re|'ve|'m|'ll|'d)?`
	o200kRest     = `| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	deepseekMarks = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
)

var splitPatterns = map[string]struct {
	name   string
	piece  func([]byte) int
	covers bool // every text is nothing but matches
}{
	gpt2Pattern:   {"gpt-2", gpt2Piece, true},
	llama3Pattern: {"llama3", llama3Piece(3), true},
	// cl100k: what its possessive quantifiers and its single [\r\n] leave out
	// cannot match anyway.
	`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`: {"cl100k", llama3Piece(3), true},
	qwen2Pattern:  {"qwen2", llama3Piece(1), true},
	qwen35Pattern: {"qwen3.5", qwen35Piece, true},
	o200kWords + o200kSuffix + `|` + o200kCapitals + o200kSuffix + `|\p{N}{1,3}` + o200kRest: {"o200k", o200kPiece(true, 3), true},
	o200kWords + `|` + o200kCapitals + `|\p{N}` + o200kRest:                                  {"tekken", o200kPiece(false, 1), true},
	deepseekMarks: {"deepseek", deepseekPiece, false},
	`\p{N}`:       {"digits", digitPiece, false},
	`\p{N}{1,3}`:  {"digits by three", numberPiece(3), false},
	// BLOOM's set within a set; Go's regexp spells it without.
	` ?[^(\s|[.,!?…。，、।۔،])]+`: {"bloom", nil, false},
}

// readPreTokenizer reads null, one pre-tokenizer or a sequence of them. What
// follows ByteLevel sees bytes in its alphabet, as in the library.
func readPreTokenizer(file string, raw json.RawMessage) (preTokenizer, error) {
	const key = "pre_tokenizer"
	var out preTokenizer
	list, err := parts(file, key, raw)
	if err != nil {
		return out, err
	}
	spelled := false
	for _, p := range list {
		if out.byteLevel && !spelled {
			spelled = true
			out.stages = append(out.stages, stage{rewrite: func(text []byte, _ bool) []byte { return spell(text) }})
		}
		if out.byteLevel && p.Type == "ByteLevel" || !out.addPart(p) {
			return out, unknownPart(file, key, partName(p))
		}
	}
	if spelled {
		out.stages = append(out.stages, stage{rewrite: func(text []byte, _ bool) []byte { return []byte(fromAlphabet(string(text))) }})
	}
	if out.byteLevel && out.name == "" {
		out.name = "not split"
	}
	return out, nil
}

// addPart appends one pre-tokenizer; false for an unknown one.
func (t *preTokenizer) addPart(p partJSON) bool {
	switch p.Type {
	case "ByteLevel":
		return t.addByteLevel(p)
	case "Metaspace":
		return t.addMetaspace(p)
	case "Split":
		return t.addSplit(p)
	case "Digits":
		behavior := "Contiguous"
		if p.Individual {
			behavior = "Isolated"
		}
		return t.addMatcher("digits", matchRune(func(r rune) bool { return unicode.Is(numerics, r) }), behavior)
	case "Punctuation":
		behavior := p.Behavior
		if behavior == "" {
			behavior = "Isolated"
		}
		return t.addMatcher("punctuation", matchRune(isBertPunctuation), behavior)
	case "CharDelimiterSplit":
		return utf8.RuneCountInString(p.Delimiter) == 1 && t.addMatcher("delimiter", matchString(p.Delimiter), "Removed")
	case "WhitespaceSplit":
		t.words = true
		return t.add("white space", wordsStage())
	case "Whitespace":
		t.words = true
		return t.add("words", wordsAndOthersStage())
	case "BertPreTokenizer":
		t.words = true
		return t.add("bert", wordsStage()) && t.addMatcher("", matchRune(isBertPunctuation), "Isolated")
	}
	return false
}

func isBertPunctuation(r rune) bool { return unicode.Is(bertPunctuation, r) }

func (t *preTokenizer) add(name string, s stage) bool {
	if t.name != "" && name != "" {
		t.name += ", "
	}
	t.name += name
	t.stages = append(t.stages, s)
	return true
}

func (t *preTokenizer) addMatcher(name string, m matcher, behavior string) bool {
	s, ok := splitStage(m, behavior, false)
	return ok && t.add(name, s)
}

// addByteLevel takes ByteLevel; a missing setting is true, as in the library.
func (t *preTokenizer) addByteLevel(p partJSON) bool {
	t.byteLevel = true
	if !isNot(p.AddPrefix) {
		t.prefix = true
		t.stages = append(t.stages, prefixStage(" ", prefixEach))
	}
	if !isNot(p.UseRegex) {
		t.add("gpt-2", splits(gpt2Piece))
	}
	return true
}

// addSplit takes a string, or an expression that is known or can be translated.
func (t *preTokenizer) addSplit(p partJSON) bool {
	if len(p.Pattern) != 1 {
		return false
	}
	if s, ok := p.Pattern["String"]; ok {
		return s != "" && t.addInverted("text", matchString(s), p)
	}
	pattern := p.Pattern["Regex"]
	known, ok := splitPatterns[pattern]
	whole := known.covers && p.Behavior == "Removed" && p.Invert
	if ok && known.piece != nil && (p.Behavior == "Isolated" || whole) {
		return t.add(known.name, splits(known.piece))
	}
	if ok && known.piece == nil {
		pattern = bloomPattern
	}
	re, ok := translate(pattern)
	return ok && t.addInverted("regex", func(text []byte) (int, int) { return find(re, text) }, p)
}

func (t *preTokenizer) addInverted(name string, m matcher, p partJSON) bool {
	s, ok := splitStage(m, p.Behavior, p.Invert)
	return ok && t.add(name, s)
}

func (t *preTokenizer) addMetaspace(p partJSON) bool {
	if p.Replacement == nil || utf8.RuneCountInString(*p.Replacement) != 1 {
		return false
	}
	rule := prefixEach
	switch {
	case is(p.Scheme, "first"):
		rule = prefixFirst
	case is(p.Scheme, "never"), p.Scheme == nil && isNot(p.AddPrefix):
		rule = prefixNever
	case p.Scheme != nil && !is(p.Scheme, "always"):
		return false
	}
	t.meta = true
	t.prefix = t.prefix || rule != prefixNever
	t.stages = append(t.stages, prefixStage(*p.Replacement, rule))
	if !isNot(p.Split) {
		if is(p.Replacement, meta) {
			return t.add("Metaspace", splits(metaPiece))
		}
		return t.addMatcher("Metaspace", matchString(*p.Replacement), "MergedWithNext")
	}
	return true
}

// spell writes bytes in the alphabet of byte-level vocabularies.
func spell(text []byte) []byte {
	out := make([]byte, 0, 2*len(text))
	for _, b := range text {
		out = utf8.AppendRune(out, byteToRune[b])
	}
	return out
}
