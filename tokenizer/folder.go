package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// FromFolder reads the vocabulary that lies beside a checkpoint, through read,
// which returns the bytes of one file of the folder or an error that wraps
// fs.ErrNotExist. In this order: tokenizer.json (with tokenizer_config.json);
// vocab.json, a list of characters or, with merges.txt, GPT-2's pair;
// tokenizer.bin or tokN.bin of llama2.c and tokN.vocab of SentencePiece, N
// being vocab_size of config.json. dir is for errors only.
func FromFolder(dir string, read func(name string) ([]byte, error)) (*Tokenizer, error) {
	f := folder{dir: strings.TrimSuffix(dir, "/"), read: read}
	for _, try := range []func() (*Tokenizer, error){f.json, f.vocab, f.lists} {
		if t, err := try(); t != nil || err != nil {
			return t, err
		}
	}
	if data, err := f.get("tokenizer.model"); err != nil || data != nil {
		if err == nil {
			err = &xerr.Unsupported{File: f.path("tokenizer.model"), What: "SentencePiece model", Want: "tokenizer.json beside it",
				Hint: "save the tokenizer with transformers to get a tokenizer.json, or pass ids instead of text"}
		}
		return nil, err
	}
	return nil, &xerr.Format{File: f.dir, What: "vocabulary", Found: "none",
		Want: strings.Join(f.tried[:len(f.tried)-1], ", "), Hint: "pass ids instead of text"}
}

// folder looks for files and remembers which.
type folder struct {
	dir   string
	read  func(string) ([]byte, error)
	tried []string
}

func (f *folder) path(name string) string { return f.dir + "/" + name }

// get returns the bytes of a file, nil if it is absent.
func (f *folder) get(name string) ([]byte, error) {
	f.tried = append(f.tried, name)
	data, err := f.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.path(name), err)
	}
	if data == nil {
		data = []byte{}
	}
	return data, nil
}

func (f *folder) json() (*Tokenizer, error) {
	data, err := f.get("tokenizer.json")
	if data == nil || err != nil {
		return nil, err
	}
	t, err := FromJSON(f.path("tokenizer.json"), data)
	if err != nil {
		return nil, err
	}
	config, err := f.get("tokenizer_config.json")
	if config == nil || err != nil {
		return t, err
	}
	return t.WithConfig(f.path("tokenizer_config.json"), config)
}

func (f *folder) vocab() (*Tokenizer, error) {
	data, err := f.get("vocab.json")
	if data == nil || err != nil {
		return nil, err
	}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		return FromVocabList(f.path("vocab.json"), data)
	}
	merges, err := f.get("merges.txt")
	if err != nil {
		return nil, err
	}
	if merges == nil {
		return nil, &xerr.Format{File: f.path("vocab.json"), What: "merges.txt beside it", Found: "missing",
			Want: "the merges of its tokens", Hint: "fetch merges.txt too, or pass ids instead of text"}
	}
	return FromMerges(f.path("vocab.json"), data, f.path("merges.txt"), merges)
}

func (f *folder) lists() (*Tokenizer, error) {
	if data, err := f.get("tokenizer.bin"); data != nil || err != nil {
		if err != nil {
			return nil, err
		}
		return FromLlama2C(f.path("tokenizer.bin"), data)
	}
	config, err := f.get("config.json")
	f.tried = f.tried[:len(f.tried)-1] // not a vocabulary
	if config == nil || err != nil {
		return nil, err
	}
	var c struct {
		Size int `json:"vocab_size"`
	}
	if json.Unmarshal(config, &c) != nil || c.Size <= 0 {
		return nil, nil // whoever needs config.json says what is wrong with it
	}
	name := fmt.Sprintf("tok%d.bin", c.Size)
	if data, err := f.get(name); data != nil || err != nil {
		if err != nil {
			return nil, err
		}
		return FromLlama2C(f.path(name), data)
	}
	name = fmt.Sprintf("tok%d.vocab", c.Size)
	data, err := f.get(name)
	if data == nil || err != nil {
		return nil, err
	}
	return FromSentencePieceListing(f.path(name), data)
}
