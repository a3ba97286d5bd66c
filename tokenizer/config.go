package tokenizer

import (
	"encoding/json"
	"fmt"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// WithConfig returns t with what a tokenizer_config.json says about the tokens
// in front and behind: add_bos_token and add_eos_token, where they are there,
// win over tokenizer.json, and bos_token and eos_token name the tokens.
func (t *Tokenizer) WithConfig(file string, data []byte) (*Tokenizer, error) {
	var c struct {
		AddBOS *bool           `json:"add_bos_token"`
		BOS    json.RawMessage `json:"bos_token"`
		AddEOS *bool           `json:"add_eos_token"`
		EOS    json.RawMessage `json:"eos_token"`
	}
	if err := unmarshal(file, data, &c); err != nil {
		return nil, err
	}
	out := *t
	if err := out.bos.configure(&out, file, "bos", c.AddBOS, c.BOS); err != nil {
		return nil, err
	}
	if err := out.end.configure(&out, file, "eos", c.AddEOS, c.EOS); err != nil {
		return nil, err
	}
	return &out, nil
}

// configure takes a setting of a configuration file, nil where it has none.
func (b *bos) configure(t *Tokenizer, file, which string, add *bool, raw json.RawMessage) error {
	if add == nil {
		return nil
	}
	had := b.add
	b.source, b.add = fmt.Sprintf("%s: add_%s_token", file, which), *add
	if !*add || !isPresent(raw) && had {
		return nil // none, or the one of the post-processor
	}
	name, err := tokenName(file, which+"_token", raw)
	if err != nil {
		return err
	}
	id, ok := t.ids[name]
	if !ok {
		return &xerr.Format{File: file, What: which + "_token", Found: fmt.Sprintf("%q", name),
			Want: fmt.Sprintf("a token of the vocabulary, since add_%s_token is true", which)}
	}
	b.id = id
	return nil
}

// tokenName reads a token, which is a string or an object with its content.
func tokenName(file, key string, raw json.RawMessage) (string, error) {
	var name string
	if !isPresent(raw) || json.Unmarshal(raw, &name) == nil {
		return name, nil
	}
	var token struct {
		Content string `json:"content"`
	}
	err := unmarshal(file+": "+key, raw, &token)
	return token.Content, err
}
