package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"

	"github.com/eigenhead/eigenhead/internal/safetensors"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// fileJSON is a tokenizer.json, as far as it is read here.
type fileJSON struct {
	Added         []addedJSON     `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Model         *modelJSON      `json:"model"`
}

type addedJSON struct {
	ID         int64  `json:"id"`
	Content    string `json:"content"`
	Special    bool   `json:"special"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	SingleWord bool   `json:"single_word"`
	Normalized *bool  `json:"normalized"` // absent: true unless special
}

type modelJSON struct {
	Type         string          `json:"type"`
	Vocab        json.RawMessage `json:"vocab"`
	Merges       json.RawMessage `json:"merges"`
	Dropout      *float64        `json:"dropout"`
	Unk          *string         `json:"unk_token"`
	Prefix       *string         `json:"continuing_subword_prefix"`
	Suffix       *string         `json:"end_of_word_suffix"`
	FuseUnk      bool            `json:"fuse_unk"`
	ByteFallback bool            `json:"byte_fallback"`
	IgnoreMerges bool            `json:"ignore_merges"`
	UnkID        *int64          `json:"unk_id"`
	MaxRunes     *int            `json:"max_input_chars_per_word"`

	scores []float64 // of Unigram
}

// FromJSON reads a tokenizer.json: BPE, byte-level or over characters, Unigram,
// or WordPiece. Normalizers, pre-tokenizers and post-processors that are not
// known are refused by name. Ids are those of the tokenizers library; truncation
// and padding are not done. WithConfig adds tokenizer_config.json.
func FromJSON(file string, data []byte) (*Tokenizer, error) {
	var f fileJSON
	if err := unmarshal(file, data, &f); err != nil {
		return nil, err
	}
	if err := checkModel(file, f.Model); err != nil {
		return nil, err
	}
	t, err := jsonVocab(file, &f)
	if err != nil {
		return nil, err
	}
	if err := t.readNormalizer(file, f.Normalizer); err != nil {
		return nil, err
	}
	pre, err := readPreTokenizer(file, f.PreTokenizer)
	if err != nil {
		return nil, err
	}
	t.split, t.strip = pre.stages, t.strip || pre.prefix || pre.words
	if err := t.jsonModel(file, f.Model, pre); err != nil {
		return nil, err
	}
	if err := t.jsonAdded(file, f.Added); err != nil {
		return nil, err
	}
	if err := t.readPostProcessor(file, f.PostProcessor); err != nil {
		return nil, err
	}
	return t, nil
}

// unmarshal decodes JSON, with an error that says where it fails.
func unmarshal(file string, data []byte, v any) error {
	err := json.Unmarshal(data, v)
	if err == nil {
		return nil
	}
	if other := safetensors.Sniff(file, data); other != nil { // a Git LFS pointer, a web page
		return other
	}
	what := "json"
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	if errors.As(err, &syntax) {
		what = fmt.Sprintf("json, byte %d", syntax.Offset)
	} else if errors.As(err, &kind) && kind.Field != "" {
		what = fmt.Sprintf("json, key %q", kind.Field)
	}
	return &xerr.Format{File: file, What: what, Found: err.Error(), Want: "a sound file"}
}

// checkModel refuses what would change ids and is not done here.
func checkModel(file string, m *modelJSON) error {
	if m == nil {
		return &xerr.Format{File: file, What: `key "model"`, Found: "missing", Want: "a vocabulary with merges"}
	}
	refuse := func(what string, found, want any) error {
		return &xerr.Unsupported{File: file, What: what, Found: found, Want: want, Hint: "pass ids instead of text"}
	}
	if m.Type == "" { // files older than the key
		switch {
		case isPresent(m.Merges):
			m.Type = "BPE"
		case bytes.HasPrefix(bytes.TrimSpace(m.Vocab), []byte("[")):
			m.Type = "Unigram"
		case m.MaxRunes != nil:
			m.Type = "WordPiece"
		}
	}
	switch {
	case m.Type != "BPE" && m.Type != "Unigram" && m.Type != "WordPiece":
		return refuse("model.type", fmt.Sprintf("%q", m.Type), `"BPE", "Unigram" or "WordPiece"`)
	case m.Dropout != nil && *m.Dropout != 0:
		return refuse("model.dropout", *m.Dropout, "none: it makes ids random")
	case !isPresent(m.Vocab):
		return &xerr.Format{File: file, What: `key "model.vocab"`, Found: "missing", Want: "tokens with their ids"}
	}
	return nil
}

// isPresent reports whether a JSON value is there and not null.
func isPresent(raw json.RawMessage) bool { return len(raw) > 0 && !bytes.Equal(raw, []byte("null")) }

// maxHoles bounds ids that have no token: real files have a few.
func maxHoles(tokens int) int64 { return int64(tokens) + 1<<16 }

// jsonVocab reads tokens and added tokens.
func jsonVocab(file string, f *fileJSON) (*Tokenizer, error) {
	var vocab map[string]int64
	if f.Model.Type == "Unigram" {
		var err error
		if vocab, err = unigramVocab(file, f.Model); err != nil {
			return nil, err
		}
	} else if err := unmarshal(file+": model.vocab", f.Model.Vocab, &vocab); err != nil {
		return nil, err
	}
	known := make(map[string]int32, len(vocab))
	for piece, id := range vocab {
		known[piece] = int32(id) // vocabByID has checked it by the time it is used
	}
	for i, a := range f.Added {
		if a.Content == "" {
			return nil, &xerr.Format{File: file, What: fmt.Sprintf("added_tokens[%d].content", i), Found: "empty", Want: "text"}
		}
		if id, ok := vocab[a.Content]; ok && id != a.ID {
			return nil, &xerr.Format{File: file, What: fmt.Sprintf("added token %q", a.Content),
				Found: fmt.Sprintf("id %d", a.ID), Want: fmt.Sprintf("%d, its id in model.vocab", id)}
		}
		vocab[a.Content] = a.ID
	}
	t, err := vocabByID(file, vocab)
	if err != nil {
		return nil, err
	}
	t.vocab = known
	return t, nil
}

// vocabByID turns a map of ids into a list.
func vocabByID(file string, vocab map[string]int64) (*Tokenizer, error) {
	limit := int64(len(vocab)) + maxHoles(len(vocab))
	size := int64(0)
	for piece, id := range vocab {
		if id < 0 || id >= limit {
			return nil, &xerr.Format{File: file, What: fmt.Sprintf("token %q", piece), Found: fmt.Sprintf("id %d", id),
				Want: fmt.Sprintf("an id from 0 to %d, with %d tokens", limit-1, len(vocab))}
		}
		size = max(size, id+1)
	}
	pieces := make([]string, size)
	names := make([]string, 0, len(vocab))
	for piece := range vocab {
		names = append(names, piece)
	}
	sort.Strings(names) // so that errors do not depend on the map's order
	for _, piece := range names {
		id := vocab[piece]
		if old := pieces[id]; old != "" {
			return nil, &xerr.Format{File: file, What: fmt.Sprintf("id %d", id), Found: fmt.Sprintf("%q and %q", old, piece),
				Want: "one token for each id"}
		}
		pieces[id] = piece
	}
	return newVocab(file, pieces, make([]tokenKind, size))
}

// jsonAdded makes the added tokens found.
func (t *Tokenizer) jsonAdded(file string, list []addedJSON) error {
	for _, a := range list {
		id := t.ids[a.Content]
		t.kinds[id] = userToken
		if a.Special {
			t.kinds[id] = controlToken
		}
		t.decoded[id] = a.Content
		token := addedToken{id: id, special: a.Special, lstrip: a.LStrip, rstrip: a.RStrip, word: a.SingleWord}
		normalized := !a.Special
		if a.Normalized != nil {
			normalized = *a.Normalized
		}
		// Names are looked for in the normalized text as they would be
		// normalized themselves. Without a normalizer that is still a second
		// pass: a name of the first pass wins wherever it lies.
		names, name := &t.added.raw, a.Content
		if normalized {
			names, name = &t.added.normalized, string(t.norm.apply([]byte(name)))
		}
		if err := names.insert(file, name, token); err != nil {
			return err
		}
	}
	return nil
}
