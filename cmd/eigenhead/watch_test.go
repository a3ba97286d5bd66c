package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/pipeline"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

func TestStepOf(t *testing.T) {
	for name, want := range map[string]int64{
		"checkpoint-500": 500, "checkpoint-0": 0, "step-00001200-sample-1.safetensors": 1200, "global_step123": 123, "iter_0000200": 200,
		"ckpt_12.safetensors": 12, "model-7.gguf": 7, "step00000.safetensors": 0, "epoch2-step400": 400, "700": 700,
		"model.safetensors": -1, "model-00001-of-00002.safetensors": -1, "llama-3-8b": -1, "": -1, "checkpoint-99999999999999999999": -1,
		"checkpoint-9007199254740993": -1,
	} {
		got, ok := stepOf(name)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("step of %q: %d, want %d", name, got, want)
		}
	}
}

// following starts a watcher on an empty folder.
func following(t *testing.T) (w *watcher, s *store.Store, dir string) {
	t.Helper()
	dir = t.TempDir()
	s, err := store.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	p := pipeline.New(s, nil)
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(); _ = s.Close() })
	c := &watchCmd{Dir: dir, RunName: "r", Interval: time.Millisecond}
	return newWatcher(c, p, s, slog.New(slog.DiscardHandler)), s, dir
}

func recorded(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("../../internal/monitor/testdata/runs/healthy/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func put(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, s *store.Store) int {
	t.Helper()
	list, err := s.Snapshots(t.Context(), "r", nil)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	return len(list)
}

// TestPartlyWrittenFilesAreWaitedFor grows a capture and a line in pieces.
func TestPartlyWrittenFilesAreWaitedFor(t *testing.T) {
	w, s, dir := following(t)
	data := recorded(t, "step-00000030-sample-0.safetensors")
	path := filepath.Join(dir, "step-00000030-sample-0.safetensors")
	for _, n := range []int{0, 4, 100, len(data) / 2, len(data) - 1} {
		put(t, path, data[:n])
		if _, err := w.look(t.Context(), true); err != nil {
			t.Fatalf("%d of %d bytes: %v", n, len(data), err)
		}
		if got := count(t, s); got != 0 {
			t.Fatalf("%d of %d bytes: %d snapshots", n, len(data), got)
		}
	}
	put(t, path, data)
	scalars := filepath.Join(dir, "scalars.jsonl")
	put(t, scalars, []byte("{\"step\":1,\"loss\":3}\n{\"step\":2,\"lo"))
	if err := w.all(t.Context()); err != nil || count(t, s) != 1 {
		t.Fatalf("%d snapshots, %v", count(t, s), err)
	}
	if list, err := s.Scalars(t.Context(), "r", nil); err != nil || len(list) != 1 {
		t.Errorf("scalars %v, %v: want the whole line only", list, err)
	}
	put(t, scalars, []byte("{\"step\":1,\"loss\":3}\n{\"step\":2,\"loss\":\"NaN\"}"))
	if _, err := w.look(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if list, err := s.Scalars(t.Context(), "r", nil); err != nil || len(list) != 1 {
		t.Errorf("scalars %v, %v: the rest may still be written", list, err)
	}
	if err := w.all(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list, err := s.Scalars(t.Context(), "r", nil); err != nil || len(list) != 2 {
		t.Errorf("scalars %v, %v: want the last line too, which has no end", list, err)
	}
	put(t, scalars, []byte("{\"step\":1,\"loss\":3}\n{\"step\":2,\"loss\":\"NaN\"}\n"))
	if err := w.all(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list, err := s.Scalars(t.Context(), "r", nil); err != nil || len(list) != 2 {
		t.Errorf("scalars %v, %v: want both lines", list, err)
	}
	if _, err := w.look(t.Context(), true); err != nil || count(t, s) != 1 {
		t.Errorf("a second look: %v", err)
	}
}

// TestRestartAsksTheStore starts a second watcher on a folder that a first one took in:
// captures are not copied again, checkpoints not scanned. A file that changed since is.
func TestRestartAsksTheStore(t *testing.T) {
	w, s, dir := following(t)
	old := time.Now().Add(-time.Hour)
	name := "step-00000030-sample-0.safetensors"
	put(t, filepath.Join(dir, name), recorded(t, name))
	if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
		t.Fatal(err)
	}
	if err := w.all(t.Context()); err != nil || count(t, s) != 1 {
		t.Fatalf("%d snapshots, %v", count(t, s), err)
	}
	checkpoint := filepath.Join(dir, "checkpoint-30")
	if err := os.Mkdir(checkpoint, 0o700); err != nil {
		t.Fatal(err)
	}
	weights := filepath.Join(checkpoint, "model.safetensors")
	put(t, weights, []byte("no weights: a scan would say so"))
	if err := os.Chtimes(weights, old, old); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(checkpoint, old, old); err != nil {
		t.Fatal(err)
	}
	again := newWatcher(w.c, w.p, s, w.log)
	if err := again.all(t.Context()); err != nil || w.p.Stats().Repeated != 0 {
		t.Errorf("%v, %d captures were copied again", err, w.p.Stats().Repeated)
	}
	soon := time.Now().Add(time.Hour)
	if err := os.Chtimes(filepath.Join(dir, name), soon, soon); err != nil {
		t.Fatal(err)
	}
	if err := again.all(t.Context()); err != nil || w.p.Stats().Repeated != 1 {
		t.Errorf("%v, a file that changed is looked at %d times, want 1", err, w.p.Stats().Repeated)
	}
}

// TestBrokenFilesAreNamed waits until a cut file must be given up: an error for
// --once, a warning and no more for a watch that goes on.
func TestBrokenFilesAreNamed(t *testing.T) {
	w, s, dir := following(t)
	data := recorded(t, "step-00000030-sample-0.safetensors")
	path := filepath.Join(dir, "step-00000030-sample-0.safetensors")
	put(t, path, data[:len(data)-1])
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	if waits, err := w.look(t.Context(), false); err != nil || waits {
		t.Errorf("a watch that goes on: %v, waits %v", err, waits)
	}
	delete(w.seen, filepath.Base(path))
	if err := w.all(t.Context()); !xerr.Input(err) || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v, want one that names %s", err, path)
	}
	if err := w.all(t.Context()); err != nil || count(t, s) != 0 {
		t.Errorf("what was named is done with: %v", err)
	}
	put(t, path, data) // the writer came back
	if err := w.all(t.Context()); err != nil || count(t, s) != 1 {
		t.Errorf("%d snapshots, %v", count(t, s), err)
	}
}

// TestFollow sees what appears, until it is stopped.
func TestFollow(t *testing.T) {
	w, s, dir := following(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.follow(ctx, time.Millisecond) }()
	for i, step := range []int{0, 30, 60} {
		name := fmt.Sprintf("step-%08d-sample-0.safetensors", step)
		put(t, filepath.Join(dir, "."+name), recorded(t, name))
		if err := os.Rename(filepath.Join(dir, "."+name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); count(t, s) != i+1; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s was not taken in", name)
			}
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("an interrupt ends a watch well, got %v", err)
	}
}

func TestScalarsThatShrink(t *testing.T) {
	tl := tail{path: filepath.Join(t.TempDir(), "scalars.jsonl")}
	read := func() (n int, err error) {
		err = tl.read(func(list []monitor.Scalars) error { n += len(list); return nil })
		return n, err
	}
	if n, err := read(); n != 0 || err != nil {
		t.Errorf("no file: %d, %v", n, err)
	}
	put(t, tl.path, []byte(strings.Repeat("{\"step\":1,\"loss\":3}\n\n", 2500)))
	if n, err := read(); n != 2500 || err != nil {
		t.Errorf("%d lines, %v", n, err)
	}
	put(t, tl.path, []byte("{\"step\":1,\"loss\":3}\nnonsense\n{\"step\":2}\n"))
	if n, err := read(); n != 1 || !xerr.Input(err) || !strings.Contains(err.Error(), "scalars.jsonl: line 2: JSON") {
		t.Errorf("%d lines, %v", n, err)
	}
	if n, err := read(); n != 1 || err != nil {
		t.Errorf("behind the broken line: %d, %v", n, err)
	}
	put(t, tl.path, []byte(strings.Repeat("x", tailLongest+1)))
	tl.offset = 0
	if _, err := read(); !xerr.Input(err) || !strings.Contains(err.Error(), "over 1 MiB") {
		t.Errorf("a line without an end: %v", err)
	}
	put(t, tl.path, []byte(strings.Repeat("x", tailLongest+1)+"\n{\"step\":7}\n"))
	if n, err := read(); n != 1 || err != nil {
		t.Errorf("behind it: %d lines, %v", n, err)
	}
}
