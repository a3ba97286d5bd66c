package alert_test

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/alert"
	"github.com/eigenhead/eigenhead/internal/monitor/analyze"
)

const runsFolder = "../testdata/runs"

// recordedRun is what tools/recordedruns says of a run, from its own computations.
type recordedRun struct {
	Run, Signal string
	Every       int64
	Crossed     map[string]int64 // first step beyond the level, of all steps
	LossShows   any              // a step, or a step and a word, or null
}

// TestRecordedRuns replays real trainings. Each illness must be raised, by the rule of
// its signal, at the latest with the second snapshot after the signal crossed; the
// healthy run raises no warning.
func TestRecordedRuns(t *testing.T) {
	data, err := os.ReadFile(runsFolder + "/runs.json")
	if err != nil {
		t.Fatal(err)
	}
	var runs []recordedRun
	if err := json.Unmarshal(data, &runs); err != nil {
		t.Fatal(err)
	}
	codes := map[string]string{"max-logit": "max-logit", "entropy-collapse": "entropy-collapse", "collapsed-residual": "rank-collapse", "non-finite": "non-finite"}
	for _, r := range runs {
		told := replay(t, filepath.Join(runsFolder, r.Run))
		if r.Signal == "" {
			for _, a := range told {
				if a.Severity != finding.Info {
					t.Errorf("%s: %s at step %d: %s", r.Run, a.Severity, a.Step, a.Text)
				}
			}
			continue
		}
		crossed, ok := r.Crossed[r.Signal]
		if !ok || codes[r.Signal] == "" {
			t.Errorf("%s: no step at which %s crosses, or no rule for it", r.Run, r.Signal)
			continue
		}
		// Snapshots are at multiples of Every; the raw signal may cross between them.
		first := (crossed + r.Every - 1) / r.Every * r.Every
		raised := firstOf(told, codes[r.Signal])
		t.Logf("%s: %s crosses at %d, raised at %d (snapshots every %d)", r.Run, r.Signal, crossed, raised, r.Every)
		if raised < 0 || raised > first+r.Every {
			t.Errorf("%s: raised at %d, want one of the first two snapshots from %d on", r.Run, raised, first)
		}
	}
}

// firstOf returns the first step of a warning with a code, −1 if there is none.
func firstOf(told []monitor.Alert, code string) int64 {
	first := int64(-1)
	for _, a := range told {
		if a.Code == code && a.Severity != finding.Info && (first < 0 || a.Step < first) {
			first = a.Step
		}
	}
	return first
}

// replay judges a folder as the tap writes it.
func replay(t *testing.T, folder string) []monitor.Alert {
	t.Helper()
	e := alert.New("r", nil)
	var told []monitor.Alert
	captures, err := filepath.Glob(folder + "/*.safetensors")
	if err != nil || len(captures) == 0 {
		t.Fatalf("%s: no captures (%v)", folder, err)
	}
	for _, path := range captures {
		m, err := analyze.Header(path)
		if err != nil {
			t.Fatal(err)
		}
		key, err := m.Key(path, "r")
		if err != nil {
			t.Fatal(err)
		}
		a, err := analyze.Capture(t.Context(), path, key, nil)
		if err != nil {
			t.Fatal(err)
		}
		told = append(told, e.Observe(a)...)
	}
	f, err := os.Open(folder + "/scalars.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var raw map[string]any
		if err := json.Unmarshal(lines.Bytes(), &raw); err != nil {
			t.Fatal(err)
		}
		s := monitor.Scalars{Values: map[string]float64{}}
		for name, v := range raw {
			switch v := v.(type) {
			case float64:
				s.Values[name] = v
			case string:
				s.Values[name] = map[string]float64{"NaN": math.NaN(), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1)}[v]
			}
		}
		s.Step = int64(s.Values["step"])
		delete(s.Values, "step")
		told = append(told, e.Scalars(s)...)
	}
	return told
}
