package pipeline

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/analyze"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// Accept takes one capture file from r into run; the file's metadata says its step
// and sample. When it returns without an error the capture is durable and will be
// measured, whatever happens to this process. created is false where the very same
// bytes were there already.
//
// The run is the caller's word: what the file says of its run is not looked at,
// unless run is "". Memory does not grow with the capture's length.
//
// Errors: ErrBusy at once when too many uploads or snapshots are waiting;
// *xerr.Format and *xerr.Unsupported for what is no capture, or has no step;
// *store.ErrConflict where the snapshot is there with other bytes; store.ErrTooLarge,
// store.ErrNoSpace; else r's, ctx's or the system's. After an error nothing is kept.
func (p *Pipeline) Accept(ctx context.Context, run string, r io.Reader) (snap monitor.Snapshot, created bool, err error) {
	select {
	case p.uploads <- struct{}{}:
	default:
		p.counts.rejected.Add(1)
		return snap, false, ErrBusy
	}
	defer func() { <-p.uploads }()
	if !p.queue.reserve() {
		p.counts.rejected.Add(1)
		return snap, false, ErrBusy
	}
	defer p.queue.release()
	return p.take(ctx, run, r, "capture")
}

// AcceptFile is Accept for a file of this machine, which stays where it is. It waits
// for a place in the queue instead of failing with ErrBusy.
func (p *Pipeline) AcceptFile(ctx context.Context, run, path string) (snap monitor.Snapshot, created bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return snap, false, err
	}
	defer f.Close()
	select {
	case p.uploads <- struct{}{}:
	case <-ctx.Done():
		return snap, false, ctx.Err()
	}
	defer func() { <-p.uploads }()
	if err := p.queue.reserveSoon(ctx); err != nil {
		return snap, false, err
	}
	defer p.queue.release()
	return p.take(ctx, run, f, path)
}

// take is Accept once there is room; name stands for the file in errors.
func (p *Pipeline) take(ctx context.Context, run string, r io.Reader, name string) (snap monitor.Snapshot, created bool, err error) {
	if run != "" {
		if err := monitor.CheckRun(run); err != nil {
			return snap, false, err
		}
	}
	staged, err := p.store.Stage(r, p.opts.Limit)
	if err != nil {
		return snap, false, err
	}
	defer staged.Discard()
	meta, err := analyze.Header(staged.Path())
	if err != nil {
		return snap, false, renamed(err, staged.Path(), name)
	}
	key, err := meta.Key(name, run)
	if err != nil {
		return snap, false, err
	}
	if snap, created, err = p.store.Commit(ctx, staged, key); err != nil {
		return snap, false, err
	}
	p.alive(snap.Run)
	if !created {
		p.counts.repeated.Add(1)
		return snap, false, nil
	}
	p.counts.received.Add(1)
	p.queue.put(job{key: snap.Key, bytes: snap.Bytes, since: p.opts.Now()})
	p.hub.publish(monitor.Event{Kind: monitor.SnapshotReceived, Run: snap.Run, Step: snap.Step})
	return snap, true, nil
}

// renamed puts the sender's name of a file in place of ours, which is of no use to
// them.
func renamed(err error, path, name string) error {
	var f *xerr.Format
	var u *xerr.Unsupported
	switch {
	case errors.As(err, &f):
		c := *f
		c.File = strings.ReplaceAll(c.File, path, name)
		return &c
	case errors.As(err, &u):
		c := *u
		c.File = strings.ReplaceAll(c.File, path, name)
		return &c
	}
	return err
}

var _ keeper = (*store.Store)(nil)
