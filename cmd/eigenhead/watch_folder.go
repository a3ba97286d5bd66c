package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/eigenhead/eigenhead/capture"
	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/analyze"
	"github.com/eigenhead/eigenhead/internal/monitor/pipeline"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// How long a file must have been left alone. Chosen, not derived: a writer that
// pauses for longer has died.
const (
	settled   = 2 * time.Second  // before a checkpoint is read: its last file may still come
	abandoned = 10 * time.Second // before what cannot be read is taken for broken and not for unfinished
)

// watcher hands what appears in a folder to the pipeline.
type watcher struct {
	c       *watchCmd
	p       *pipeline.Pipeline
	s       snapshots
	log     *slog.Logger
	since   time.Time        // what the store received before is of an earlier watch
	seen    map[string]stamp // of names that are done with
	first   map[string]sight // of names that are waited for
	scalars tail
}

// stamp tells whether a file has changed.
type stamp struct {
	size int64
	time time.Time
}

// sight is when a file was first seen as it is.
type sight struct {
	stamp
	at time.Time
}

func newWatcher(c *watchCmd, p *pipeline.Pipeline, s snapshots, log *slog.Logger) *watcher {
	return &watcher{c: c, p: p, s: s, log: log, since: time.Now(), seen: map[string]stamp{}, first: map[string]sight{},
		scalars: tail{path: filepath.Join(c.Dir, "scalars.jsonl")}}
}

// all takes in all that is there, waiting for what is being written, until it is
// measured and told.
func (w *watcher) all(ctx context.Context) error {
	for {
		waits, err := w.look(ctx, true)
		if err != nil {
			return err
		}
		if !waits {
			if err := w.scalars.rest(w.judge(ctx)); xerr.Input(err) {
				w.log.Error("left out", "line", err.Error(), "hint", "it has no end: the run may have been killed while it wrote")
			} else if err != nil {
				return err
			}
			return w.p.Drain(ctx)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// look goes through the folder once. strict makes what cannot be taken in an error;
// else it is a warning, and tried again where that can help. waits says that something
// is not finished.
func (w *watcher) look(ctx context.Context, strict bool) (waits bool, err error) {
	entries, err := os.ReadDir(w.c.Dir)
	if err != nil {
		return false, err
	}
	for _, d := range byStep(entries) {
		wait, err := w.entry(ctx, d.Name())
		waits = waits || wait
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if err != nil && strict {
			return false, err
		}
		if err != nil {
			w.log.Warn("left out", "file", d.Name(), "error", err.Error(), "hint", xerr.Hint(err))
		}
	}
	return waits, w.scalars.read(w.judge(ctx))
}

// judge hands over scalars.
func (w *watcher) judge(ctx context.Context) func([]monitor.Scalars) error {
	return func(list []monitor.Scalars) error { return w.p.Scalars(ctx, w.c.RunName, list) }
}

// byStep sorts names by the step in them, so that a run is judged as it went.
func byStep(entries []fs.DirEntry) []fs.DirEntry {
	slices.SortStableFunc(entries, func(a, b fs.DirEntry) int {
		s, _ := stepOf(a.Name())
		t, _ := stepOf(b.Name())
		return cmp.Or(cmp.Compare(s, t), cmp.Compare(a.Name(), b.Name()))
	})
	return entries
}

// entry takes in one file or folder, if it is one that we take and is ready.
func (w *watcher) entry(ctx context.Context, name string) (waits bool, err error) {
	path := filepath.Join(w.c.Dir, name)
	if strings.HasPrefix(name, ".") {
		return false, nil // being written under another name, or ours
	}
	now, folder, ok := stampOf(path)
	if !ok || w.seen[name] == now {
		return false, nil
	}
	old := w.first[name]
	if old.stamp != now {
		old = sight{now, time.Now()}
		w.first[name] = old
	}
	still := max(time.Since(old.at), time.Since(now.time))
	checkpoint := isCheckpoint(path, folder)
	if checkpoint && still < settled {
		return true, nil
	}
	if checkpoint || !folder && isCapture(path) {
		err = w.take(ctx, path, now, checkpoint)
	}
	if xerr.Input(err) && still < abandoned {
		return true, nil // perhaps not finished
	}
	if err == nil || xerr.Input(err) || errors.As(err, new(*store.ErrConflict)) {
		w.done(name, now)
	}
	return false, err
}

// take takes in a checkpoint or a capture, unless it is known.
func (w *watcher) take(ctx context.Context, path string, now stamp, checkpoint bool) error {
	known, err := w.known(ctx, path, now, checkpoint)
	switch {
	case err != nil || known:
		return err
	case checkpoint:
		return w.checkpoint(ctx, path)
	}
	return w.capture(ctx, path)
}

func (w *watcher) done(name string, s stamp) {
	w.seen[name] = s
	delete(w.first, name)
}

// capture hands over a capture. One that is cut does not parse: its header says how
// long it is. One that does not say its step, as those of scan, has it from its name.
func (w *watcher) capture(ctx context.Context, path string) error {
	m, err := analyze.Header(path)
	if err != nil {
		return err
	}
	if step, named := stepOf(filepath.Base(path)); named && m.Step == nil {
		dir, err := os.MkdirTemp("", "eigenhead-watch-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		whole := path
		path = filepath.Join(dir, filepath.Base(path))
		if err := withStep(whole, path, step, m.Scalars); err != nil {
			return err
		}
	}
	_, _, err = w.p.AcceptFile(ctx, w.c.RunName, path)
	return err
}

// isCheckpoint reports whether a path is named as a checkpoint of some step and looks
// like one: a folder with weights, or a file of weights that is no capture.
func isCheckpoint(path string, folder bool) bool {
	if _, ok := stepOf(filepath.Base(path)); !ok {
		return false
	}
	if folder {
		for _, pattern := range []string{"*.safetensors", "*.gguf", "*.safetensors.index.json"} {
			if found, _ := filepath.Glob(filepath.Join(escape(path), pattern)); len(found) > 0 {
				return true
			}
		}
		return false
	}
	switch filepath.Ext(path) {
	case ".gguf":
		return true
	case ".safetensors":
		return !isCapture(path)
	}
	return false
}

// isCapture reports whether a file is meant as a capture; one whose header is still
// being written is looked at again when it has changed.
func isCapture(path string) bool {
	is, err := capture.IsCapture(path)
	return err == nil && is && filepath.Ext(path) == ".safetensors"
}

// escape keeps a folder's own name from being a pattern.
func escape(path string) string {
	return strings.NewReplacer(`[`, `[[]`, `*`, `[*]`, `?`, `[?]`).Replace(path)
}

// stampOf returns size and time of a file, or of the files in a checkpoint's folder;
// what else there may be is not ok.
func stampOf(path string) (s stamp, folder, ok bool) {
	info, err := os.Stat(path) // a link counts as what it leads to
	if err != nil {
		return s, false, false
	}
	s = stamp{info.Size(), info.ModTime()}
	if !info.IsDir() {
		return s, false, info.Mode().IsRegular()
	}
	if _, named := stepOf(filepath.Base(path)); !named {
		return s, true, false // it may hold millions of files
	}
	files, err := os.ReadDir(path)
	for _, f := range files {
		if info, err := f.Info(); err == nil && !f.IsDir() {
			s.size += info.Size()
			if info.ModTime().After(s.time) {
				s.time = info.ModTime()
			}
		}
	}
	return s, true, err == nil
}

// tail reads the lines that are added to a file.
type tail struct {
	path   string
	offset int64
	line   int
}

// Lines are handed over in portions of this many, and none may be longer.
const (
	tailLines   = 1000
	tailLongest = 1 << 20
)

// read hands over the whole lines behind the last ones. A file that became shorter
// is read from its beginning.
func (t *tail) read(each func([]monitor.Scalars) error) error {
	f, err := os.Open(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < t.offset {
		t.offset, t.line = 0, 0
	}
	return t.lines(f, each)
}

func (t *tail) bad(what, found, want string) error {
	return &xerr.Format{File: fmt.Sprintf("%s: line %d", t.path, t.line), What: what, Found: found, Want: want}
}
