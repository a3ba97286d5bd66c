package tokenizer

import (
	"encoding/json"
	"fmt"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// WithConfig returns t with what a tokenizer_config.json says about the token
// in front: add_bos_token, where it is there, wins over tokenizer.json, and
// bos_token names the token.
func (t *Tokenizer) WithConfig(file string, data []byte) (*Tokenizer, error) {
	var c struct {
		Add *bool           `json:"add_bos_token"`
		BOS json.RawMessage `json:"bos_token"`
	}
	if err := unmarshal(file, data, &c); err != nil {
		return nil, err
	}
	out := *t
	if c.Add == nil {
		return &out, nil
	}
	out.bos.source = file + ": add_bos_token"
	out.bos.add = *c.Add
	if !*c.Add || !isPresent(c.BOS) && t.bos.add {
		return &out, nil // none, or the one of the post-processor
	}
	name, err := tokenName(file, c.BOS)
	if err != nil {
		return nil, err
	}
	id, ok := t.ids[name]
	if !ok {
		return nil, &xerr.Format{File: file, What: "bos_token", Found: fmt.Sprintf("%q", name),
			Want: "a token of the vocabulary, since add_bos_token is true"}
	}
	out.bos.id = id
	return &out, nil
}

// tokenName reads a token, which is a string or an object with its content.
func tokenName(file string, raw json.RawMessage) (string, error) {
	var name string
	if !isPresent(raw) || json.Unmarshal(raw, &name) == nil {
		return name, nil
	}
	var token struct {
		Content string `json:"content"`
	}
	err := unmarshal(file+": bos_token", raw, &token)
	return token.Content, err
}
