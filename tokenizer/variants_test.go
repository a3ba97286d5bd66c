package tokenizer

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestVariants compares with the tokenizers library on small files that
// testdata/variants.py makes: one for each thing that a tokenizer.json can say
// and that is known here.
func TestVariants(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "variants.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	var head struct {
		Texts []string
		Bases map[string]map[string]json.RawMessage
	}
	if err := dec.Decode(&head); err != nil {
		t.Fatal(err)
	}
	count := 0
	for ; dec.More(); count++ {
		var v struct {
			Base, Name string
			Keys       map[string]json.RawMessage
			Model      map[string]json.RawMessage
			IDs        [][]int `json:"ids"`
			Special    [][]int `json:"special_ids"`
		}
		if err := dec.Decode(&v); err != nil {
			t.Fatal(err)
		}
		t.Run(v.Base+"/"+v.Name, func(t *testing.T) {
			tok, err := FromJSON("tokenizer.json", patched(t, head.Bases[v.Base], v.Keys, v.Model))
			if err != nil {
				t.Fatal(err)
			}
			for i, text := range head.Texts {
				if got := tok.Encode([]byte(text), false); !slices.Equal(got, v.IDs[i]) {
					t.Errorf("%q:\n got %v\nwant %v", text, got, v.IDs[i])
				}
				if got := tok.Encode([]byte(text), true); !slices.Equal(got, v.Special[i]) {
					t.Errorf("%q, special:\n got %v\nwant %v", text, got, v.Special[i])
				}
			}
		})
	}
	if count < 30 {
		t.Errorf("%d variants, want 30", count)
	}
}

// patched returns a tokenizer.json with some keys replaced.
func patched(t *testing.T, base, keys, model map[string]json.RawMessage) []byte {
	t.Helper()
	out := map[string]json.RawMessage{}
	for k, v := range base {
		out[k] = v
	}
	for k, v := range keys {
		out[k] = v
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(out["model"], &m); err != nil {
		t.Fatal(err)
	}
	for k, v := range model {
		m[k] = v
	}
	var err error
	if out["model"], err = json.Marshal(m); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
