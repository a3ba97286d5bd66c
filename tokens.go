package eigenhead

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/eigenhead/eigenhead/checkpoint"
	"github.com/eigenhead/eigenhead/internal/demo"
	"github.com/eigenhead/eigenhead/tokenizer"
)

// Tokens is a text as a model's own tokenizer cuts it.
type Tokens struct {
	IDs       []int    `json:"ids"` // without what the settings put at the ends
	Pieces    []string `json:"pieces"`
	BOS       *int     `json:"bos"` // the id that the file's own settings put in front; nil: none
	BOSSource string   `json:"-"`
	Kind      string   `json:"-"`
}

// Tokenize reads a text file with the tokenizer of source: a model file or
// folder, a GGUF vocabulary, a tokenizer.json, or Demo. special says whether
// special tokens are found in the text. The bytes are taken as they are.
func Tokenize(source, textFile string, special bool) (*Tokens, error) {
	text, err := os.ReadFile(textFile)
	if err != nil {
		return nil, cannotRead("--text", textFile, err)
	}
	tok, err := openTokenizer(source)
	if err != nil {
		return nil, err
	}
	ids, err := tok.EncodeStrict(text, special)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", textFile, err)
	}
	t := &Tokens{IDs: append([]int{}, ids...), Kind: tok.Kind()} // never null in JSON
	t.Pieces = make([]string, len(t.IDs))
	for i, id := range t.IDs {
		t.Pieces[i] = tok.Piece(id)
	}
	id, add, why := tok.BOS()
	if add {
		t.BOS = &id
	}
	t.BOSSource = why
	return t, nil
}

// openTokenizer finds a tokenizer without asking for weights.
func openTokenizer(name string) (*tokenizer.Tokenizer, error) {
	source, err := resolve(name)
	if err != nil {
		return nil, err
	}
	if source == Demo {
		return tokenizer.FromFolder(Demo, readFrom(demo.FS()))
	}
	if strings.EqualFold(filepath.Ext(source), ".json") {
		data, err := os.ReadFile(source)
		if err != nil {
			return nil, cannotRead("tokenizer", source, err)
		}
		return tokenizer.FromJSON(source, data)
	}
	info, err := os.Stat(source)
	if err == nil && info.IsDir() {
		if t, terr := tokenizer.FromFolder(source, readFrom(os.DirFS(source))); terr == nil {
			return t, nil
		}
	}
	c, err := checkpoint.Open(source)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	return tokenizerOf(source, c)
}

func readFrom(dir fs.FS) func(name string) ([]byte, error) {
	return func(name string) ([]byte, error) { return fs.ReadFile(dir, name) }
}
