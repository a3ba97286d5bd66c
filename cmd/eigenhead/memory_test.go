package main

import (
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/eigenhead/eigenhead/capture"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
)

// A long capture saves memory wherever it stands among the sources, until restore.
func TestLongCapturesSaveMemory(t *testing.T) {
	t.Setenv("GOGC", "")
	long := filepath.Join(t.TempDir(), "long.safetensors")
	w, err := capture.Create(long, capture.Meta{})
	if err != nil {
		t.Fatal(err)
	}
	pair := head.Pair{Q: linalg.New(longContext, 2), K: linalg.New(longContext, 2), Scale: 1, Mask: head.Causal}
	layer := &head.Layer{Pairs: []head.Pair{pair}, KVHeads: 1, KVIDs: []int{0}}
	if err := w.Layer(layer); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	const before = 90
	defer debug.SetGCPercent(debug.SetGCPercent(before))
	for _, c := range []struct {
		sources []string
		want    int
	}{{[]string{"demo", "demo"}, before}, {[]string{long, "demo"}, longCollects}, {[]string{"demo", long}, longCollects}} {
		restore := saveMemory(512, c.sources...)
		got := debug.SetGCPercent(longCollects)
		debug.SetGCPercent(got)
		restore()
		if got != c.want {
			t.Errorf("%v: collects at %d %%, want %d", c.sources, got, c.want)
		}
		if after := debug.SetGCPercent(before); after != before {
			t.Errorf("%v: restored to %d %%, want %d", c.sources, after, before)
		}
	}
}
