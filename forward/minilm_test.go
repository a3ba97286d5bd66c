package forward_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/eigenhead/eigenhead/internal/testshared"
)

// A real encoder: PyTorch's q, k and v of the last of its six layers.
// tools/archfixtures/minilm.py made them.
func TestMiniLM(t *testing.T) {
	m := open(t, testshared.MiniLM(t))
	want := readExpected(t, filepath.Join("testdata", "minilm.safetensors"))
	layers, out := run(t, m, idsOf(want))
	if len(out.LogitsLast) != 0 || len(out.NLL) != 0 {
		t.Error("an encoder has logits")
	}
	l := len(layers) - 1
	worst := 0.0
	for _, p := range layers[l].Pairs {
		rows := func(what string, h int) string { return fmt.Sprintf("%s of head %d", what, h) }
		from, to := p.ID.Head*p.T(), (p.ID.Head+1)*p.T()
		q, k, v := want[fmt.Sprintf("q.%d", l)], want[fmt.Sprintf("k.%d", l)], want[fmt.Sprintf("v.%d", l)]
		near(t, rows("q", p.ID.Head), p.Q, q.RowSlice(from, to), 1e-4)
		near(t, rows("k", p.ID.Head), p.K, k.RowSlice(from, to), 1e-4)
		near(t, rows("v", p.ID.Head), p.V, v.RowSlice(from, to), 1e-4)
		worst = max(worst, farthest(p.Q, q.RowSlice(from, to)))
	}
	t.Logf("q differs by up to %.1e", worst)
}
