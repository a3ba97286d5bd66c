package eigenhead_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead"
	"github.com/eigenhead/eigenhead/internal/testshared"
)

// TestContextsBeyondTheTrainedLengthAreSaid takes a model of 512 tokens at and
// beyond its length, with the file's positions and with scaled ones, and its
// capture, which knows no such length.
func TestContextsBeyondTheTrainedLengthAreSaid(t *testing.T) {
	plain := testshared.Dir(t, "models", "stories260K")
	scaled := t.TempDir()
	for _, name := range []string{"config.json", "model.safetensors"} {
		data, err := os.ReadFile(filepath.Join(plain, name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "config.json" {
			data = bytes.Replace(data, []byte(`"rope_theta"`), []byte(`"rope_scaling": {"rope_type": "linear", "factor": 4.0}, "rope_theta"`), 1)
		}
		if err := os.WriteFile(filepath.Join(scaled, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ids := make([]string, 600)
	for i := range ids {
		ids[i] = fmt.Sprint(3 + i%500)
	}
	tokens := writeIDs(t, "["+strings.Join(ids, ",")+"]")
	const want = "context 600 is longer than the 512 tokens that the model was trained on"
	capture := filepath.Join(t.TempDir(), "capture.safetensors")
	for _, c := range []struct {
		source  string
		context int
		capture string
		said    bool
	}{{plain, 512, "", false}, {plain, 600, capture, true}, {scaled, 600, "", true}} {
		r := scan(t, c.source, &eigenhead.Options{Tokens: tokens, Context: c.context, Layers: "0", Measures: []string{"key.*"}, Capture: c.capture})
		if slices.Contains(r.Warnings, want) != c.said {
			t.Errorf("%s, context %d: warnings %q", c.source, c.context, r.Warnings)
		}
	}
	if r := scan(t, capture, &eigenhead.Options{Measures: []string{"key.*"}}); len(r.Warnings) > 0 {
		t.Errorf("the capture: warnings %q", r.Warnings)
	}
}
