package tokenizer

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// jsonModel sets up the model for text that pre splits.
func (t *Tokenizer) jsonModel(file string, m *modelJSON, pre preTokenizer) error {
	unk, err := t.jsonUnk(file, m)
	if err != nil {
		return err
	}
	switch {
	case m.Type == "WordPiece":
		return t.jsonWordPiece(file, m, unk)
	case m.Type == "Unigram":
		return t.jsonUnigram(file, m, unk)
	case pre.byteLevel:
		return t.jsonByteLevel(file, m, pre, unk)
	}
	return t.jsonChars(file, m, pre, unk)
}

// jsonUnk returns the unknown token, noID if there is none.
func (t *Tokenizer) jsonUnk(file string, m *modelJSON) (int32, error) {
	if m.Type == "Unigram" {
		if m.UnkID == nil {
			return noID, nil
		}
		if *m.UnkID < 0 || *m.UnkID >= int64(len(t.vocab)) {
			return 0, &xerr.Format{File: file, What: "model.unk_id", Found: *m.UnkID, Want: fmt.Sprintf("0 to %d", len(t.vocab)-1)}
		}
		return int32(*m.UnkID), nil
	}
	if m.Unk == nil {
		return noID, nil
	}
	id, ok := t.ids[*m.Unk]
	if !ok {
		return 0, &xerr.Format{File: file, What: "model.unk_token", Found: fmt.Sprintf("%q", *m.Unk), Want: "a token of the vocabulary"}
	}
	return id, nil
}

// jsonByteLevel sets up byte-level BPE.
func (t *Tokenizer) jsonByteLevel(file string, m *modelJSON, pre preTokenizer, unk int32) error {
	if text(m.Prefix) != "" || text(m.Suffix) != "" {
		return &xerr.Unsupported{File: file, What: "model.continuing_subword_prefix or end_of_word_suffix", Found: text(m.Prefix) + text(m.Suffix),
			Want: "none in byte-level vocabularies", Hint: "pass ids instead of text"}
	}
	merges, err := t.readMerges(file, m)
	if err != nil {
		return err
	}
	t.decode(fromAlphabet)
	t.kind = "byte-level BPE (" + pre.name + ")"
	b := &byteBPE{bytes: alphabetTokens(t.vocab), ranks: merges, unk: unk}
	if m.IgnoreMerges {
		b.whole = make(map[string]int32, len(t.vocab))
		for piece, id := range t.vocab {
			b.whole[fromAlphabet(piece)] = id
		}
	}
	t.model = b
	return nil
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// jsonChars sets up BPE over characters.
func (t *Tokenizer) jsonChars(file string, m *modelJSON, pre preTokenizer, unk int32) error {
	merges, err := t.readMerges(file, m)
	if err != nil {
		return err
	}
	c := &charBPE{ids: t.vocab, ranks: merges, unk: unk, fuse: m.FuseUnk, whole: m.IgnoreMerges, prefix: text(m.Prefix), suffix: text(m.Suffix)}
	if m.ByteFallback {
		c.fallback = t.jsonBytes()
	}
	t.decode(func(piece string) string {
		return strings.Replace(plainSpaces(piece), c.suffix, " ", min(1, len(c.suffix)))
	})
	t.kind = "BPE over characters (tokenizer.json)"
	if pre.meta || len(t.vocab) > 0 && c.fallback != nil {
		t.kind = "SentencePiece BPE (tokenizer.json)"
	}
	t.model = c
	if c.prefix == "" && c.suffix == "" && !c.whole {
		t.split = withMetaStage(t.split, t.vocab)
	}
	return nil
}

// jsonBytes returns the tokens <0xNN> and marks them as bytes.
func (t *Tokenizer) jsonBytes() *[256]int32 {
	list, _ := byteTokens(t.vocab)
	for _, id := range list {
		if id != noID {
			t.kinds[id] = byteToken
		}
	}
	return &list
}

// jsonWordPiece sets up WordPiece.
func (t *Tokenizer) jsonWordPiece(file string, m *modelJSON, unk int32) error {
	list, err := newWords(file+": model.vocab", t.vocab)
	if err != nil {
		return err
	}
	w := &wordPiece{words: list, rest: "##", unk: unk, maxRunes: 100} // the library's defaults
	if m.Prefix != nil {
		w.rest = *m.Prefix
	}
	if m.MaxRunes != nil {
		w.maxRunes = *m.MaxRunes
	}
	if w.maxRunes <= 0 || unk == noID {
		return &xerr.Unsupported{File: file, What: "model.max_input_chars_per_word", Found: w.maxRunes, Want: "a number above 0, and an unk_token"}
	}
	t.decode(func(piece string) string {
		if w.rest != "" && strings.HasPrefix(piece, w.rest) {
			return piece[len(w.rest):]
		}
		return " " + piece
	})
	t.kind, t.model, t.strip = "WordPiece", w, true
	return nil
}

// unigramPiece is a token and its score, written as a pair.
type unigramPiece struct {
	piece string
	score float64
}

func (p *unigramPiece) UnmarshalJSON(data []byte) error {
	var pair []json.RawMessage
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return fmt.Errorf("%d parts, want token and score", len(pair))
	}
	if err := json.Unmarshal(pair[0], &p.piece); err != nil {
		return err
	}
	return json.Unmarshal(pair[1], &p.score)
}

// unigramVocab reads a list of tokens and scores; the places are the ids.
func unigramVocab(file string, m *modelJSON) (map[string]int64, error) {
	var list []unigramPiece
	if err := unmarshal(file+": model.vocab", m.Vocab, &list); err != nil {
		return nil, err
	}
	vocab := make(map[string]int64, len(list))
	for i, p := range list {
		if _, twice := vocab[p.piece]; twice {
			return nil, &xerr.Format{File: file, What: fmt.Sprintf("token %d", i), Found: fmt.Sprintf("%q a second time", p.piece), Want: "every token once"}
		}
		vocab[p.piece] = int64(i)
		m.scores = append(m.scores, p.score)
	}
	return vocab, nil
}

// jsonUnigram sets up SentencePiece's unigram model.
func (t *Tokenizer) jsonUnigram(file string, m *modelJSON, unk int32) error {
	worst := math.Inf(1)
	for _, s := range m.scores {
		worst = min(worst, s)
	}
	u, err := newUnigram(file+": model.vocab", t.vocab, m.scores, unk, worst)
	if err != nil {
		return err
	}
	if m.ByteFallback {
		u.bytes = t.jsonBytes()
	}
	t.decode(plainSpaces)
	t.kind, t.model = "SentencePiece Unigram (tokenizer.json)", u
	return nil
}

// readMerges reads merges, written as "a b" or as ["a", "b"].
func (t *Tokenizer) readMerges(file string, m *modelJSON) (ranks, error) {
	file += ": model.merges"
	list := mergeList{file: file, ids: t.vocab, last: true, out: ranks{}, prefix: text(m.Prefix)}
	if !isPresent(m.Merges) {
		return list.out, nil
	}
	var pairs [][]string
	if json.Unmarshal(m.Merges, &pairs) == nil {
		for i, p := range pairs {
			if len(p) != 2 {
				return nil, &xerr.Format{File: file, What: fmt.Sprintf("merge %d", i), Found: fmt.Sprintf("%d parts", len(p)), Want: 2}
			}
			if err := list.add(i, p[0], p[1]); err != nil {
				return nil, err
			}
		}
		return list.out, nil
	}
	var lines []string
	if err := unmarshal(file, m.Merges, &lines); err != nil {
		return nil, err
	}
	for i, line := range lines {
		if err := list.addLine(i, line); err != nil {
			return nil, err
		}
	}
	return list.out, nil
}
