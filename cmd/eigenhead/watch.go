package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/deliver"
	"github.com/eigenhead/eigenhead/internal/monitor/pipeline"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// watchCmd monitors a folder that a training run fills.
type watchCmd struct {
	Dir string `arg:"" help:"Folder of captures and scalars.jsonl, as the tap writes them, or of checkpoints named by their step (checkpoint-500)."`

	Once    bool   `help:"Judge what is there, print it, and exit."`
	JSON    string `name:"json" placeholder:"FILE" help:"With --once: write the result as JSON (- for standard output)."`
	FailOn  string `enum:"never,info,warn,critical" default:"never" help:"With --once: exit with 1 on alerts of this severity or above: never, info, warn, critical."`
	RunName string `name:"run" placeholder:"NAME" help:"Name of the run. Default: the folder's."`
	Data    string `placeholder:"DIR" help:"Folder that keeps captures, measures and alerts. Default: .eigenhead in the watched folder; with --once nothing is kept."`

	inputFlags

	Rules         string        `placeholder:"FILE" help:"TOML file that overrides thresholds (see: eigenhead rules)."`
	Webhook       []string      `placeholder:"URL" help:"Post each alert there as JSON, until it is taken. May be given more than once."`
	WebhookSecret string        `env:"EIGENHEAD_WEBHOOK_SECRET" placeholder:"TEXT" help:"Sign webhooks with it (HMAC-SHA256). Better given as $$EIGENHEAD_WEBHOOK_SECRET: others see flags."`
	Command       string        `placeholder:"COMMAND" help:"Run it for each alert, with the alert as JSON on its standard input."`
	Workers       int           `placeholder:"N" help:"Captures measured at the same time. Default: one for each core."`
	Interval      time.Duration `default:"2s" placeholder:"TIME" help:"How often to look into the folder."`
}

// Help is the long help, with examples that work as they stand.
func (watchCmd) Help() string {
	return `Does what serve does for a folder, without HTTP: measures each capture as it appears,
raises alerts over time, and tells log, webhooks and commands. A file that is still being
written is waited for. Checkpoints are run on a fixed text (--text, --tokens, --context
as for scan). With --once it is a check for scripts: it prints {run, snapshots, alerts}
and its exit code says whether the run is well.

Examples:
  eigenhead watch runs/a
  eigenhead watch runs/a --once
  eigenhead watch runs/a --once --json - --fail-on warn
  eigenhead watch output/ --text wiki.txt --webhook https://example.com/hook
  eigenhead watch runs/a --command 'notify --from training'`
}

// Run watches until it is interrupted, or once.
func (c *watchCmd) Run(e *env) error {
	if err := c.check(); err != nil {
		return err
	}
	thresholds, err := readThresholds(c.Rules)
	if err != nil {
		return err
	}
	sinks, err := sinksOf(c.Webhook, c.WebhookSecret, c.Command)
	if err != nil {
		return err
	}
	level := slog.LevelInfo
	if c.Once {
		level = slog.LevelError
	}
	log := slog.New(slog.NewTextHandler(e.stderr, &slog.HandlerOptions{Level: level}))
	if !c.Once {
		sinks = append(sinks, deliver.Log{Logger: log})
	}
	data, remove, err := c.dataFolder()
	if err != nil {
		return err
	}
	defer remove()
	s, err := store.Open(data, &store.Options{Name: "eigenhead watch"})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	p := pipeline.New(s, &pipeline.Options{Workers: c.Workers, Thresholds: thresholds, Deliverers: sinks, Log: log})
	if err := p.Start(e.ctx); err != nil {
		return err
	}
	defer p.Close()
	w := newWatcher(c, p, s, log)
	if c.Once {
		return c.once(e, w, s, thresholds)
	}
	log.Info("watching", "folder", c.Dir, "run", c.RunName, "data", data)
	return w.follow(e.ctx, c.Interval)
}

// check fills in the run's name and refuses what does not go together.
func (c *watchCmd) check() error {
	if info, err := os.Stat(c.Dir); err != nil || !info.IsDir() {
		return &xerr.Usage{Flag: c.Dir, Found: "not a folder", Want: "the folder that a training run fills"}
	}
	if !c.Once && (c.JSON != "" || c.FailOn != "never") {
		return &xerr.Usage{Flag: "--json, --fail-on", Found: "without --once", Want: "--once: a watch without it has no end"}
	}
	if c.Interval <= 0 {
		return &xerr.Usage{Flag: "--interval", Found: c.Interval, Want: "more than 0"}
	}
	if c.Workers < 0 {
		return &xerr.Usage{Flag: "--workers", Found: c.Workers, Want: "0 or more"}
	}
	if c.RunName == "" {
		abs, err := filepath.Abs(c.Dir)
		if err != nil {
			return err
		}
		c.RunName = filepath.Base(abs)
	}
	if monitor.CheckRun(c.RunName) != nil {
		return &xerr.Usage{Flag: "--run", Found: fmt.Sprintf("%q", c.RunName), Want: "letters, digits, dots, underscores and hyphens, a letter or digit first"}
	}
	return nil
}

// dataFolder returns the store's folder, and what to do with it at the end.
func (c *watchCmd) dataFolder() (dir string, remove func(), err error) {
	switch {
	case c.Data != "":
		return c.Data, func() {}, nil
	case !c.Once:
		return filepath.Join(c.Dir, ".eigenhead"), func() {}, nil
	}
	dir, err = os.MkdirTemp("", "eigenhead-watch-")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

// sinksOf returns who is told of alerts beside the log.
func sinksOf(webhooks []string, secret, command string) ([]pipeline.Deliverer, error) {
	var sinks []pipeline.Deliverer
	for _, url := range webhooks {
		w, err := deliver.NewWebhook(url, secret, nil)
		if err != nil {
			return nil, err
		}
		sinks = append(sinks, w)
	}
	if command != "" {
		run, err := deliver.NewCommand(command, 0)
		if err != nil {
			return nil, err
		}
		sinks = append(sinks, run)
	}
	return sinks, nil
}

// once judges what is there and writes the result.
func (c *watchCmd) once(e *env, w *watcher, s *store.Store, thresholds *finding.Thresholds) error {
	if err := checkClash([]string{c.JSON}, c.Text, c.Tokens, c.Rules); err != nil {
		return err
	}
	if err := w.all(e.ctx); err != nil {
		return err
	}
	r, err := judged(e.ctx, s, c.RunName, thresholds)
	if err != nil {
		return err
	}
	if c.JSON != "" {
		err = e.writeFile(c.JSON, r.writeJSON)
	}
	if c.JSON != "-" && err == nil {
		err = r.writeText(e.stdout)
	}
	if err == nil && c.FailOn != "never" && r.worst() >= finding.Severity(c.FailOn).Rank() {
		return errFindings
	}
	return err
}

// follow looks into the folder again and again, until ctx ends.
func (w *watcher) follow(ctx context.Context, interval time.Duration) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if _, err := w.look(ctx, false); err != nil && ctx.Err() == nil {
			w.log.Error("looking into the folder", "error", err.Error(), "hint", xerr.Hint(err))
		}
		select {
		case <-ctx.Done():
			return nil // an interrupt is how a watch ends
		case <-tick.C:
		}
	}
}
