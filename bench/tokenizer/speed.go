package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/eigenhead/eigenhead/tokenizer"
)

// compareSpeed times both on one thread, the best of five passes each: over the
// text as a whole, and line by line, which suits the library better.
func compareSpeed(python, text string, files []string) (bool, error) {
	runtime.GOMAXPROCS(1)
	data, err := os.ReadFile(text)
	if err != nil {
		return false, err
	}
	good := true
	for _, file := range files {
		t, err := open(file)
		if err != nil {
			return false, err
		}
		out, err := exec.Command(python, "-c", reference, "speed", text, file).Output()
		if err != nil {
			return false, err
		}
		var theirs struct {
			Seconds [2]float64
			IDs     [2]int `json:"ids"`
		}
		if err := json.Unmarshal(out, &theirs); err != nil {
			return false, err
		}
		mb := float64(len(data)) / 1e6
		for k, parts := range [2][][]byte{{data}, bytes.SplitAfter(data, []byte("\n"))} {
			best, ids := fastest(t, parts)
			ratio := theirs.Seconds[k] / best.Seconds()
			fmt.Printf("%-28s %-5s %6.1f MB/s, tokenizers %6.1f MB/s: %5.2f times (%d ids, %d)\n", filepath.Base(file),
				[2]string{"whole", "lines"}[k], mb/best.Seconds(), mb/theirs.Seconds[k], ratio, ids, theirs.IDs[k])
			good = good && ratio >= 1 && ids == theirs.IDs[k]
		}
	}
	return good, nil
}

func fastest(t *tokenizer.Tokenizer, parts [][]byte) (best time.Duration, ids int) {
	best = time.Duration(1 << 62)
	for range 5 {
		start := time.Now()
		ids = 0
		for _, p := range parts {
			ids += len(t.Encode(p, true))
		}
		best = min(best, time.Since(start))
	}
	return best, ids
}
