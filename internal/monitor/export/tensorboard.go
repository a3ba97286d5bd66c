package export

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// TensorBoard writes event files below dir: dir/RUN holds the scalars, and
// dir/RUN/L3H5 the measures of one head (KV head, layer), so that TensorBoard draws
// each measure once, with a line for each head. Samples after the first are in
// dir/RUN/sample-N. A run appears whole or not at all.
//
// Values are float32, the precision of TensorBoard's scalars. A point's time is
// when its snapshot came; a scalar, whose time is not kept, has that of the last
// snapshot before it.
// Errors: *xerr.Usage where dir/RUN is there already (events of two exports would
// mix); *xerr.Unsupported for a place that cannot be a folder's name; those of the
// store and the system. Memory: 64 KiB for each place.
func TensorBoard(ctx context.Context, dir string, s *store.Store, runs []string) error {
	for _, run := range runs { // before any work
		target := filepath.Join(dir, run)
		if _, err := os.Lstat(target); err == nil {
			return &xerr.Usage{Flag: target, Found: "exists", Want: "a folder that is not there yet",
				Hint: "remove it, or choose another folder: events of two exports would mix"}
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return &xerr.Usage{Flag: dir, Found: "cannot be made: " + err.Error(), Want: "a folder that can be written"}
	}
	for _, run := range runs {
		if err := writeRun(ctx, dir, s, run); err != nil {
			return err
		}
	}
	return nil
}

// writeRun writes into a hidden folder, which gets its name at the end.
func writeRun(ctx context.Context, dir string, s *store.Store, run string) error {
	tmp, err := os.MkdirTemp(dir, "."+run+".*.tmp")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp) // nothing is there after the rename
	b := &board{dir: tmp, files: map[string][]byte{}}
	if err := b.loadTimes(ctx, s, run); err != nil {
		return err
	}
	for a, err := range s.Analyses(ctx, run) {
		if err == nil {
			err = b.analysis(a)
		}
		if err != nil {
			return err
		}
	}
	for sc, err := range s.AllScalars(ctx, run) {
		if err == nil {
			err = b.scalars(sc)
		}
		if err != nil {
			return err
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(b.files)) {
		if err := b.flush(folder); err != nil {
			return err
		}
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(dir, run))
}

// board collects the events of one run, with one file open at a time: a model may
// have more heads than a process may have files.
type board struct {
	dir     string
	started time.Time
	steps   []int64 // of snapshots
	times   []time.Time
	files   map[string][]byte // by folder below dir: what is not written yet
}

const flushAt = 64 << 10 // bytes

// loadTimes remembers when snapshots came.
func (b *board) loadTimes(ctx context.Context, s *store.Store, run string) error {
	runs, err := s.Runs(ctx)
	if err != nil {
		return err
	}
	for _, r := range runs {
		if r.Name == run {
			b.started = r.Started
		}
	}
	snaps, err := s.Snapshots(ctx, run, nil)
	for _, snap := range snaps {
		b.steps = append(b.steps, snap.Step)
		b.times = append(b.times, snap.Received)
	}
	return err
}

// wall is the time of a step, in seconds.
func (b *board) wall(step int64) float64 {
	t := b.started
	if i := sort.Search(len(b.steps), func(i int) bool { return b.steps[i] > step }); i > 0 {
		t = b.times[i-1]
	}
	return float64(t.UnixNano()) / 1e9
}

// analysis adds one event to the file of each place.
func (b *board) analysis(a *monitor.Analysis) error {
	folder := ""
	if a.Sample > 0 {
		folder = fmt.Sprintf("sample-%d", a.Sample)
	}
	for len(a.Values) > 0 {
		where := a.Values[0].Where
		if monitor.CheckRun(where) != nil {
			return &xerr.Unsupported{What: "place", Found: fmt.Sprintf("%q", where), Want: `one that can name a folder, such as "L3H5"`}
		}
		n := slices.IndexFunc(a.Values, func(v monitor.Value) bool { return v.Where != where })
		if n < 0 {
			n = len(a.Values)
		}
		points := make([]point, n)
		for i, v := range a.Values[:n] {
			points[i] = point{v.Measure, float32(v.Value)}
		}
		if err := b.add(filepath.Join(folder, where), a.Step, points); err != nil {
			return err
		}
		a.Values = a.Values[n:]
	}
	return nil
}

func (b *board) scalars(sc monitor.Scalars) error {
	var points []point
	for _, name := range slices.Sorted(maps.Keys(sc.Values)) {
		points = append(points, point{name, float32(sc.Values[name])})
	}
	if len(points) == 0 {
		return nil
	}
	return b.add("", sc.Step, points)
}

func (b *board) add(folder string, step int64, points []point) error {
	buffer, ok := b.files[folder]
	if !ok {
		if err := os.MkdirAll(filepath.Join(b.dir, folder), 0o755); err != nil {
			return err
		}
		buffer = appendVersion(nil, float64(b.started.UnixNano())/1e9)
	}
	b.files[folder] = appendEvent(buffer, b.wall(step), step, points)
	if len(b.files[folder]) >= flushAt {
		return b.flush(folder)
	}
	return nil
}

// flush appends what was collected for a folder to its file.
func (b *board) flush(folder string) error {
	name := fmt.Sprintf("events.out.tfevents.%010d.eigenhead", max(0, b.started.Unix()))
	f, err := os.OpenFile(filepath.Join(b.dir, folder, name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b.files[folder])
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	b.files[folder] = b.files[folder][:0]
	return err
}
