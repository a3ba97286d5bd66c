package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// MaxSample is the largest sample number that is kept.
const MaxSample = 1<<20 - 1

// device are names that Windows keeps for itself, whatever follows the dot.
var device = regexp.MustCompile(`(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)`)

// checkRun is monitor.CheckRun, and refuses names that some system cannot have as
// a folder, so that a store can move to any machine.
func checkRun(name string) error {
	if err := monitor.CheckRun(name); err != nil {
		return err
	}
	if device.MatchString(name) || name[len(name)-1] == '.' {
		return &xerr.Format{What: "run name", Found: fmt.Sprintf("%q", name), Want: "a name that Windows allows for a folder"}
	}
	return nil
}

func checkKey(k monitor.Key) error {
	if err := checkRun(k.Run); err != nil {
		return err
	}
	if err := checkStep(k.Step); err != nil {
		return err
	}
	if k.Sample < 0 || k.Sample > MaxSample {
		return &xerr.Format{What: "sample", Found: k.Sample, Want: fmt.Sprintf("0 to %d", MaxSample)}
	}
	return nil
}

func checkStep(step int64) error {
	if step < 0 || step > monitor.MaxStep {
		return &xerr.Format{What: "step", Found: step, Want: fmt.Sprintf("0 to %d", int64(monitor.MaxStep))}
	}
	return nil
}

// CapturePath is where the capture of a snapshot is kept. It panics on a key that
// Commit would refuse: a path is never made of an unchecked name.
func (s *Store) CapturePath(k monitor.Key) string {
	if err := checkKey(k); err != nil {
		panic("store: CapturePath: " + err.Error())
	}
	return filepath.Join(s.path(capturesFolder), k.Run, fmt.Sprintf("%d-%d.safetensors", k.Step, k.Sample))
}

// Commit makes an upload the capture of snapshot k. When it returns, file, name
// and row are on disk. The same bytes again change nothing (created is false),
// except that a capture whose file was lost gets it back.
//
// Errors: *ErrConflict where the snapshot is kept with other bytes; *xerr.Format
// for a key that cannot be kept; ErrNoSpace; ErrClosed; else the system's. After an
// error nothing is kept, and the upload can be committed again or discarded.
func (s *Store) Commit(ctx context.Context, st *Staged, k monitor.Key) (snap monitor.Snapshot, created bool, err error) {
	if err := checkKey(k); err != nil {
		return monitor.Snapshot{}, false, err
	}
	if err := st.sync(); err != nil {
		return monitor.Snapshot{}, false, err
	}
	err = s.write(ctx, func(g *group) error {
		snap, created, err = s.commit(g, st, k)
		return err
	})
	if err != nil {
		return monitor.Snapshot{}, false, err
	}
	if created {
		st.taken()
	} else {
		st.Discard()
	}
	return snap, created, nil
}

func (s *Store) commit(g *group, st *Staged, k monitor.Key) (monitor.Snapshot, bool, error) {
	run, err := s.runOf(g, k.Run)
	if err != nil {
		return monitor.Snapshot{}, false, err
	}
	have, found, err := snapshotIn(g, k, run)
	if err != nil {
		return have, false, err
	}
	if found && have.SHA256 != st.SHA256() {
		return have, false, &ErrConflict{Have: have, Got: st.SHA256()}
	}
	if found && !s.lost(have) {
		return have, false, nil
	}
	if err := s.place(g, st.path, k); err != nil {
		return have, false, err
	}
	if found {
		return s.restore(g, have, run)
	}
	snap := monitor.Snapshot{Key: k, Received: s.now().UTC(), SHA256: st.SHA256(), Bytes: st.bytes, State: monitor.Received}
	return snap, true, g.insertSnapshot(snap, run, st.sum[:])
}

func (g *group) insertSnapshot(snap monitor.Snapshot, run int64, sum []byte) error {
	at := snap.Received.UnixNano()
	err := g.exec(`INSERT INTO snapshots (run, step, sample, received, sha256, bytes, state) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		run, snap.Step, snap.Sample, at, bytes.Clone(sum), snap.Bytes, string(snap.State))
	if err != nil {
		return err
	}
	return g.exec(`UPDATE runs SET last = max(last, ?) WHERE id = ?`, at, run)
}

// lost reports that a capture should have a file and has none.
func (s *Store) lost(have monitor.Snapshot) bool {
	if have.Pruned && have.State != monitor.Failed {
		return false // retention removed it on purpose
	}
	_, err := os.Stat(s.CapturePath(have.Key))
	return errors.Is(err, fs.ErrNotExist)
}

// restore takes back that a capture was lost; it is analyzed unless it was before.
func (s *Store) restore(g *group, have monitor.Snapshot, run int64) (monitor.Snapshot, bool, error) {
	have.Pruned = false
	if have.State == monitor.Failed {
		have.State, have.Reason = monitor.Received, ""
	}
	err := g.exec(`UPDATE snapshots SET pruned = 0, state = ?, reason = ? WHERE run = ? AND step = ? AND sample = ?`,
		string(have.State), have.Reason, run, have.Step, have.Sample)
	return have, true, err
}

// place moves an upload to where snapshot k is kept, making the run's folder.
func (s *Store) place(g *group, from string, k monitor.Key) error {
	path := s.CapturePath(k)
	err := os.Mkdir(filepath.Dir(path), 0o700)
	if err == nil {
		g.folders[s.path(capturesFolder)] = true
	} else if !errors.Is(err, fs.ErrExist) {
		return named(path, err)
	}
	return named(path, g.move(from, path))
}

// runOf returns the run's row, made now if the name is new.
func (s *Store) runOf(g *group, name string) (int64, error) {
	var id int64
	var have string
	found, err := g.scan(`SELECT id, name FROM runs WHERE name = ?`, []any{name}, &id, &have)
	if err != nil {
		return 0, err
	}
	if !found {
		now := s.now().UnixNano()
		return g.insert(`INSERT INTO runs (name, started, last) VALUES (?, ?, ?)`, name, now, now)
	}
	if have != name {
		return 0, &xerr.Format{What: "run name", Found: fmt.Sprintf("%q", name), Want: fmt.Sprintf("%q, or a name that differs in more than case", have)}
	}
	return id, nil
}
