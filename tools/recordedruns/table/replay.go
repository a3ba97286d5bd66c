package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/alert"
	"github.com/eigenhead/eigenhead/internal/monitor/analyze"
)

// recorded is what runs.json says of a run.
type recorded struct {
	Run       string           `json:"run"`
	Signal    string           `json:"signal"` // "" of the healthy run
	Steps     int64            `json:"steps"`
	Every     int64            `json:"every"`
	Crossed   map[string]int64 `json:"crossed"`    // first step of each signal beyond its level, looked at after every update
	LossShows *int64           `json:"loss_shows"` // nil: never
	LossHow   string           `json:"loss_how"`
}

// readRuns reads the list of recorded runs in a folder.
func readRuns(dir string) ([]recorded, error) {
	data, err := os.ReadFile(filepath.Join(dir, "runs.json"))
	if err != nil {
		return nil, err
	}
	var runs []recorded
	if err := json.Unmarshal(data, &runs); err != nil {
		return nil, fmt.Errorf("runs.json: %w", err)
	}
	return runs, nil
}

// replay gives a run's snapshots and scalars to a fresh engine, as a server would get
// them, and returns the alerts that it raised, by step.
func replay(ctx context.Context, dir, run string) ([]monitor.Alert, error) {
	files, err := filepath.Glob(filepath.Join(dir, run, "step-*.safetensors"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("%s: no snapshots", filepath.Join(dir, run))
	}
	engine := alert.New(run, finding.Default())
	var alerts []monitor.Alert
	for _, file := range files {
		meta, err := analyze.Header(file)
		if err != nil {
			return nil, err
		}
		key, err := meta.Key(file, run)
		if err != nil {
			return nil, err
		}
		a, err := analyze.Capture(ctx, file, key, nil)
		if err != nil {
			return nil, err
		}
		alerts = append(alerts, engine.Observe(a)...)
	}
	scalars, err := readScalars(filepath.Join(dir, run, "scalars.jsonl"))
	if err != nil {
		return nil, err
	}
	for _, s := range scalars {
		alerts = append(alerts, engine.Scalars(s)...)
	}
	alerts = slices.DeleteFunc(alerts, func(a monitor.Alert) bool { return a.Recovered != nil })
	slices.SortStableFunc(alerts, func(a, b monitor.Alert) int { return cmp.Compare(a.Step, b.Step) })
	return alerts, nil
}

// readScalars reads lines such as {"step":3,"loss":"NaN"}.
func readScalars(file string) ([]monitor.Scalars, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all []monitor.Scalars
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		var raw map[string]any
		if err := json.Unmarshal(lines.Bytes(), &raw); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", file, len(all)+1, err)
		}
		s := monitor.Scalars{Values: map[string]float64{}}
		for name, v := range raw {
			x, err := strconv.ParseFloat(fmt.Sprint(v), 64)
			if err != nil {
				return nil, fmt.Errorf("%s: line %d: %s: %w", file, len(all)+1, name, err)
			}
			if name == "step" {
				s.Step = int64(x)
				continue
			}
			s.Values[name] = x
		}
		all = append(all, s)
	}
	return all, nil
}
