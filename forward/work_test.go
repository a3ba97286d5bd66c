package forward

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/checkpoint"
)

// TestWorkIsWhatIsDone counts the operations of every family, mixtures of experts,
// windows and parallel blocks among them, without a limit: they are those foreseen.
func TestWorkIsWhatIsDone(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*", "model.safetensors"))
	if err != nil || len(files) == 0 {
		t.Fatalf("fixtures: %v, %v", files, err)
	}
	for _, file := range files {
		c, err := checkpoint.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := arch.Open(c)
		if err != nil {
			t.Fatal(err)
		}
		p, err := newPass(context.Background(), m, []int{1, 2, 3, 4, 5, 6, 7, 8, 9}, &Options{})
		if err != nil {
			t.Fatal(err)
		}
		p.work.total, p.work.done = math.MaxInt64, 0
		for l := range m.Layers {
			if err := p.block(l, nil); err != nil {
				t.Fatal(err)
			}
		}
		if p.logitsWanted() {
			if _, err := p.logits(); err != nil {
				t.Fatal(err)
			}
		}
		if want := Work(m, 9, m.Layers, true); p.work.done != want {
			t.Errorf("%s: %d operations, want %d", file, p.work.done, want)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestProgressGrows sees what is told of a run: never less than before, and last
// exactly all of it.
func TestProgressGrows(t *testing.T) {
	c, err := checkpoint.Open(filepath.Join("testdata", "mixtral", "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := arch.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	var last, all int64
	steps := 0
	_, err = Run(context.Background(), m, []int{1, 2, 3}, &Options{Progress: func(done, total int64) {
		if done < last || done > total {
			t.Errorf("%d of %d after %d", done, total, last)
		}
		last, all, steps = done, total, steps+1
	}}, nil)
	if err != nil || last != all || all != Work(m, 3, m.Layers, true) || steps < 10 {
		t.Errorf("%d of %d in %d steps, error %v", last, all, steps, err)
	}
}
