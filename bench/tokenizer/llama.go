package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/eigenhead/eigenhead/checkpoint"
	"github.com/eigenhead/eigenhead/tokenizer"
)

//go:embed llama.mjs
var llamaScript string

// compareLlama compares the vocabularies of GGUF files with llama.cpp. dir is
// where node-llama-cpp is installed.
func compareLlama(python, dir string, n, seed, show int, files []string) (bool, error) {
	texts, err := exec.Command(python, "-c", reference, "texts", strconv.Itoa(n), strconv.Itoa(seed)).Output()
	if err != nil {
		return false, err
	}
	var list []string
	if err := json.Unmarshal(texts, &list); err != nil {
		return false, err
	}
	good := true
	for _, file := range files {
		differ, err := llamaDiffers(dir, file, texts, list, show)
		if err != nil {
			return false, err
		}
		fmt.Printf("%s: %d of %d texts differ from llama.cpp\n", filepath.Base(file), differ, len(list))
		good = good && differ == 0
	}
	return good, nil
}

func llamaDiffers(dir, file string, texts []byte, list []string, show int) (differ int, err error) {
	file, err = filepath.Abs(file)
	if err != nil {
		return 0, err
	}
	c, err := checkpoint.Open(file)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	tok, err := tokenizer.FromGGUF(c.KV())
	if err != nil {
		return 0, err
	}
	script := filepath.Join(dir, "llama.mjs")
	if err := os.WriteFile(script, []byte(llamaScript), 0o600); err != nil {
		return 0, err
	}
	defer os.Remove(script)
	cmd := exec.Command("node", "llama.mjs", file)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(texts)
	var log bytes.Buffer // it reports every vocabulary without a model as a failure
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("node llama.mjs %s: %w\n%s", file, err, log.Bytes())
	}
	var want [][2][]int
	if err := json.Unmarshal(out, &want); err != nil {
		return 0, err
	}
	for i, text := range list {
		for k, special := range [2]bool{false, true} {
			if got := tok.Encode([]byte(text), special); !slices.Equal(got, want[i][k]) {
				if differ++; differ <= show {
					fmt.Printf("%s, special %v: %q\n got %v\nwant %v\n", filepath.Base(file), special, text, got, want[i][k])
				}
				break
			}
		}
	}
	return differ, nil
}
