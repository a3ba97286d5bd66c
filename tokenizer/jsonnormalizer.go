package tokenizer

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"golang.org/x/text/unicode/norm"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// readNormalizer reads null, one normalizer or a sequence of them.
func (t *Tokenizer) readNormalizer(file string, raw json.RawMessage) error {
	const key = "normalizer"
	list, err := parts(file, key, raw)
	if err != nil {
		return err
	}
	growth := 1
	for _, p := range list {
		if growth *= growthOf(p); growth > maxGrowth {
			return unknownPart(file, key, fmt.Sprintf("text grows more than %d times", maxGrowth))
		}
		steps, err := normalizerOf(file, p)
		if err != nil {
			return err
		}
		if steps == nil {
			return unknownPart(file, key, partName(p))
		}
		t.norm = append(t.norm, steps...)
		if p.Type == "Prepend" {
			t.strip = true
		}
	}
	return nil
}

// maxGrowth bounds how many times longer replacements can make a text: a hostile
// file could ask for terabytes. Real files ask for 3 (▁ for a space) or 11 (the
// longest compatibility decomposition).
const maxGrowth = 256

// growthOf bounds the growth by one normalizer.
func growthOf(p partJSON) int {
	switch p.Type {
	case "Replace":
		least := max(1, len(p.Pattern["String"])) // an expression matches a byte at least
		return min(maxGrowth+1, max(1, (len(text(p.Content))+least-1)/least))
	case "Prepend":
		return min(maxGrowth+1, 1+len(text(p.Prepend))/maxName)
	case "Precompiled", "NFKC", "NFKD":
		return 11
	}
	return 1
}

// normalizerOf returns the steps of one normalizer, nil for an unknown one.
func normalizerOf(file string, p partJSON) (normalizer, error) {
	switch p.Type {
	case "NFC":
		return normalizer{form(norm.NFC, false)}, nil
	case "NFD":
		return normalizer{form(norm.NFD, false)}, nil
	case "NFKC":
		return normalizer{form(norm.NFKC, true)}, nil
	case "NFKD":
		return normalizer{form(norm.NFKD, true)}, nil
	case "Lowercase":
		return normalizer{lowercase}, nil
	case "StripAccents":
		return normalizer{without(accents)}, nil
	case "Strip":
		return normalizer{strip(p.StripLeft, p.StripRight)}, nil
	case "Nmt":
		return normalizer{nmt}, nil
	case "BertNormalizer":
		lower := !isNot(p.Lowercase)
		strip := lower
		if p.StripAccents != nil {
			strip = *p.StripAccents
		}
		n := bertNormalizer(!isNot(p.CleanText), !isNot(p.Chinese), strip, lower)
		return append(normalizer{}, n...), nil // not nil, even if it does nothing
	case "Prepend":
		if p.Prepend != nil {
			return normalizer{prepend(*p.Prepend)}, nil
		}
	case "Replace":
		return replaceNormalizer(p), nil
	case "Precompiled":
		return precompiled(file, p)
	}
	return nil, nil
}

func replaceNormalizer(p partJSON) normalizer {
	if p.Content == nil || len(p.Pattern) != 1 {
		return nil
	}
	if s, ok := p.Pattern["String"]; ok && s != "" {
		return normalizer{replace(s, *p.Content)}
	}
	re, ok := translate(p.Pattern["Regex"])
	if !ok {
		return nil
	}
	return normalizer{func(text []byte) []byte { return re.ReplaceAllLiteral(text, []byte(*p.Content)) }}
}

func precompiled(file string, p partJSON) (normalizer, error) {
	const key = "normalizer.precompiled_charsmap"
	if p.Charsmap == nil {
		return normalizer{}, nil
	}
	data, err := base64.StdEncoding.DecodeString(*p.Charsmap)
	if err != nil {
		return nil, &xerr.Format{File: file, What: key, Found: err, Want: "base64"}
	}
	if len(data) == 0 {
		return normalizer{}, nil
	}
	c, err := newCharsmap(file, data)
	if err != nil {
		return nil, err
	}
	return normalizer{c.byGrapheme}, nil
}
