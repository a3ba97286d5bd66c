package eigenhead_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead"
	"github.com/eigenhead/eigenhead/internal/demo"
	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/report"
)

// demoFolder writes the demo's files into a folder of its own.
func demoFolder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	if err := os.CopyFS(dir, demo.FS()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestReportSaysNothingOfPlaces(t *testing.T) {
	dir := demoFolder(t)
	r := scan(t, dir, &eigenhead.Options{Context: 32, Layers: "0"})
	var b bytes.Buffer
	if err := report.WriteJSON(&b, r); err != nil {
		t.Fatal(err)
	}
	if r.Input.BOSSource != "tokenizer_config.json: add_bos_token" {
		t.Errorf("bos_source is %q", r.Input.BOSSource)
	}
	if parent := filepath.Dir(dir); strings.Contains(b.String(), parent) {
		t.Errorf("the report holds %q", parent)
	}
}

func TestTextThatIsNotWhatTheModelReadsIsWarnedOf(t *testing.T) {
	utf16 := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(utf16, []byte("\xff\xfeL\x00i\x00g\x00h\x00t\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	noise := "[7"
	for i := range 60 {
		noise += fmt.Sprintf(", %d", (i+1)*197%512)
	}
	for _, c := range []struct {
		opts eigenhead.Options
		want string
	}{
		{eigenhead.Options{Text: utf16}, "text.txt is no UTF-8 from byte 0 on"},
		{eigenhead.Options{Tokens: writeIDs(t, noise+"]")}, "worse than guessing among 512 tokens"},
		{eigenhead.Options{Context: 64}, ""},
	} {
		c.opts.Layers, c.opts.Measures = "3", []string{"key.norm_min_median"}
		all := strings.Join(scan(t, eigenhead.Demo, &c.opts).Warnings, "\n")
		if !strings.Contains(all, c.want) || c.want == "" && all != "" {
			t.Errorf("warnings are %q, want %q", all, c.want)
		}
	}
}

func TestErrorsNameTheFlagThatTheTokensCameFrom(t *testing.T) {
	for _, c := range []struct {
		name string
		opts eigenhead.Options
		err  string
		hint string
	}{
		{"one id", eigenhead.Options{Tokens: writeIDs(t, "[1]")}, "--tokens: length 1, want at least 2 tokens", ""},
		{"few ids", eigenhead.Options{Tokens: writeIDs(t, "[1, 2, 3]"), Context: 9}, "--context: 9, want at most 3", "longer --tokens"},
	} {
		_, err := eigenhead.Scan(context.Background(), eigenhead.Demo, &c.opts)
		if err == nil || !strings.Contains(err.Error(), c.err) || !strings.Contains(xerr.Hint(err), c.hint) {
			t.Errorf("%s: got %v, hint %q; want %q, hint %q", c.name, err, xerr.Hint(err), c.err, c.hint)
		}
	}
}

func TestEmbeddedTextBeyondAVocabularyHintsAtAText(t *testing.T) {
	dir := demoFolder(t)
	for _, file := range []string{"tokenizer.json", "tokenizer_config.json"} {
		if err := os.Remove(filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "vocab.json"), []byte(`["a", "b", " "]`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := eigenhead.Scan(context.Background(), dir, nil)
	if err == nil || !strings.Contains(xerr.Hint(err), "--text") {
		t.Errorf("got %v with the hint %q, want one that names --text", err, xerr.Hint(err))
	}
}
