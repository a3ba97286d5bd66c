package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// checkClash refuses outputs that would replace one another or something that
// the command reads. An input that is a folder stands for the files in it that
// make a checkpoint.
func checkClash(outputs []string, inputs ...string) error {
	for i, out := range outputs {
		if out == "" || out == "-" {
			continue
		}
		if slices.ContainsFunc(outputs[:i], func(other string) bool { return other != "-" && sameFile(other, out) }) {
			return &xerr.Usage{Flag: out, Found: "given for two outputs", Want: "a file for each"}
		}
		for _, in := range inputs {
			if in != "" && (sameFile(in, out) || inCheckpoint(in, out)) {
				return &xerr.Usage{Flag: out, Found: "an output that would replace an input", Want: "the name of another file"}
			}
		}
	}
	return nil
}

// sameFile compares names for files that do not exist yet.
func sameFile(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	if errX == nil && errY == nil {
		return os.SameFile(x, y)
	}
	a, errX = filepath.Abs(a)
	b, errY = filepath.Abs(b)
	return errX == nil && errY == nil && a == b
}

// inCheckpoint says whether file is there and is one of those that folders of
// checkpoints hold.
func inCheckpoint(folder, file string) bool {
	info, err := os.Stat(folder)
	if err != nil || !info.IsDir() || !sameFile(folder, filepath.Dir(file)) {
		return false
	}
	if _, err := os.Stat(file); err != nil {
		return false
	}
	name := filepath.Base(file)
	for _, ext := range []string{".safetensors", ".gguf", ".bin", ".pt", ".index.json"} {
		if strings.HasSuffix(name, ext) {
			return true
		}
	}
	for _, start := range []string{"config", "generation_config", "tokenizer", "vocab", "merges", "special_tokens", "added_tokens"} {
		if strings.HasPrefix(name, start) {
			return true
		}
	}
	return false
}
