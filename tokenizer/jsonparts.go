package tokenizer

import (
	"encoding/json"
	"fmt"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// partJSON is a normalizer, a pre-tokenizer or a post-processor: the keys of
// all kinds that are known here.
type partJSON struct {
	Type          string                 `json:"type"`
	Normalizers   []json.RawMessage      `json:"normalizers"`
	PreTokenizers []json.RawMessage      `json:"pretokenizers"`
	Processors    []json.RawMessage      `json:"processors"`
	Prepend       *string                `json:"prepend"`
	Content       *string                `json:"content"`
	Pattern       map[string]string      `json:"pattern"`
	Behavior      string                 `json:"behavior"`
	Invert        bool                   `json:"invert"`
	AddPrefix     *bool                  `json:"add_prefix_space"`
	UseRegex      *bool                  `json:"use_regex"`
	Individual    bool                   `json:"individual_digits"`
	Replacement   *string                `json:"replacement"`
	Scheme        *string                `json:"prepend_scheme"`
	Split         *bool                  `json:"split"`
	Single        []map[string]pieceJSON `json:"single"`
	Special       map[string]specialJSON `json:"special_tokens"`
}

type pieceJSON struct {
	ID string `json:"id"`
}

type specialJSON struct {
	IDs []int64 `json:"ids"`
}

// parts reads a value that is null, one part, or a Sequence of parts.
func parts(file, key string, raw json.RawMessage) ([]partJSON, error) {
	if !isPresent(raw) {
		return nil, nil
	}
	var p partJSON
	if err := unmarshal(file+": "+key, raw, &p); err != nil {
		return nil, err
	}
	if p.Type != "Sequence" {
		return []partJSON{p}, nil
	}
	var list []partJSON
	for _, raw := range append(append(p.Normalizers, p.PreTokenizers...), p.Processors...) {
		var q partJSON
		if err := unmarshal(file+": "+key, raw, &q); err != nil {
			return nil, err
		}
		if q.Type == "Sequence" {
			return nil, unknownPart(file, key, "a Sequence in a Sequence")
		}
		list = append(list, q)
	}
	return list, nil
}

func unknownPart(file, key string, found any) error {
	return &xerr.Unsupported{File: file, What: key, Found: found, Want: "one that is known here", Hint: "pass ids instead of text"}
}

func is(p *string, s string) bool { return p != nil && *p == s }

func isNot(p *bool) bool { return p != nil && !*p }

// readNormalizer recognizes null, NFC, and SentencePiece's spaces: Prepend and
// Replace.
func (t *Tokenizer) readNormalizer(file string, raw json.RawMessage) error {
	const key = "normalizer"
	list, err := parts(file, key, raw)
	if err != nil {
		return err
	}
	for i, p := range list {
		switch {
		case p.Type == "NFC" && i == 0:
			t.norm.nfc = true
		case p.Type == "Prepend" && (is(p.Prepend, meta) || is(p.Prepend, " ") && t.norm.space == "") && t.norm.prefix == prefixNever:
			t.norm.prefix = prefixEach
		case p.Type == "Replace" && p.Pattern["String"] == " " && is(p.Content, meta):
			t.norm.space = meta
		default:
			return unknownPart(file, key, partName(p))
		}
	}
	if t.norm.prefix != prefixNever && t.norm.space == "" {
		return unknownPart(file, key, "Prepend without Replace")
	}
	return nil
}

// partName says which part this is, for errors.
func partName(p partJSON) string {
	name := fmt.Sprintf("%q", p.Type)
	for kind, text := range p.Pattern {
		name += fmt.Sprintf(" with %s %q", kind, text)
	}
	if p.Behavior != "" {
		name += fmt.Sprintf(", behavior %s, invert %v", p.Behavior, p.Invert)
	}
	return name
}

// preTokenizer is what a file says about splitting.
type preTokenizer struct {
	name       string
	stages     []stage
	byteLevel  bool
	prefix     bool // ByteLevel: a space in front of each text between added tokens
	meta       bool // Metaspace
	metaPrefix prefixRule
}

// The expressions of Split pre-tokenizers that are known here.
const gpt2Pattern = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

var splitPatterns = map[string]struct {
	name  string
	stage stage
}{
	gpt2Pattern: {"gpt-2", gpt2Piece},
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`: {"llama3", llama3Piece(3)},
	// cl100k: what its possessive quantifiers and its single [\r\n] leave out
	// cannot match anyway.
	`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`:  {"cl100k", llama3Piece(3)},
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`: {"qwen2", llama3Piece(1)},
	`\p{N}`:      {"digits", digitPiece},
	`\p{N}{1,3}`: {"digits by three", numberPiece(3)},
}

// readPreTokenizer recognizes null, ByteLevel, Digits, Split with a known
// expression, and Metaspace.
func readPreTokenizer(file string, raw json.RawMessage) (preTokenizer, error) {
	const key = "pre_tokenizer"
	var out preTokenizer
	list, err := parts(file, key, raw)
	if err != nil {
		return out, err
	}
	for i, p := range list {
		ok := false
		switch {
		case out.byteLevel: // nothing follows it: it spells bytes
		case p.Type == "ByteLevel":
			ok = out.addByteLevel(p, i)
		case p.Type == "Digits":
			ok = out.addDigits(p)
		case p.Type == "Split":
			ok = out.addSplit(p)
		case p.Type == "Metaspace" && len(list) == 1:
			ok = out.addMetaspace(p)
		}
		if !ok {
			return out, unknownPart(file, key, partName(p))
		}
	}
	return out, nil
}

func (t *preTokenizer) add(name string, s stage) bool {
	if t.name != "" {
		t.name += ", "
	}
	t.name += name
	t.stages = append(t.stages, s)
	return true
}

// addByteLevel takes ByteLevel; a space in front is only known of the first
// part of a sequence.
func (t *preTokenizer) addByteLevel(p partJSON, place int) bool {
	t.byteLevel = true
	t.prefix = !isNot(p.AddPrefix) // the library's default is true
	if t.prefix && place > 0 {
		return false
	}
	if !isNot(p.UseRegex) {
		t.add("gpt-2", gpt2Piece)
	} else if t.name == "" {
		t.name = "not split"
	}
	return true
}

func (t *preTokenizer) addDigits(p partJSON) bool {
	if p.Individual {
		return t.add("digits", digitPiece)
	}
	return t.add("numbers", numberRunPiece)
}

// addSplit takes a known expression whose matches, or for a whole text whose
// gaps, become pieces. The expressions that cover all text have no gaps.
func (t *preTokenizer) addSplit(p partJSON) bool {
	known, ok := splitPatterns[p.Pattern["Regex"]]
	if !ok || len(p.Pattern) != 1 {
		return false
	}
	covers := known.name != "digits" && known.name != "digits by three"
	if p.Behavior == "Isolated" && !p.Invert || p.Behavior == "Removed" && p.Invert && covers {
		return t.add(known.name, known.stage)
	}
	return false
}

func (t *preTokenizer) addMetaspace(p partJSON) bool {
	if !is(p.Replacement, meta) {
		return false
	}
	t.meta, t.metaPrefix = true, prefixEach
	switch {
	case is(p.Scheme, "first"):
		t.metaPrefix = prefixFirst
	case is(p.Scheme, "never"):
		t.metaPrefix = prefixNever
	case p.Scheme == nil && isNot(p.AddPrefix):
		t.metaPrefix = prefixNever
	case p.Scheme != nil && !is(p.Scheme, "always"):
		return false
	}
	if !isNot(p.Split) {
		return t.add("Metaspace", metaPiece)
	}
	return true
}

// readPostProcessor finds the token in front: null and ByteLevel have none,
// TemplateProcessing may have one. What it puts at the end is not our matter.
func (t *Tokenizer) readPostProcessor(file string, raw json.RawMessage) error {
	const key = "post_processor"
	list, err := parts(file, key, raw)
	if err != nil {
		return err
	}
	t.bos.source = file + ": " + key + " puts none in front"
	for _, p := range list {
		switch p.Type {
		case "ByteLevel":
		case "TemplateProcessing":
			if err := t.readTemplate(file, p); err != nil {
				return err
			}
		default:
			return unknownPart(file, key, partName(p))
		}
	}
	return nil
}

// readTemplate reads what comes before the text in a template for one text.
func (t *Tokenizer) readTemplate(file string, p partJSON) error {
	const key = "post_processor.single"
	var front []string
	for _, part := range p.Single {
		if _, ok := part["Sequence"]; ok {
			break
		}
		s, ok := part["SpecialToken"]
		if !ok {
			return unknownPart(file, key, "a part that is neither SpecialToken nor Sequence")
		}
		front = append(front, s.ID)
	}
	if len(front) == 0 {
		return nil
	}
	ids := p.Special[front[0]].IDs
	if len(front) > 1 || len(ids) != 1 {
		return &xerr.Unsupported{File: file, What: key, Found: fmt.Sprintf("%q in front, with ids %v", front, ids), Want: "one token"}
	}
	if ids[0] < 0 || ids[0] >= int64(len(t.pieces)) {
		return &xerr.Format{File: file, What: key, Found: fmt.Sprintf("id %d", ids[0]),
			Want: fmt.Sprintf("below %d, the size of the vocabulary", len(t.pieces))}
	}
	t.bos = bos{id: int32(ids[0]), add: true, source: file + ": post_processor"}
	return nil
}
