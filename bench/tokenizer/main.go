// Command tokenizer compares eigenhead's tokenizers with the PyPI tokenizers
// library, ids on generated texts and time on one thread, and with llama.cpp,
// ids only. It needs Python with that library, and Node.js with node-llama-cpp;
// it knows nothing of models.
//
//	go run ./bench/tokenizer -n 100000 FILE...        # parity; tokenizer.json
//	go run ./bench/tokenizer -llama DIR FILE...       # parity; GGUF; DIR has node_modules
//	go run ./bench/tokenizer -speed TEXT FILE...      # throughput; tokenizer.json
//
// Texts whose ids differ are printed, the first few of each file, and make the
// exit status 1; so does a throughput below the library's.
package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/eigenhead/eigenhead/tokenizer"
)

//go:embed reference.py
var reference string

func main() {
	n := flag.Int("n", 2000, "number of generated texts")
	seed := flag.Int("seed", 1, "seed of the texts")
	python := flag.String("python", "python3", "Python with the tokenizers library")
	speed := flag.String("speed", "", "measure the time for this file instead")
	llama := flag.String("llama", "", "compare GGUF files with llama.cpp; folder where node-llama-cpp is installed")
	show := flag.Int("show", 5, "differing texts to print for each file")
	flag.Parse()
	var ok bool
	var err error
	switch {
	case *speed != "":
		ok, err = compareSpeed(*python, *speed, flag.Args())
	case *llama != "":
		ok, err = compareLlama(*python, *llama, *n, *seed, *show, flag.Args())
	default:
		ok, err = compareIDs(*python, *n, *seed, *show, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

func open(file string) (*tokenizer.Tokenizer, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return tokenizer.FromJSON(file, data)
}

// compareIDs runs the reference and compares line by line.
func compareIDs(python string, n, seed, show int, files []string) (bool, error) {
	var toks []*tokenizer.Tokenizer
	for _, file := range files {
		t, err := open(file)
		if err != nil {
			return false, err
		}
		toks = append(toks, t)
	}
	cmd := exec.Command(python, append([]string{"-c", reference, "generate", strconv.Itoa(n), strconv.Itoa(seed)}, files...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20)
	count, differ := 0, make([]int, len(files))
	for ; lines.Scan(); count++ {
		var line struct {
			Text string
			IDs  [][2][]int `json:"ids"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return false, err
		}
		for i, t := range toks {
			for k, special := range [2]bool{false, true} {
				if got := t.Encode([]byte(line.Text), special); !slices.Equal(got, line.IDs[i][k]) {
					if differ[i]++; differ[i] <= show {
						fmt.Printf("%s, special %v: %q\n got %v\nwant %v\n", filepath.Base(files[i]), special, line.Text, got, line.IDs[i][k])
					}
					break
				}
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		return false, err
	}
	good := true
	for i, file := range files {
		fmt.Printf("%s: %d of %d texts differ\n", filepath.Base(file), differ[i], count)
		good = good && differ[i] == 0
	}
	return good, lines.Err()
}
