package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// AlertFilter selects alerts. A nil filter, and each zero field, takes all.
type AlertFilter struct {
	Code  string
	Where string
	Open  bool             // only those that have not recovered
	Least finding.Severity // of this severity or higher
	From  int64            // the first step
	To    int64            // the last one; 0: no end
	Limit int              // keep only the last Limit ones
}

// SaveAlerts keeps alerts and fills in their ids. An alert that is there already
// (same run, code, place and step) gets the new severity, text and evidence, and
// keeps its time; that it has recovered is never taken back, so that replaying a
// run's snapshots after a restart changes nothing.
//
// Numbers in the evidence that JSON cannot hold become "NaN", "Infinity" or
// "-Infinity".
// Errors: *xerr.Format for what cannot be kept (nothing is then kept); ErrNoSpace;
// else the system's.
func (s *Store) SaveAlerts(ctx context.Context, all []monitor.Alert) error {
	if len(all) == 0 {
		return nil
	}
	evidence := make([]string, len(all))
	for i, a := range all {
		if err := checkAlert(a); err != nil {
			return err
		}
		text, err := json.Marshal(plain(a.Evidence))
		if err != nil {
			return fmt.Errorf("store: evidence of %s at %s: %w", a.Code, a.Where, err)
		}
		evidence[i] = string(text)
	}
	ids := make([]int64, len(all))
	err := s.write(ctx, func(g *group) error {
		for i, a := range all {
			run, err := s.runOf(g, a.Run)
			if err != nil {
				return err
			}
			if ids[i], err = g.upsertAlert(a, run, evidence[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range all {
		all[i].ID = ids[i]
	}
	return nil
}

func checkAlert(a monitor.Alert) error {
	if err := checkRun(a.Run); err != nil {
		return err
	}
	if err := checkStep(a.Step); err != nil {
		return err
	}
	if err := checkPlace(a.Where); err != nil {
		return err
	}
	if a.Code == "" || a.Severity.Rank() < 0 {
		return &xerr.Format{What: "alert", Found: fmt.Sprintf("code %q, severity %q", a.Code, a.Severity), Want: "a code, and info, warn or critical"}
	}
	return nil
}

func (g *group) upsertAlert(a monitor.Alert, run int64, evidence string) (id int64, err error) {
	at := int64(0)
	if !a.At.IsZero() {
		at = a.At.UnixNano()
	}
	_, err = g.scan(`INSERT INTO alerts (run, code, place, step, severity, text, evidence, at, recovered) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (run, code, place, step) DO UPDATE SET severity = excluded.severity, text = excluded.text,
			evidence = excluded.evidence, recovered = coalesce(excluded.recovered, recovered)
		RETURNING id`, []any{run, a.Code, a.Where, a.Step, string(a.Severity), a.Text, evidence, at, a.Recovered}, &id)
	return id, err
}

// plain replaces what JSON cannot hold, at any depth of maps and lists.
func plain(v any) any {
	switch v := v.(type) {
	case float64:
		if word := notFinite(v); word != "" {
			return word
		}
	case *float64:
		if v != nil {
			return plain(*v)
		}
	case float32:
		return plain(float64(v))
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = plain(e)
		}
		return out
	case map[string]float64:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = plain(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plain(e)
		}
		return out
	case []float64:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plain(e)
		}
		return out
	}
	return v
}

const alertColumns = `a.id, r.name, a.code, a.severity, a.step, a.place, a.text, a.evidence, a.at, a.recovered`

func scanAlert(row scanner) (monitor.Alert, error) {
	var a monitor.Alert
	var severity, evidence string
	var at int64
	var recovered sql.NullInt64
	err := row.Scan(&a.ID, &a.Run, &a.Code, &severity, &a.Step, &a.Where, &a.Text, &evidence, &at, &recovered)
	if err != nil {
		return a, err
	}
	a.Severity = finding.Severity(severity)
	if at != 0 {
		a.At = time.Unix(0, at).UTC()
	}
	if recovered.Valid {
		a.Recovered = &recovered.Int64
	}
	if err := json.Unmarshal([]byte(evidence), &a.Evidence); err != nil {
		return a, &ErrCorrupt{Err: fmt.Errorf("alert %d: evidence: %w", a.ID, err)}
	}
	return a, nil
}

// Alerts returns the alerts of a run, or of all runs where run is "", by step, then
// in the order in which they came.
//
// Errors: ErrNotFound for an unknown run; *ErrCorrupt; else the system's.
func (s *Store) Alerts(ctx context.Context, run string, f *AlertFilter) ([]monitor.Alert, error) {
	id := int64(-1)
	if run != "" {
		var err error
		if id, err = s.runID(ctx, run); err != nil {
			return nil, err
		}
	}
	if f == nil {
		f = &AlertFilter{}
	}
	from, to, limit := (&Range{From: f.From, To: f.To, Limit: f.Limit}).bounds()
	rows, err := s.read.QueryContext(ctx, `SELECT `+alertColumns+` FROM alerts a JOIN runs r ON r.id = a.run
		WHERE (?1 < 0 OR a.run = ?1) AND a.step BETWEEN ?2 AND ?3 AND (?4 = '' OR a.code = ?4) AND (?5 = '' OR a.place = ?5)
		AND (NOT ?6 OR a.recovered IS NULL) AND (a.severity = 'critical' OR ?7 < 2 AND a.severity = 'warn' OR ?7 < 1)
		ORDER BY a.step DESC, a.id DESC LIMIT ?8`, id, from, to, f.Code, f.Where, f.Open, f.Least.Rank(), limit)
	all, err := collect(rows, err, scanAlert)
	slices.SortFunc(all, func(a, b monitor.Alert) int { return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.ID, b.ID)) })
	return all, s.alertError(err)
}

func (s *Store) alertError(err error) error {
	if c, ok := err.(*ErrCorrupt); ok {
		c.File = s.database()
	}
	return named(s.database(), err)
}

// MarkDelivered says that a sink has an alert. Saying so twice is fine.
//
// Errors: ErrNotFound for an unknown id; ErrNoSpace; else the system's.
func (s *Store) MarkDelivered(ctx context.Context, id int64, sink string) error {
	return s.write(ctx, func(g *group) error {
		var n int
		found, err := g.scan(`SELECT 1 FROM alerts WHERE id = ?`, []any{id}, &n)
		if err == nil && !found {
			err = fmt.Errorf("alert %d: %w", id, ErrNotFound)
		}
		if err != nil {
			return err
		}
		return g.exec(`INSERT INTO deliveries (alert, sink, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, id, sink, s.now().UnixNano())
	})
}

// Undelivered returns the alerts that a sink does not have yet, oldest first.
func (s *Store) Undelivered(ctx context.Context, sink string) ([]monitor.Alert, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT `+alertColumns+` FROM alerts a JOIN runs r ON r.id = a.run
		WHERE NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.alert = a.id AND d.sink = ?) ORDER BY a.id`, sink)
	all, err := collect(rows, err, scanAlert)
	return all, s.alertError(err)
}
