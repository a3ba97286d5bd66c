package main

import (
	"encoding/json"
	"fmt"

	"github.com/eigenhead/eigenhead"
)

// tokenizeCmd turns text into ids.
type tokenizeCmd struct {
	Source  string `arg:"" name:"model" help:"Model file or folder, GGUF vocabulary, tokenizer.json, or \"demo\"."`
	Text    string `required:"" placeholder:"FILE" help:"Text to tokenize."`
	Special bool   `help:"Find special tokens, such as <|endoftext|>, in the text."`
	JSON    string `name:"json" placeholder:"FILE" help:"Write {ids, pieces, bos} as JSON (- for standard output)."`
}

// Help is the long help, with examples that work as they stand.
func (tokenizeCmd) Help() string {
	return `The ids are those of the text alone; the id that the file's own settings put in front is
printed beside them and not among them.

Examples:
  eigenhead tokenize demo --text README.md
  eigenhead tokenize model.gguf --text wiki.txt --json -
  eigenhead tokenize tokenizer.json --text chat.txt --special`
}

// Run prints one piece and its id a line, or JSON.
func (c *tokenizeCmd) Run(e *env) error {
	if err := checkClash([]string{c.JSON}, c.Source, c.Text); err != nil {
		return err
	}
	t, err := eigenhead.Tokenize(c.Source, c.Text, c.Special)
	if err != nil {
		return err
	}
	if c.JSON != "" {
		return e.writeFile(c.JSON, func(w writer) error {
			enc := json.NewEncoder(w)
			enc.SetEscapeHTML(false)
			return enc.Encode(t)
		})
	}
	for i, id := range t.IDs {
		if _, err := fmt.Fprintf(e.stdout, "%d\t%q\n", id, t.Pieces[i]); err != nil {
			return err
		}
	}
	bos := "none is put in front"
	if t.BOS != nil {
		bos = fmt.Sprintf("%d is put in front", *t.BOS)
	}
	e.say("%d tokens (%s); BOS: %s (%s)", len(t.IDs), t.Kind, bos, t.BOSSource)
	return nil
}
