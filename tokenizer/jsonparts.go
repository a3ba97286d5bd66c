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
	Delimiter     string                 `json:"delimiter"`
	StripLeft     bool                   `json:"strip_left"`
	StripRight    bool                   `json:"strip_right"`
	CleanText     *bool                  `json:"clean_text"`
	Chinese       *bool                  `json:"handle_chinese_chars"`
	StripAccents  *bool                  `json:"strip_accents"`
	Lowercase     *bool                  `json:"lowercase"`
	Charsmap      *string                `json:"precompiled_charsmap"`
	Single        []map[string]pieceJSON `json:"single"`
	Special       map[string]specialJSON `json:"special_tokens"`
	Sep           json.RawMessage        `json:"sep"`
	Cls           json.RawMessage        `json:"cls"`
}

type pieceJSON struct {
	ID string `json:"id"`
}

type specialJSON struct {
	IDs []int64 `json:"ids"`
}

// Bounds on sequences in sequences, and on their parts: real files have two
// levels and seven parts at most.
const (
	maxNesting = 4
	maxParts   = 64
)

// parts reads a value that is null, one part, or a Sequence of parts, which it
// flattens.
func parts(file, key string, raw json.RawMessage) ([]partJSON, error) {
	return nestedParts(file, key, raw, 0)
}

func nestedParts(file, key string, raw json.RawMessage, depth int) ([]partJSON, error) {
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
	if depth == maxNesting {
		return nil, unknownPart(file, key, fmt.Sprintf("sequences %d deep", depth+1))
	}
	var list []partJSON
	for _, raw := range append(append(p.Normalizers, p.PreTokenizers...), p.Processors...) {
		more, err := nestedParts(file, key, raw, depth+1)
		if err != nil {
			return nil, err
		}
		if list = append(list, more...); len(list) > maxParts {
			return nil, unknownPart(file, key, fmt.Sprintf("more than %d parts", maxParts))
		}
	}
	return list, nil
}

func unknownPart(file, key string, found any) error {
	return &xerr.Unsupported{File: file, What: key, Found: found, Want: "one that is known here", Hint: "pass ids instead of text"}
}

func is(p *string, s string) bool { return p != nil && *p == s }

func isNot(p *bool) bool { return p != nil && !*p }

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

// readPostProcessor finds the tokens in front and behind: null and ByteLevel
// have none, the others may.
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
			err = t.readTemplate(file, p)
		case "BertProcessing", "RobertaProcessing":
			err = t.readPair(file, p)
		default:
			return unknownPart(file, key, partName(p))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readTemplate reads what comes before and after the text in a template for one
// text.
func (t *Tokenizer) readTemplate(file string, p partJSON) error {
	const key = "post_processor.single"
	var ends [2][]string // in front, behind
	side := 0
	for _, part := range p.Single {
		if _, ok := part["Sequence"]; ok {
			side++
			if side > 1 {
				return unknownPart(file, key, "a template with the text twice")
			}
			continue
		}
		s, ok := part["SpecialToken"]
		if !ok {
			return unknownPart(file, key, "a part that is neither SpecialToken nor Sequence")
		}
		ends[side] = append(ends[side], s.ID)
	}
	if side == 0 {
		return unknownPart(file, key, "a template without the text")
	}
	for side, names := range ends {
		if len(names) == 0 {
			continue
		}
		ids := p.Special[names[0]].IDs
		if len(names) > 1 || len(ids) != 1 {
			return &xerr.Unsupported{File: file, What: key, Found: fmt.Sprintf("%q %s, with ids %v", names, [2]string{"in front", "behind"}[side], ids), Want: "one token"}
		}
		if err := t.setEnd(file, key, side, ids[0]); err != nil {
			return err
		}
	}
	return nil
}

// setEnd sets the token in front (side 0) or behind (side 1).
func (t *Tokenizer) setEnd(file, key string, side int, id int64) error {
	if id < 0 || id >= int64(len(t.pieces)) {
		return &xerr.Format{File: file, What: key, Found: fmt.Sprintf("id %d", id),
			Want: fmt.Sprintf("below %d, the size of the vocabulary", len(t.pieces))}
	}
	b := bos{id: int32(id), add: true, source: file + ": post_processor"}
	if side == 0 {
		t.bos = b
	} else {
		t.end = b
	}
	return nil
}

// readPair reads the processors that have [CLS] in front and [SEP] behind, each
// written as a pair of name and id.
func (t *Tokenizer) readPair(file string, p partJSON) error {
	for side, raw := range [2]json.RawMessage{p.Cls, p.Sep} {
		key := "post_processor." + [2]string{"cls", "sep"}[side]
		var pair []json.RawMessage
		if err := unmarshal(file+": "+key, orNull(raw), &pair); err != nil {
			return err
		}
		var id int64
		if len(pair) != 2 {
			return &xerr.Format{File: file, What: key, Found: fmt.Sprintf("%d parts", len(pair)), Want: "name and id"}
		}
		if err := unmarshal(file+": "+key, pair[1], &id); err != nil {
			return err
		}
		if err := t.setEnd(file, key, side, id); err != nil {
			return err
		}
	}
	return nil
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}
