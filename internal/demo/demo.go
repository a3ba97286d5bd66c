// Package demo holds the model that `eigenhead scan demo` reads: a Llama of four
// layers in float16 with its configuration, its tokenizer and a text that it was
// not trained on, all embedded. tools/demo/train.py makes the files and prints
// tools/demo/train.log. The package hands out bytes; it knows nothing of what is
// in them.
package demo

import (
	"embed"
	"io/fs"
)

//go:embed config.json model.safetensors tokenizer.json tokenizer_config.json text.txt
var files embed.FS

// FS returns the demo's folder, laid out as Hugging Face lays out a checkpoint:
// config.json, model.safetensors, tokenizer.json, tokenizer_config.json; and
// text.txt beside them.
func FS() fs.FS { return files }

// Text returns the demo text, two paragraphs from the end of Newton's Opticks
// (1730), long enough for 512 tokens of the demo's tokenizer and held out from
// its training. The caller owns the bytes.
func Text() []byte {
	text, err := files.ReadFile("text.txt")
	if err != nil {
		panic("demo: embedded text.txt: " + err.Error()) // the build would have failed
	}
	return text
}
