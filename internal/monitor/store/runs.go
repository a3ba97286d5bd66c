package store

import (
	"context"
	"time"

	"github.com/eigenhead/eigenhead/finding"
)

// Run is one training run as the store knows it.
type Run struct {
	Name      string                   `json:"name"`
	Model     string                   `json:"model,omitempty"`
	Started   time.Time                `json:"started"`    // when the first snapshot or scalar came
	Last      time.Time                `json:"last"`       // when the last one came; never goes back
	FirstStep int64                    `json:"first_step"` // over snapshots and scalars
	LastStep  int64                    `json:"last_step"`
	Snapshots int                      `json:"snapshots"`
	Alerts    map[finding.Severity]int `json:"alerts"` // those that have not recovered
	Layers    int                      `json:"layers"` // of the last analysis; 0 before the first
	Heads     int                      `json:"heads"`  // of all its layers together
}

// Runs returns all runs, the one that was heard of last first.
func (s *Store) Runs(ctx context.Context) ([]Run, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT r.name, r.model, r.started, r.last, r.layers, r.heads,
		(SELECT count(*) FROM snapshots WHERE run = r.id),
		coalesce(min((SELECT min(step) FROM snapshots WHERE run = r.id), (SELECT min(step) FROM scalars WHERE run = r.id)),
			(SELECT min(step) FROM snapshots WHERE run = r.id), (SELECT min(step) FROM scalars WHERE run = r.id), 0),
		coalesce(max((SELECT max(step) FROM snapshots WHERE run = r.id), (SELECT max(step) FROM scalars WHERE run = r.id)),
			(SELECT max(step) FROM snapshots WHERE run = r.id), (SELECT max(step) FROM scalars WHERE run = r.id), 0)
		FROM runs r ORDER BY r.last DESC, r.id DESC`)
	all, err := collect(rows, err, func(row scanner) (Run, error) {
		r := Run{Alerts: map[finding.Severity]int{}}
		var started, last int64
		err := row.Scan(&r.Name, &r.Model, &started, &last, &r.Layers, &r.Heads, &r.Snapshots, &r.FirstStep, &r.LastStep)
		r.Started, r.Last = time.Unix(0, started).UTC(), time.Unix(0, last).UTC()
		return r, err
	})
	if err != nil {
		return nil, named(s.database(), err)
	}
	return all, named(s.database(), s.countAlerts(ctx, all))
}

// countAlerts fills in how many alerts last.
func (s *Store) countAlerts(ctx context.Context, runs []Run) error {
	byName := map[string]map[finding.Severity]int{}
	for _, r := range runs {
		byName[r.Name] = r.Alerts
	}
	rows, err := s.read.QueryContext(ctx, `SELECT r.name, a.severity, count(*) FROM alerts a JOIN runs r ON r.id = a.run
		WHERE a.recovered IS NULL GROUP BY a.run, a.severity`)
	_, err = collect(rows, err, func(row scanner) (struct{}, error) {
		var name, severity string
		var n int
		err := row.Scan(&name, &severity, &n)
		if m := byName[name]; m != nil { // else the run came between the two queries
			m[finding.Severity(severity)] = n
		}
		return struct{}{}, err
	})
	return err
}
