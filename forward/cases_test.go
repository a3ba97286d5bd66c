package forward_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/checkpoint"
	"github.com/eigenhead/eigenhead/forward"
	"github.com/eigenhead/eigenhead/internal/testshared"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// expected is the part of expected.json that a forward pass can answer.
type expected struct {
	Command, Input, Tokens, Outcome, Alternative string
	Mentions                                     []string
	Tolerance                                    float64
	NLL                                          float64
	Traps                                        map[string]any
	Logits                                       []float64             `json:"logits_last"`
	KVHeads                                      []struct{ Layer int } `json:"kv_heads"`
}

// Files that made other tools fail or give wrong numbers in silence.
func TestCases(t *testing.T) {
	root := testshared.Dir(t, "cases")
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, e := range entries {
		dir := filepath.Join(root, e.Name())
		if !e.IsDir() {
			continue
		}
		var want expected
		readJSON(t, filepath.Join(dir, "expected.json"), &want)
		if want.Command != "scan" {
			continue
		}
		ran++
		t.Run(e.Name(), func(t *testing.T) { checkCase(t, dir, want) })
	}
	if ran == 0 {
		t.Error("no scan case was found")
	}
}

func checkCase(t *testing.T, dir string, want expected) {
	var tokens []int
	readJSON(t, filepath.Join(dir, want.Tokens), &tokens)
	m, out, err := forwardOf(filepath.Join(dir, want.Input), tokens)
	if want.Outcome == "refuse" && (want.Alternative != "value" || err != nil) {
		checkRefusal(t, err, want.Mentions)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	nll, _ := out.MeanNLL()
	if !(math.Abs(nll-want.NLL) <= want.Tolerance) {
		t.Errorf("NLL %.5f, want %.5f ± %g (known mistakes give %v)", nll, want.NLL, want.Tolerance, want.Traps)
	}
	for i, v := range want.Logits {
		if !(math.Abs(float64(out.LogitsLast[i])-v) <= want.Tolerance) {
			t.Fatalf("logit %d: %g, want %g", i, out.LogitsLast[i], v)
		}
	}
	if n := m.Layers * m.KVHeads; len(want.KVHeads) > 0 && n != len(want.KVHeads) {
		t.Errorf("%d KV heads in all layers, want %d", n, len(want.KVHeads))
	}
	t.Logf("NLL %.6f, off by %.1e; %d logits; warnings %q; defaults %q", nll, nll-want.NLL, len(want.Logits), m.Warnings, m.Defaults)
}

func forwardOf(path string, tokens []int) (*arch.Model, *forward.Output, error) {
	c, err := checkpoint.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	m, err := arch.Open(c)
	if err != nil {
		return nil, nil, err
	}
	out, err := forward.Run(context.Background(), m, tokens, nil, nil)
	return m, out, err
}

// checkRefusal wants an error of the input that mentions each of the words.
func checkRefusal(t *testing.T, err error, mentions []string) {
	t.Helper()
	if !xerr.Input(err) {
		t.Fatalf("error %v, want a refusal of the input", err)
	}
	text := strings.ToLower(err.Error() + " " + xerr.Hint(err))
	for _, m := range mentions {
		found := false
		for _, word := range strings.Split(m, "|") {
			found = found || strings.Contains(text, strings.ToLower(word))
		}
		if !found {
			t.Errorf("error %q does not mention %q", err, m)
		}
	}
	t.Log(err)
}
