package demo

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"regexp"
	"testing"
)

const (
	maxBytes = 2_000_000 // what the binary may carry for the demo
	logFile  = "../../tools/demo/train.log"
)

func TestSize(t *testing.T) {
	var total int64
	err := fs.WalkDir(FS(), ".", func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if total > maxBytes {
		t.Errorf("embedded files have %d bytes, want at most %d", total, maxBytes)
	}
}

// TestFilesAreWhatTheLogSays ties every embedded file to the training run whose
// log is in the repository.
func TestFilesAreWhatTheLogSays(t *testing.T) {
	log, err := os.ReadFile(logFile)
	if err != nil {
		t.Fatal(err)
	}
	logged := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^sha256 ([0-9a-f]{64})  (\S+)$`).FindAllSubmatch(log, -1) {
		logged[string(m[2])] = string(m[1])
	}
	entries, err := fs.ReadDir(FS(), ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := fs.ReadFile(FS(), e.Name())
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		if got := hex.EncodeToString(sum[:]); got != logged[e.Name()] {
			t.Errorf("%s: sha256 %s, want %q of %s", e.Name(), got, logged[e.Name()], logFile)
		}
	}
	if len(entries) != len(logged) {
		t.Errorf("%d embedded files, want the %d that %s lists", len(entries), len(logged), logFile)
	}
}

func TestConfigIsJSON(t *testing.T) {
	for _, name := range []string{"config.json", "tokenizer.json", "tokenizer_config.json"} {
		data, err := fs.ReadFile(FS(), name)
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(data) {
			t.Errorf("%s: not JSON", name)
		}
	}
}

func TestTextBelongsToTheCaller(t *testing.T) {
	a := Text()
	want := bytes.Clone(a)
	a[0] ^= 0xff
	if !bytes.Equal(Text(), want) {
		t.Error("Text changed after its caller wrote to an earlier result")
	}
	if !bytes.HasPrefix(want, []byte("All these things being consider'd")) {
		t.Errorf("Text starts with %q, want the held-out end of Opticks", want[:40])
	}
}
