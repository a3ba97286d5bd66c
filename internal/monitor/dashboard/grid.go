package dashboard

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
	"github.com/eigenhead/eigenhead/measure"
)

// maxCells bounds the numbers of one answer: 16 MiB. A longer run is thinned in time.
const maxCells = 4 << 20

// gridHead is what stands before the numbers of a grid.
type gridHead struct {
	Measure string   `json:"measure"`
	Unit    string   `json:"unit"`
	Where   []string `json:"where"`
	Steps   []int64  `json:"steps"`
	Total   int      `json:"total"` // snapshots that the run has
	By      int      `json:"by"`    // every by-th of them is here, and those of alerts
}

// gridData answers with one measure at all places and steps:
//
//	4 bytes n, n bytes of JSON (gridHead), float32 values[step][place]
//
// little-endian, n a multiple of 4, NaN where there is no value. With ?since=STEP
// only later steps are there.
func (s *server) gridData(w http.ResponseWriter, r *http.Request) error {
	run, err := s.runOf(r)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	sample, err := strconv.Atoi(q.Get("sample"))
	if q.Get("sample") == "" {
		sample, err = 0, nil
	}
	name := q.Get("measure")
	if err != nil || len(name) == 0 || len(name) > 100 {
		return &refusal{http.StatusBadRequest, "want ?measure=NAME&sample=N"}
	}
	grid, err := s.store.Grid(r.Context(), run.Name, name, sample)
	if err != nil {
		return err
	}
	since := int64(-1)
	if text := q.Get("since"); text != "" {
		if since, err = strconv.ParseInt(text, 10, 64); err != nil {
			return &refusal{http.StatusBadRequest, "since: want a step"}
		}
	}
	snaps, err := s.store.Snapshots(r.Context(), run.Name, nil)
	if err != nil {
		return err
	}
	list, err := s.store.Alerts(r.Context(), run.Name, nil)
	if err != nil {
		return err
	}
	widen(grid, snaps)
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(pack(name, grid, since, list))
	return nil
}

// widen gives a grid the steps of snapshots without a value of the measure: those that
// failed, or hold nothing finite. A hole is shown where they are.
func widen(g *store.Grid, snaps []monitor.Snapshot) {
	if len(g.Where) == 0 {
		return
	}
	var steps []int64
	for _, snap := range snaps {
		if snap.Sample == g.Sample && snap.State != monitor.Received {
			steps = append(steps, snap.Step)
		}
	}
	steps = append(steps, g.Steps...)
	slices.Sort(steps)
	if steps = slices.Compact(steps); len(steps) == len(g.Steps) {
		return
	}
	for p := range g.Where {
		values, has := make([]float64, len(steps)), make([]bool, len(steps))
		old := 0
		for i, step := range steps {
			if old < len(g.Steps) && g.Steps[old] == step {
				values[i], has[i] = g.Values[p][old], g.Has[p][old]
				old++
			}
		}
		g.Values[p], g.Has[p] = values, has
	}
	g.Steps = steps
}

// pack writes a grid, thinned where it has more than maxCells values.
func pack(name string, g *store.Grid, since int64, alerts []monitor.Alert) []byte {
	keep, by := columns(g, since, alerts)
	head := gridHead{Measure: name, Where: g.Where, Steps: make([]int64, len(keep)), Total: len(g.Steps), By: by}
	if head.Where == nil {
		head.Where = []string{}
	}
	if m, err := measure.Lookup(name); err == nil {
		head.Unit = m.Unit
	}
	for i, s := range keep {
		head.Steps[i] = g.Steps[s]
	}
	text, err := json.Marshal(head)
	if err != nil {
		panic(err) // strings and whole numbers
	}
	text = append(text, bytes.Repeat([]byte{' '}, -len(text)&3)...)
	out := make([]byte, 0, 4+len(text)+4*len(keep)*len(g.Where))
	out = binary.LittleEndian.AppendUint32(out, uint32(len(text)))
	out = append(out, text...)
	for _, s := range keep {
		for p := range g.Where {
			v := float32(math.NaN())
			if g.Has[p][s] {
				v = single(g.Values[p][s])
			}
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
		}
	}
	return out
}

// single rounds to float32; what is beyond its range becomes its largest number, so
// that it is drawn and not taken for absent.
func single(v float64) float32 {
	switch {
	case v > math.MaxFloat32:
		return math.MaxFloat32
	case v < -math.MaxFloat32:
		return -math.MaxFloat32
	}
	return float32(v)
}

// columns returns which snapshots are sent, and the stride: all of them, or every
// by-th with the first, the last and those at which an alert was raised.
func columns(g *store.Grid, since int64, alerts []monitor.Alert) (keep []int, by int) {
	by = max(1, (len(g.Steps)*len(g.Where)+maxCells-1)/maxCells)
	marked := map[int64]bool{}
	if by > 1 {
		for _, a := range alerts[max(0, len(alerts)-maxMarks):] {
			marked[a.Step] = true
		}
	}
	from, _ := slices.BinarySearch(g.Steps, since+1)
	for s := from; s < len(g.Steps); s++ {
		if s%by == 0 || s == len(g.Steps)-1 || marked[g.Steps[s]] {
			keep = append(keep, s)
		}
	}
	return keep, by
}
