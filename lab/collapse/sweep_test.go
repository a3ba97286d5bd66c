package collapse

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

func smallRun(file string) *Options {
	return &Options{Experiments: []string{"width", "fixes"}, T: []int{8, 12}, Seeds: 2, Depth: 2, Seed: 3, Resume: file}
}

func mustJSON(t *testing.T, r *Result) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A sweep cut anywhere and resumed gives the bytes of one that was never interrupted,
// result and file alike.
func TestResumedSweepIsTheSame(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "whole.jsonl")
	r, err := Run(background, smallRun(file))
	if err != nil {
		t.Fatal(err)
	}
	want := mustJSON(t, r)
	journal, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{0, 20, len(journal) / 3, len(journal) / 2, len(journal) - 1} {
		part := filepath.Join(dir, "part.jsonl")
		if err := os.WriteFile(part, journal[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := Run(background, smallRun(part))
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if !bytes.Equal(mustJSON(t, r), want) {
			t.Errorf("cut at %d: another result", cut)
		}
		if got, err := os.ReadFile(part); err != nil || !bytes.Equal(got, journal) {
			t.Errorf("cut at %d: another file (%v)", cut, err)
		}
	}
}

// An interrupt keeps what is finished, marked partial, and the file goes on from there.
func TestInterruptedSweepIsPartial(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sweep.jsonl")
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	o := smallRun(file)
	o.Progress = func(done, total int64) {
		if done == 5 {
			cancel()
		}
	}
	r, err := Run(ctx, o)
	if !errors.Is(err, context.Canceled) || r == nil || !r.Partial || len(r.Cells) == 0 {
		t.Fatalf("result %v, error %v", r, err)
	}
	if !strings.Contains(string(mustJSON(t, r)), `"partial": true`) {
		t.Error("the JSON is not marked partial")
	}
	resumed, err := Run(background, smallRun(file))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := Run(background, smallRun(""))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(mustJSON(t, resumed), mustJSON(t, whole)) {
		t.Error("resumed after an interrupt: another result")
	}
}

// Bits do not depend on the number of cores.
func TestAnyNumberOfCores(t *testing.T) {
	run := func(cores int) []byte {
		old := runtime.GOMAXPROCS(cores)
		defer runtime.GOMAXPROCS(old)
		r, err := Run(background, smallRun(""))
		if err != nil {
			t.Fatal(err)
		}
		return mustJSON(t, r)
	}
	one := run(1)
	for _, cores := range []int{2, 5} {
		if !bytes.Equal(run(cores), one) {
			t.Errorf("%d cores give other bytes than one", cores)
		}
	}
}

// Damage in a resume file is an error that names file and line; never a panic, never a
// quiet restart.
func TestDamagedResumeFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "sweep.jsonl")
	if _, err := Run(background, smallRun(file)); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(good), "\n")
	for name, text := range map[string]string{
		"text":          "hello\n",
		"no header":     strings.Join(lines[1:], ""),
		"broken line":   lines[0] + "{\"key\":\n" + strings.Join(lines[2:], ""),
		"unknown unit":  lines[0] + "{\"key\":\"elsewhere\",\"layers\":[]}\n",
		"missing layer": lines[0] + strings.Replace(lines[1], `"layers":[`, `"layers":[{},`, 1),
		"unknown field": lines[0] + `{"key":"x","layers":[],"more":1}` + "\n",
	} {
		bad := filepath.Join(dir, "bad.jsonl")
		if err := os.WriteFile(bad, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Run(background, smallRun(bad))
		if !xerr.Input(err) || !strings.Contains(err.Error(), "bad.jsonl") {
			t.Errorf("%s: error %v", name, err)
		}
		if after, _ := os.ReadFile(bad); string(after) != text {
			t.Errorf("%s: the file was changed", name)
		}
	}
	other := smallRun(file)
	other.Seed++
	if _, err := Run(background, other); !xerr.Input(err) {
		t.Errorf("another seed: error %v", err)
	}
}

// Every wrong option is a usage error that names its flag.
func TestWrongOptions(t *testing.T) {
	one := func(c Config) *Options {
		return &Options{Experiments: []string{"width"}, Config: &c, T: []int{8}, Seeds: 1}
	}
	for flag, o := range map[string]*Options{
		"--sigma":      one(Config{Sigma: -1}),
		"--attention":  one(Config{Attention: "linear"}),
		"--fix":        one(Config{Fix: "prayer"}),
		"--T":          {T: []int{1}},
		"--gamma":      {Gamma: []float64{0}},
		"--gamma: 20":  {T: []int{8}, Gamma: []float64{20}},
		"--heads":      one(Config{Heads: 3}),
		"--depth":      {Depth: -1},
		"--seeds":      {Seeds: -1},
		"--experiment": {Experiments: []string{"none"}},
		"--paper":      {Paper: true, Experiments: []string{"gap"}},
		"--undoubled":  {Undoubled: true},
	} {
		_, err := Run(background, o)
		var usage *xerr.Usage
		if !errors.As(err, &usage) || !strings.HasPrefix(err.Error(), strings.Split(flag, ":")[0]) {
			t.Errorf("%s: error %v", flag, err)
		}
	}
}

// The page and the text can be made of every experiment, also of partial ones.
func TestReportsOfEverything(t *testing.T) {
	r, err := Run(background, &Options{T: []int{8, 12}, Seeds: 2, Depth: 2})
	if err != nil {
		t.Fatal(err)
	}
	var page, csv, text bytes.Buffer
	if err := errors.Join(r.WriteHTML(&page), r.WriteCSV(&csv), WriteText(&text, r, TextOptions{Width: 80})); err != nil {
		t.Fatal(err)
	}
	for _, e := range Experiments {
		if !strings.Contains(page.String(), `id="`+e.Name+`"`) || !strings.Contains(text.String(), e.Title) || !strings.Contains(csv.String(), "\n"+e.Name+",") {
			t.Errorf("%s is missing from a report", e.Name)
		}
	}
	if strings.Contains(page.String()+text.String()+csv.String(), "NaN") {
		t.Error("a report has NaN")
	}
	for _, line := range strings.Split(text.String(), "\n") {
		if len([]rune(line)) > 120 {
			t.Errorf("line of %d characters: %s", len([]rune(line)), line)
		}
	}
	for _, p := range r.Pictures() {
		var svg bytes.Buffer
		if err := p.Figure.WriteSVG(&svg); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
}
