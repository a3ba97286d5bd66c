package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

// Kind says what is wrong with a store.
type Kind string

// The kinds of problems.
const (
	DatabaseDamaged Kind = "database"     // SQLite's own check or a broken reference
	ValuesDamaged   Kind = "values"       // an analysis that cannot be decoded
	ScalarsDamaged  Kind = "scalars"      // scalars of one step that cannot be decoded
	AlertDamaged    Kind = "alert"        // an alert that cannot be decoded
	FileMissing     Kind = "missing"      // a snapshot whose capture is gone, not by retention
	FileDiffers     Kind = "differs"      // a capture that has not the bytes that were acknowledged
	FileUnknown     Kind = "unknown"      // a capture that no snapshot owns
	FileStrange     Kind = "strange"      // among the captures, but none by its name
	FileLeftOver    Kind = "left over"    // a capture that retention should have removed
	UploadLeftOver  Kind = "left staging" // an upload that nobody finishes
)

// Problem is one thing that Check found.
type Problem struct {
	Kind Kind        `json:"kind"`
	Key  monitor.Key `json:"key"`            // where a snapshot or a step is concerned
	ID   int64       `json:"id,omitempty"`   // where an alert is concerned
	Path string      `json:"path,omitempty"` // below the store's folder, with slashes
	Text string      `json:"text"`           // one sentence
}

// String is "kind: text".
func (p Problem) String() string { return string(p.Kind) + ": " + p.Text }

// settle is how old a file must be before a check beside a server calls it unknown:
// the server may be about to write its row.
const settle = time.Minute

// Check compares database, files and hashes, and changes nothing. On a store that
// is open read-only it may run beside a server. Files are listed before rows are
// read, because a file comes before its row and goes after it.
//
// Cost: reads the whole database and every capture.
func (s *Store) Check(ctx context.Context) ([]Problem, error) {
	problems, err := s.checkDatabase(ctx)
	if err != nil || len(problems) > 0 {
		return problems, err // a damaged database says nothing reliable about files
	}
	values, err := s.checkValues(ctx)
	if err != nil {
		return nil, err
	}
	beside := s.readOnly && lockHeld(s.path(lockName))
	files, strange, err := s.captureFiles()
	if err != nil {
		return nil, err
	}
	captures, err := s.checkFiles(ctx, files, beside)
	if err != nil {
		return nil, err
	}
	staging, err := s.checkStaging(beside)
	return append(append(append(values, captures...), strange...), staging...), err
}

func (s *Store) checkDatabase(ctx context.Context) ([]Problem, error) {
	var all []Problem
	add := func(text string) {
		all = append(all, Problem{Kind: DatabaseDamaged, Path: databaseName, Text: text})
	}
	rows, err := s.read.QueryContext(ctx, `PRAGMA integrity_check`)
	texts, err := collect(rows, err, scanString)
	if err == nil && (len(texts) != 1 || texts[0] != "ok") {
		for _, text := range texts {
			add(text)
		}
		return all, nil
	}
	if err == nil {
		rows, err = s.read.QueryContext(ctx, `SELECT "table" || ' refers to a row of ' || parent || ' that is not there' FROM pragma_foreign_key_check`)
		texts, err = collect(rows, err, scanString)
		for _, text := range texts {
			add(text)
		}
	}
	var corrupt *ErrCorrupt
	if err = named(s.database(), err); errors.As(err, &corrupt) {
		add(corrupt.Err.Error())
		return all, nil
	}
	return all, err
}

// checkValues decodes every analysis.
func (s *Store) checkValues(ctx context.Context) ([]Problem, error) {
	runs, err := s.Runs(ctx)
	if err != nil {
		return nil, err
	}
	var all []Problem
	for _, r := range runs {
		keys, err := s.analyzed(ctx, r.Name, `ORDER BY s.step, s.sample`)
		if err != nil {
			return nil, err
		}
		for _, k := range keys {
			_, err := s.analysis(ctx, k.id, k.key)
			var corrupt *ErrCorrupt
			if errors.As(err, &corrupt) {
				all = append(all, Problem{Kind: ValuesDamaged, Key: k.key, Text: corrupt.Err.Error()})
			} else if err != nil && !errors.Is(err, ErrNotFound) {
				return nil, err
			}
		}
		none, err := s.analyzedInVain(ctx, r.Name)
		if err != nil {
			return nil, err
		}
		all = append(all, none...)
		bad, err := s.checkScalars(ctx, r.Name)
		if err != nil {
			return nil, err
		}
		all = append(all, bad...)
	}
	alerts, err := s.checkAlerts(ctx)
	return append(all, alerts...), err
}

// analyzedInVain finds snapshots that say that they are analyzed and have no analysis.
func (s *Store) analyzedInVain(ctx context.Context, run string) ([]Problem, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT s.step, s.sample FROM snapshots s JOIN runs r ON r.id = s.run
		WHERE r.name = ? AND s.state = 'analyzed' AND NOT EXISTS (SELECT 1 FROM analyses a WHERE a.snapshot = s.id)
		ORDER BY s.step, s.sample`, run)
	all, err := collect(rows, err, func(row scanner) (Problem, error) {
		p := Problem{Kind: ValuesDamaged, Key: monitor.Key{Run: run}}
		err := row.Scan(&p.Key.Step, &p.Key.Sample)
		p.Text = fmt.Sprintf("analysis of %s is gone", p.Key)
		return p, err
	})
	return all, named(s.database(), err)
}

// checkScalars decodes every step of a run.
func (s *Store) checkScalars(ctx context.Context, run string) ([]Problem, error) {
	names, err := s.scalarNames(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := s.read.QueryContext(ctx, `SELECT c.step, c.data FROM scalars c JOIN runs r ON r.id = c.run WHERE r.name = ? ORDER BY c.step`, run)
	all, err := collect(rows, err, func(row scanner) (p Problem, err error) {
		var data []byte
		p.Key.Run = run
		if err := row.Scan(&p.Key.Step, &data); err != nil {
			return p, err
		}
		if _, err := nameScalars(data, names); err != nil {
			p.Kind, p.Text = ScalarsDamaged, fmt.Sprintf("scalars of %s, step %d: %v", run, p.Key.Step, err)
		}
		return p, nil
	})
	return slices.DeleteFunc(all, func(p Problem) bool { return p.Kind == "" }), named(s.database(), err)
}

// checkAlerts decodes every alert.
func (s *Store) checkAlerts(ctx context.Context) ([]Problem, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT `+alertColumns+` FROM alerts a JOIN runs r ON r.id = a.run ORDER BY a.id`)
	all, err := collect(rows, err, func(row scanner) (Problem, error) {
		a, err := scanAlert(row)
		var corrupt *ErrCorrupt
		if errors.As(err, &corrupt) {
			return Problem{Kind: AlertDamaged, ID: a.ID, Text: corrupt.Err.Error()}, nil
		}
		return Problem{}, err
	})
	return slices.DeleteFunc(all, func(p Problem) bool { return p.Kind == "" }), named(s.database(), err)
}

var captureName = regexp.MustCompile(`^(0|[1-9][0-9]*)-(0|[1-9][0-9]*)\.safetensors$`)

// captureFiles lists the captures on disk, and what else is among them.
func (s *Store) captureFiles() (map[monitor.Key]fs.FileInfo, []Problem, error) {
	files := map[monitor.Key]fs.FileInfo{}
	var strange []Problem
	add := func(path string) {
		strange = append(strange, Problem{Kind: FileStrange, Path: path, Text: path + " is not a capture of any run"})
	}
	runs, err := os.ReadDir(s.path(capturesFolder))
	if err != nil {
		return nil, nil, err
	}
	for _, r := range runs {
		path := capturesFolder + "/" + r.Name()
		if !r.IsDir() || checkRun(r.Name()) != nil {
			add(path)
			continue
		}
		entries, err := os.ReadDir(s.path(path))
		if err != nil {
			return nil, nil, err
		}
		for _, e := range entries {
			k, ok := keyOf(r.Name(), e)
			info, err := e.Info()
			switch {
			case errors.Is(err, fs.ErrNotExist): // removed meanwhile
			case err != nil:
				return nil, nil, err
			case !ok:
				add(path + "/" + e.Name())
			default:
				files[k] = info
			}
		}
	}
	return files, strange, nil
}

// keyOf reads a snapshot's key from the name of its file.
func keyOf(run string, e fs.DirEntry) (monitor.Key, bool) {
	m := captureName.FindStringSubmatch(e.Name())
	if m == nil || !e.Type().IsRegular() {
		return monitor.Key{}, false
	}
	step, err1 := strconv.ParseInt(m[1], 10, 64)
	sample, err2 := strconv.Atoi(m[2])
	k := monitor.Key{Run: run, Step: step, Sample: sample}
	return k, err1 == nil && err2 == nil && checkKey(k) == nil
}

// checkFiles compares rows with files, first by name, then by hash.
func (s *Store) checkFiles(ctx context.Context, files map[monitor.Key]fs.FileInfo, beside bool) ([]Problem, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT `+snapshotColumns+`, r.name FROM snapshots s JOIN runs r ON r.id = s.run
		ORDER BY r.name, s.step, s.sample`)
	snaps, err := collect(rows, err, func(row scanner) (monitor.Snapshot, error) {
		var run string
		snap, err := scanSnapshot(row, "", &run)
		snap.Run = run
		return snap, err
	})
	if err != nil {
		return nil, named(s.database(), err)
	}
	var all []Problem
	for _, snap := range snaps {
		info := files[snap.Key]
		delete(files, snap.Key)
		if p, err := s.checkFile(ctx, snap, info); err != nil {
			return nil, err
		} else if p != nil {
			all = append(all, *p)
		}
	}
	for k, info := range files {
		if beside && time.Since(info.ModTime()) < settle {
			continue
		}
		path := s.below(s.CapturePath(k))
		all = append(all, Problem{Kind: FileUnknown, Key: k, Path: path, Text: path + " belongs to no snapshot: its upload was never acknowledged, or its row is lost"})
	}
	sortProblems(all)
	return all, nil
}

// checkFile looks at the file of one snapshot.
func (s *Store) checkFile(ctx context.Context, snap monitor.Snapshot, info fs.FileInfo) (*Problem, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	full := s.CapturePath(snap.Key)
	p := Problem{Key: snap.Key, Path: s.below(full)}
	if snap.Pruned && info == nil {
		return nil, nil
	}
	if snap.Pruned {
		p.Kind, p.Text = FileLeftOver, p.Path+" was to be removed by retention"
		return &p, nil
	}
	sum, size, err := hashFile(full)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if now, err := s.Snapshot(ctx, snap.Key); err == nil && now.Pruned {
			return nil, nil // by retention, meanwhile
		}
		p.Kind, p.Text = FileMissing, p.Path+" is gone; the snapshot is "+string(snap.State)
	case err != nil:
		p.Kind, p.Text = FileDiffers, fmt.Sprintf("%s cannot be read: %v", p.Path, err)
	case hex.EncodeToString(sum) != snap.SHA256:
		p.Kind, p.Text = FileDiffers, fmt.Sprintf("%s has sha256 %.6x… and %d bytes, want %.12s… and %d", p.Path, sum, size, snap.SHA256, snap.Bytes)
	default:
		return nil, nil
	}
	return &p, nil
}

func hashFile(path string) (sum []byte, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	h := sha256.New()
	size, err = io.Copy(h, f)
	return h.Sum(nil), size, err
}

// checkStaging finds uploads that are not in progress. Beside a server it cannot
// tell, and is silent.
func (s *Store) checkStaging(beside bool) ([]Problem, error) {
	if beside {
		return nil, nil
	}
	entries, err := os.ReadDir(s.path(stagingFolder))
	if errors.Is(err, fs.ErrNotExist) && s.readOnly { // a copy of a store may lack it
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Problem
	for _, e := range entries {
		if !s.staging[e.Name()] {
			path := stagingFolder + "/" + e.Name()
			all = append(all, Problem{Kind: UploadLeftOver, Path: path, Text: path + " is an upload that nobody finishes"})
		}
	}
	return all, nil
}

// below is a path within the store's folder, with slashes.
func (s *Store) below(path string) string {
	rel, err := filepath.Rel(s.dir, path)
	if err != nil {
		return filepath.ToSlash(path)
	}
	return filepath.ToSlash(rel)
}
