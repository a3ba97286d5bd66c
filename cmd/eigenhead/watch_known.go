package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/analyze"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
)

// snapshots is store.Store, as far as a watcher asks it.
type snapshots interface {
	Snapshot(ctx context.Context, k monitor.Key) (monitor.Snapshot, error)
}

// known reports whether a capture or checkpoint was taken in by an earlier watch: the
// store has its snapshot, received after the last change of its files, and for a capture
// that is kept as it is, of its size. What is known is neither read nor scanned again.
//
// Errors: the store's. A capture that cannot be read is not known.
func (w *watcher) known(ctx context.Context, path string, now stamp, checkpoint bool) (bool, error) {
	step, named := stepOf(filepath.Base(path))
	k := monitor.Key{Run: w.c.RunName, Step: step}
	asItIs := false
	if !checkpoint {
		m, err := analyze.Header(path)
		if err != nil || m.Step == nil && !named {
			return false, nil
		}
		k.Sample = m.Sample
		if m.Step != nil {
			k.Step, asItIs = *m.Step, true
		}
	}
	have, err := w.s.Snapshot(ctx, k)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	earlier := have.Received.Before(w.since) // else two files are of one step, which is to be said
	return err == nil && earlier && now.time.Before(have.Received) && (!asItIs || now.size == have.Bytes), err
}
