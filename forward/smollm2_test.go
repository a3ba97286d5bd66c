package forward_test

import (
	"context"
	"math"
	"testing"

	"github.com/eigenhead/eigenhead/forward"
	"github.com/eigenhead/eigenhead/internal/testshared"
)

// The mean negative log-likelihood of a real quantized model, to ±0.0010 of the
// float32 reference: the first 512 tokens of the WikiText-2 test set, whose ids
// llama.cpp and Hugging Face agree on.
func TestSmolLM2NLL(t *testing.T) {
	if testing.Short() {
		t.Skip("a whole forward pass of a real model")
	}
	m := open(t, testshared.SmolLM2(t))
	var tokens []int
	readJSON(t, "testdata/wikitext2-smollm2-512.json", &tokens)
	last, steps := int64(0), 0
	out, err := forward.Run(context.Background(), m, tokens, &forward.Options{Progress: func(done, total int64) {
		if done < last || done > total {
			t.Errorf("progress %d of %d after %d", done, total, last)
		}
		last, steps = done, steps+1
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	nll, _ := out.MeanNLL()
	if !(math.Abs(nll-2.8320) <= 0.0010) {
		t.Errorf("mean NLL %.5f, want 2.8320 ± 0.0010", nll)
	}
	t.Logf("mean NLL %.5f; %d parameters; %d steps; defaults %q; warnings %q", nll, m.Parameters, steps, m.Defaults, m.Warnings)
}
