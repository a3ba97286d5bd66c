package tokenizer

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// ggufScores reads one score for each token.
func (t *Tokenizer) ggufScores(kv KV) ([]float64, error) {
	scores, err := kv.Floats(keyScores)
	if err != nil {
		return nil, err
	}
	if len(scores) != len(t.pieces) {
		return nil, &xerr.Format{File: ggufKey(keyScores), What: "length", Found: len(scores),
			Want: fmt.Sprintf("%d, that of %s", len(t.pieces), keyTokens)}
	}
	return scores, nil
}

// ggufBool reads a setting that may be missing.
func (t *Tokenizer) ggufBool(kv KV, key string, missing bool) (bool, error) {
	if !kv.Has(key) {
		t.defaults = append(t.defaults, fmt.Sprintf("%s is missing: %v, as in llama.cpp", key, missing))
		return missing, nil
	}
	return kv.Bool(key)
}

// ggufUnigram sets up SentencePiece Unigram.
// Source: llama.cpp, llm_tokenizer_ugm.
func (t *Tokenizer) ggufUnigram(kv KV) error {
	scores, err := t.ggufScores(kv)
	if err != nil {
		return err
	}
	unk, err := t.ggufUnk(kv)
	if err != nil {
		return err
	}
	if unk == noID && len(t.pieces) > 2 {
		unk = 2
		t.defaults = append(t.defaults, keyUnk+" is missing: 2, as in llama.cpp")
	}
	vocab, worst := make(map[string]int32, len(t.pieces)), math.Inf(1)
	user := new(trie)
	for i, p := range t.pieces {
		switch k := t.kinds[i]; {
		case p == "" || k != normalToken && k != userToken:
			continue
		case k == userToken:
			scores[i] = 0
			if err := user.insert(ggufKey(keyTokens), p, addedToken{id: int32(i)}); err != nil {
				return err
			}
		default:
			worst = min(worst, scores[i])
		}
		vocab[p] = int32(i)
	}
	if math.IsInf(worst, 1) {
		return &xerr.Format{File: ggufKey(keyTypes), What: "tokens of text", Found: "none", Want: "some"}
	}
	u, err := newUnigram(ggufKey(keyScores), vocab, scores, unk, worst)
	if err != nil {
		return err
	}
	if err := t.ggufCharsmap(kv, user); err != nil {
		return err
	}
	t.decode(plainSpaces)
	t.vocab, t.kind, t.model = vocab, "SentencePiece Unigram", u
	return nil
}

// ggufCharsmap sets up SentencePiece's normalizer: the compiled map, then
// spaces.
func (t *Tokenizer) ggufCharsmap(kv KV, user *trie) error {
	c := new(charsmap)
	if kv.Has(keyMap) {
		numbers, err := kv.Ints(keyMap)
		if err != nil {
			return err
		}
		data := make([]byte, len(numbers))
		for i, n := range numbers {
			data[i] = byte(n) // of u8 or i8
		}
		if c, err = newCharsmap(ggufKey(keyMap), data); err != nil {
			return err
		}
	}
	front, err := t.ggufBool(kv, keySpace, false)
	if err != nil {
		return err
	}
	merge, err := t.ggufBool(kv, keyMerge, false)
	if err != nil {
		return err
	}
	t.strip = front
	t.norm = normalizer{
		func(text []byte) []byte { return c.byPrefix(text, user) },
		func(text []byte) []byte { return sentenceSpaces(text, front, merge) },
	}
	return nil
}

// sentenceSpaces writes spaces as ▁: one in front where asked for, and for each
// run of them one, in front of what follows, where they are merged.
func sentenceSpaces(text []byte, front, merge bool) []byte {
	out := make([]byte, 0, len(text)+8)
	begun, inWord := false, false
	for _, b := range text {
		if b == ' ' {
			inWord = false
			if !merge {
				out = append(out, meta...)
			}
			continue
		}
		if !inWord && (merge || front && !begun) {
			out = append(out, meta...)
			begun = true
		}
		inWord = true
		out = append(out, b)
	}
	return out
}

// ggufWordPiece sets up WordPiece. Its file spells what begins a word with ▁ in
// front, and what continues it without.
// Source: llama.cpp, llm_tokenizer_wpm; the normalizer is BERT's own.
func (t *Tokenizer) ggufWordPiece(kv KV) error {
	unk, err := t.ggufUnk(kv)
	if err != nil {
		return err
	}
	if unk == noID && len(t.pieces) > 100 {
		unk = 100
		t.defaults = append(t.defaults, keyUnk+" is missing: 100, as in llama.cpp")
	}
	lower, err := t.ggufBool(kv, keyLower, true)
	if err != nil {
		return err
	}
	accentsToo, err := t.ggufBool(kv, keyAccent, lower)
	if err != nil {
		return err
	}
	vocab := make(map[string]int32, len(t.pieces))
	for i, p := range t.pieces {
		if t.kinds[i] == normalToken && utf8.ValidString(p) && p != "" {
			vocab[p] = int32(i)
		}
	}
	w, err := newWords(ggufKey(keyTokens), vocab)
	if err != nil {
		return err
	}
	t.norm = bertNormalizer(true, true, accentsToo, lower)
	var pre preTokenizer
	pre.addPart(partJSON{Type: "BertPreTokenizer"})
	t.split, t.strip = pre.stages, true
	t.decode(func(piece string) string {
		if strings.HasPrefix(piece, meta) {
			return " " + piece[len(meta):]
		}
		return piece
	})
	t.vocab, t.kind = vocab, "WordPiece"
	t.model = &wordPiece{words: w, start: meta, unk: unk}
	return nil
}
