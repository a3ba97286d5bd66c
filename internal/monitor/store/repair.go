package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

// Repair mends what Check found and says what it did, one line for each problem.
// Nothing that may still be wanted is deleted: it is moved to the folder "lost".
//
//   - a capture that is gone or differs: the snapshot keeps its measures; one that
//     was never analyzed is marked failed, and takes the right bytes if they are sent again
//   - a capture that no snapshot owns: it gets its row, and is analyzed at the next start
//   - an analysis that cannot be decoded: it is made again, where the capture is still there
//   - scalars of a step, or an alert's evidence, that cannot be decoded: taken out
//   - what retention or a dead upload left: removed
//   - the database: indexes are made anew; damage beyond that needs Rebuild
//
// Errors: *ErrCorrupt where the database needs Rebuild; ErrReadOnly; ErrNoSpace;
// else the system's. What was mended before an error stays mended.
func (s *Store) Repair(ctx context.Context, problems []Problem) (done []string, err error) {
	if s.readOnly {
		return nil, ErrReadOnly
	}
	reindexed := false
	for _, p := range problems {
		var text string
		switch p.Kind {
		case DatabaseDamaged:
			if text = "indexes were made anew"; !reindexed {
				err = s.reindex(ctx)
				reindexed = true
			}
		case ValuesDamaged:
			text, err = s.dropAnalysis(ctx, p.Key)
		case ScalarsDamaged:
			text, err = s.dropRow(ctx, `DELETE FROM scalars WHERE run = (SELECT id FROM runs WHERE name = ?) AND step = ?`, p.Key.Run, p.Key.Step)
		case AlertDamaged:
			text, err = s.dropRow(ctx, `UPDATE alerts SET evidence = '{}' WHERE id = ?`, p.ID)
		case FileMissing:
			text, err = s.markLost(ctx, p.Key)
		case FileDiffers:
			text, err = s.setAside(ctx, p)
		case FileUnknown:
			text, err = s.adopt(ctx, p.Key)
		case FileStrange:
			text, err = s.moveToLost(p.Path)
			text = "moved to " + text
		case FileLeftOver, UploadLeftOver:
			text, err = "removed", os.RemoveAll(s.path(filepath.FromSlash(p.Path)))
		default:
			err = fmt.Errorf("store: Repair of unknown kind %q", p.Kind)
		}
		if err != nil {
			return done, fmt.Errorf("repair of %s: %w", p, err)
		}
		done = append(done, text)
	}
	return done, nil
}

// reindex mends indexes that disagree with their tables, and says so where more
// than that is wrong.
func (s *Store) reindex(ctx context.Context) error {
	err := s.write(ctx, func(g *group) error { return g.exec(`REINDEX`) })
	if err != nil {
		var corrupt *ErrCorrupt
		if errors.As(err, &corrupt) || isConstraint(err) {
			return &ErrCorrupt{File: s.database(), Err: err}
		}
		return err
	}
	left, err := s.checkDatabase(ctx)
	if err == nil && len(left) > 0 {
		return &ErrCorrupt{File: s.database(), Err: errors.New(left[0].Text)}
	}
	return err
}

// dropAnalysis forgets the measures of a snapshot, which is then to be analyzed
// again if it can be.
func (s *Store) dropAnalysis(ctx context.Context, k monitor.Key) (string, error) {
	_, err := os.Stat(s.CapturePath(k))
	text, state, reason := "it will be analyzed again", monitor.Received, ""
	if errors.Is(err, fs.ErrNotExist) {
		text, state, reason = "the measures are lost: the capture is gone too", monitor.Failed, "the measures were damaged and the capture is gone"
	} else if err != nil {
		return "", err
	}
	return text, s.write(ctx, func(g *group) error {
		id, _, err := g.snapshotID(k)
		if err != nil {
			return err
		}
		for _, q := range []string{`DELETE FROM vals WHERE snapshot = ?`, `DELETE FROM analyses WHERE snapshot = ?`} {
			if err := g.exec(q, id); err != nil {
				return err
			}
		}
		return g.exec(`UPDATE snapshots SET state = ?, reason = ? WHERE id = ?`, string(state), reason, id)
	})
}

func (s *Store) dropRow(ctx context.Context, query string, args ...any) (string, error) {
	return "what cannot be read was taken out", s.write(ctx, func(g *group) error { return g.exec(query, args...) })
}

// markLost says in the row that a capture is gone.
func (s *Store) markLost(ctx context.Context, k monitor.Key) (text string, err error) {
	err = s.write(ctx, func(g *group) error {
		id, _, err := g.snapshotID(k)
		if err != nil {
			return err
		}
		var state string
		if _, err = g.scan(`SELECT state FROM snapshots WHERE id = ?`, []any{id}, &state); err != nil {
			return err
		}
		if state == string(monitor.Analyzed) {
			text = "marked as removed; its measures stay"
			return g.exec(`UPDATE snapshots SET pruned = 1 WHERE id = ?`, id)
		}
		text = "marked as failed: send it again"
		return g.exec(`UPDATE snapshots SET pruned = 1, state = 'failed', reason = 'the capture file was lost' WHERE id = ?`, id)
	})
	return text, err
}

// adopt gives a capture without a row its row.
func (s *Store) adopt(ctx context.Context, k monitor.Key) (string, error) {
	path := s.CapturePath(k)
	if err := syncFile(path); err != nil {
		return "", err
	}
	sum, size, err := hashFile(path)
	if err != nil {
		return "", err
	}
	snap := monitor.Snapshot{Key: k, Received: s.now().UTC(), Bytes: size, State: monitor.Received}
	text := "taken in as a snapshot; it will be analyzed"
	return text, s.write(ctx, func(g *group) error {
		run, err := s.runOf(g, k.Run)
		if err != nil {
			return err
		}
		if _, found, err := snapshotIn(g, k, run); err != nil || found {
			text = "it has a snapshot by now"
			return err
		}
		return g.insertSnapshot(snap, run, sum)
	})
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	err = f.Sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return named(path, err)
}

// setAside takes a capture with wrong bytes out of the way.
func (s *Store) setAside(ctx context.Context, p Problem) (string, error) {
	to, err := s.moveToLost(p.Path)
	if err != nil {
		return "", err
	}
	marked, err := s.markLost(ctx, p.Key)
	return "moved to " + to + "; " + marked, err
}

// moveToLost moves what is at rel, below the store's folder with slashes, to a name
// in "lost" that is free, and returns that.
func (s *Store) moveToLost(rel string) (string, error) {
	if err := os.MkdirAll(s.path(lostFolder), 0o700); err != nil {
		return "", err
	}
	to := lostFolder + "/" + strings.ReplaceAll(strings.TrimPrefix(rel, capturesFolder+"/"), "/", "-")
	free := to
	for n := 2; ; n++ {
		if _, err := os.Lstat(s.path(free)); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return "", err
		}
		free = fmt.Sprintf("%s.%d", to, n)
	}
	return free, os.Rename(s.path(filepath.FromSlash(rel)), s.path(free))
}

func sortProblems(all []Problem) {
	slices.SortStableFunc(all, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Key.Run, b.Key.Run), cmp.Compare(a.Key.Step, b.Key.Step), cmp.Compare(a.Key.Sample, b.Key.Sample))
	})
}
