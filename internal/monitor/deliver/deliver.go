// Package deliver tells the world outside of an alert: as a log line, to a webhook,
// to a command. Each way satisfies pipeline.Deliverer. It knows nothing of stores:
// that an alert is told once to each is the caller's care, who marks what arrived.
package deliver

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
)

// Schema is the "schema" of what webhooks and commands receive.
const Schema = "eigenhead.alert/1"

// message is the body of a webhook and the standard input of a command.
type message struct {
	Schema string        `json:"schema"`
	Alert  monitor.Alert `json:"alert"`
}

func encode(a monitor.Alert) ([]byte, error) {
	return json.Marshal(message{Schema: Schema, Alert: a})
}

// Log writes one line for each alert, at level info, warn or error (for critical).
type Log struct{ Logger *slog.Logger }

// Name is "log".
func (Log) Name() string { return "log" }

// Deliver writes the line. It cannot fail.
func (l Log) Deliver(ctx context.Context, a monitor.Alert) error {
	level := slog.LevelInfo
	switch a.Severity {
	case finding.Warn:
		level = slog.LevelWarn
	case finding.Critical:
		level = slog.LevelError
	}
	attrs := []slog.Attr{slog.String("run", a.Run), slog.Int64("step", a.Step), slog.String("where", a.Where),
		slog.String("severity", string(a.Severity)), slog.String("code", a.Code)}
	if a.ID != 0 {
		attrs = append(attrs, slog.Int64("alert", a.ID))
	}
	l.Logger.LogAttrs(ctx, level, a.Text, attrs...)
	return nil
}
