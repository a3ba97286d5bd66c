package collapse

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/eigenhead/eigenhead/internal/atomicfile"
	"github.com/eigenhead/eigenhead/internal/par"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// kind says what a unit simulates.
type kind string

const (
	forwardKind  kind = "forward"
	matrixKind   kind = "matrix"
	gradientKind kind = "gradient"
)

// unit is one simulation of a sweep: one network, one seed.
type unit struct {
	experiment string
	kind       kind
	config     Config
	size       Size
	depth      int
	layer      int  // gradientKind: whose weights
	light      bool // forwardKind: stable ranks only
	whole      bool // matrixKind: all singular values
	values     int  // matrixKind: how many by name
	seed       uint64
}

// key names the unit and everything its outcome depends on.
func (u unit) key() string {
	return fmt.Sprintf("%s/%s/%s/T=%d/gamma=%g/depth=%d/layer=%d/light=%v/whole=%v/values=%d/seed=%d",
		u.experiment, u.kind, u.config.Name(), u.size.T, u.size.Gamma, u.depth, u.layer, u.light, u.whole, u.values, u.seed)
}

// outcome is what a unit found: values by layer, one layer for a matrix or gradient.
type outcome struct {
	Key      string    `json:"key"`
	Layers   []Values  `json:"layers"`
	Spectrum []float64 `json:"spectrum,omitempty"`
}

func (u unit) run(ctx context.Context) (*outcome, error) {
	out := &outcome{Key: u.key()}
	var err error
	switch u.kind {
	case forwardKind:
		out.Layers, err = Forward(ctx, u.config, u.size, u.depth, u.seed, u.light)
	case matrixKind:
		var v Values
		v, out.Spectrum, err = Matrix(ctx, u.config, u.size, u.seed, u.values, u.whole)
		out.Layers = []Values{v}
		if !u.whole {
			out.Spectrum = nil
		}
	case gradientKind:
		var v Values
		v, err = Gradient(ctx, u.config, u.size, u.depth, u.layer, u.seed)
		out.Layers = []Values{v}
	}
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%s: %w", u.key(), err)
	}
	return out, err
}

// sweepSchema is the first line's format of a sweep's file.
const sweepSchema = "eigenhead.collapse.sweep/1"

// header is the first line of a sweep's file.
type header struct {
	Schema string `json:"schema"`
	Plan   string `json:"plan"` // hash of all keys: another plan's file is refused
	Units  int    `json:"units"`
}

func planHeader(plan []unit) header {
	h := sha256.New()
	for _, u := range plan {
		fmt.Fprintln(h, u.key())
	}
	return header{sweepSchema, hex.EncodeToString(h.Sum(nil)[:12]), len(plan)}
}

// sweep runs all units on all cores, the largest first, and returns their outcomes in
// the plan's order. file, if not "", keeps each outcome as one JSON line as soon as it
// is there; outcomes that it holds already are not computed again. After an error or
// an interrupt the outcomes so far are returned too, nil where there is none.
func sweep(ctx context.Context, plan []unit, file string, progress func(done, total int64)) ([]*outcome, error) {
	outcomes := make([]*outcome, len(plan))
	journal, err := openJournal(file, plan, outcomes)
	if err != nil {
		return outcomes, err
	}
	defer journal.close()
	var left []int
	for i := range plan {
		if outcomes[i] == nil {
			left = append(left, i)
		}
	}
	slices.SortStableFunc(left, func(a, b int) int { return cmp.Compare(plan[b].cost(), plan[a].cost()) })
	done := int64(len(plan) - len(left))
	var mu sync.Mutex
	err = par.DoCtx(ctx, len(left), func(i int) error {
		u := left[i]
		out, err := plan[u].run(ctx)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		outcomes[u] = out
		done++
		if progress != nil {
			progress(done, int64(len(plan)))
		}
		return journal.add(out)
	})
	if err != nil {
		return outcomes, err
	}
	return outcomes, journal.finish(outcomes)
}

// cost orders units, roughly.
func (u unit) cost() float64 {
	n := float64(u.size.T)
	return n * n * (n + float64(u.size.Width())) * float64(max(u.depth, 1))
}

// journal is a sweep's file while it is being written; nil writes nothing.
type journal struct {
	file   *os.File
	header header
}

// openJournal reads what a file holds into outcomes and opens it to append. A line cut
// by an interrupted write is dropped; any other damage is an error.
func openJournal(file string, plan []unit, outcomes []*outcome) (*journal, error) {
	if file == "" {
		return nil, nil
	}
	head := planHeader(plan)
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, &xerr.Usage{Flag: "--resume " + file, Found: err.Error(), Want: "a file of an earlier sweep, or a name that can be written"}
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	if err := readJournal(file, whole, head, plan, outcomes); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, &xerr.Usage{Flag: "--resume " + file, Found: err.Error(), Want: "a file that can be written"}
	}
	j := &journal{file: f, header: head}
	if err := f.Truncate(int64(len(whole))); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if _, err := f.Seek(int64(len(whole)), 0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if len(whole) == 0 {
		return j, j.line(head)
	}
	return j, nil
}

func readJournal(file string, data []byte, want header, plan []unit, outcomes []*outcome) error {
	place := map[string]int{}
	for i, u := range plan {
		place[u.key()] = i
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 64<<20)
	for n := 1; lines.Scan(); n++ {
		where := fmt.Sprintf("line %d", n)
		if n == 1 {
			var got header
			if err := json.Unmarshal(lines.Bytes(), &got); err != nil || got.Schema != sweepSchema {
				return &xerr.Format{File: file, What: where, Found: clip(lines.Bytes()), Want: "the header of a sweep, schema " + sweepSchema}
			}
			if got != want {
				return &xerr.Usage{Flag: "--resume " + file, Found: "a sweep with other arguments", Want: "the same arguments as before",
					Hint: "give another file, or repeat the command line that made this one"}
			}
			continue
		}
		var out outcome
		decoder := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&out); err != nil {
			return &xerr.Format{File: file, What: where, Found: clip(lines.Bytes()), Want: "one simulation as JSON"}
		}
		i, ok := place[out.Key]
		if !ok || !plausible(plan[i], &out) {
			return &xerr.Format{File: file, What: where, Found: "simulation " + clip([]byte(out.Key)), Want: "one of this sweep, whole"}
		}
		outcomes[i] = &out
	}
	return lines.Err()
}

// plausible reports whether an outcome has as many layers as its unit.
func plausible(u unit, o *outcome) bool {
	if u.kind == forwardKind {
		return len(o.Layers) == u.depth
	}
	return len(o.Layers) == 1 && o.Layers[0] != nil
}

func clip(b []byte) string {
	if len(b) > 60 {
		return string(b[:60]) + "…"
	}
	return string(b)
}

func (j *journal) line(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = j.file.Write(append(data, '\n'))
	return err
}

func (j *journal) add(o *outcome) error {
	if j == nil {
		return nil
	}
	return j.line(o)
}

func (j *journal) close() {
	if j != nil && j.file != nil {
		_ = j.file.Close() // every line was written or reported
	}
}

// finish puts the lines in the plan's order, so that the file of a resumed sweep is
// that of one that was never interrupted.
func (j *journal) finish(outcomes []*outcome) error {
	if j == nil {
		return nil
	}
	path := j.file.Name()
	err := j.file.Close()
	j.file = nil
	if err != nil {
		return err
	}
	f, err := atomicfile.Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	w := bufio.NewWriter(f)
	encoder := json.NewEncoder(w) // of one type with line: the same bytes
	if err := encoder.Encode(j.header); err != nil {
		return err
	}
	for _, o := range outcomes {
		if err := encoder.Encode(o); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Commit()
}
