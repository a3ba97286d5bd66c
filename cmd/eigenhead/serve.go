package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor/auth"
	"github.com/eigenhead/eigenhead/internal/monitor/deliver"
	"github.com/eigenhead/eigenhead/internal/monitor/ingest"
	"github.com/eigenhead/eigenhead/internal/monitor/pipeline"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// serveCmd is the training monitor.
type serveCmd struct {
	Data   string `required:"" placeholder:"DIR" help:"Folder that keeps everything: captures, measures, alerts. Made if there is none."`
	Listen string `default:"127.0.0.1:7070" placeholder:"ADDR" help:"Address to listen on; port 0 takes a free one."`

	NoAuth   bool   `help:"Ask for no token. Only on an address that this machine alone can reach."`
	NewToken bool   `help:"Make a new token; the old one, and sessions opened with it, end."`
	TLSCert  string `name:"tls-cert" placeholder:"FILE" help:"Certificate for TLS (PEM). With --tls-key."`
	TLSKey   string `name:"tls-key" placeholder:"FILE" help:"Its key (PEM)."`

	Workers    int       `placeholder:"N" help:"Captures measured at the same time. Default: one for each core."`
	Queue      int       `default:"20000" placeholder:"N" help:"Captures that may wait on disk for their measures; more are told to come later (429)."`
	MaxCapture bytesFlag `default:"1GiB" placeholder:"SIZE" help:"Largest capture that is taken."`
	Rate       float64   `default:"1000" placeholder:"N" help:"Requests a second from one address, in bursts of twice that; more get 429. 0: any number."`

	Rules         string   `placeholder:"FILE" help:"TOML file that overrides thresholds (see: eigenhead rules)."`
	Webhook       []string `placeholder:"URL" help:"Post each alert there as JSON, until it is taken. May be given more than once."`
	WebhookSecret string   `env:"EIGENHEAD_WEBHOOK_SECRET" placeholder:"TEXT" help:"Sign webhooks with it (HMAC-SHA256). Better given as $$EIGENHEAD_WEBHOOK_SECRET: others see flags."`
	Command       string   `placeholder:"COMMAND" help:"Run it for each alert, with the alert as JSON on its standard input."`

	RetainAge   time.Duration `placeholder:"720h" help:"Remove capture files older than that; measures stay."`
	RetainCount int           `placeholder:"N" help:"Keep the files of that many captures of a run."`
	RetainBytes bytesFlag     `placeholder:"SIZE" help:"Keep that much of capture files."`

	telemetryFlags

	LogLevel slog.Level `default:"info" placeholder:"LEVEL" help:"Least level of the log on standard error: debug, info, warn or error."`
}

// Help is the long help, with examples that work as they stand.
func (serveCmd) Help() string {
	return `Takes captures and scalars of training runs over HTTP, keeps them, measures every head,
raises alerts before a run breaks, and shows all of it on a page. The URL is printed, and
the first time a token: it is not shown again. The log, one JSON object a line, goes to
standard error. Ctrl-C stops; what is not yet measured is resumed at the next start.

Examples:
  eigenhead serve --data monitor
  eigenhead serve --data monitor --listen 127.0.0.1:0 --no-auth
  eigenhead serve --data monitor --listen :7070 --tls-cert cert.pem --tls-key key.pem
  printf 'Authorization: Bearer %s' "$EIGENHEAD_TOKEN" |
    curl -H @- --data-binary @step-1200.safetensors http://127.0.0.1:7070/api/v1/runs/mine/captures`
}

// Run serves until it is interrupted.
func (c *serveCmd) Run(e *env) error {
	if err := c.check(); err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(e.stderr, &slog.HandlerOptions{Level: c.LogLevel}))
	opts, err := c.pipelineOptions(log)
	if err != nil {
		return err
	}
	s, err := store.Open(c.Data, &store.Options{Name: "eigenhead serve"})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	if r := c.retention(); r != (store.Retention{}) {
		opts.Retain = func(ctx context.Context) (int, error) { return s.Retain(ctx, r) }
	}
	guard, token, err := c.guard()
	if err != nil {
		return err
	}
	ln, err := ingest.Listen(c.Listen, c.TLSCert, c.TLSKey)
	if err != nil {
		return err
	}
	defer func() { _ = ln.Close() }()
	p := pipeline.New(s, opts)
	if err := p.Start(context.WithoutCancel(e.ctx)); err != nil {
		return err
	}
	defer p.Close()
	metrics, endMetrics := c.telemetry(e.ctx, s, p, log)
	defer endMetrics()
	c.greet(e, ln.Addr(), token)
	log.Info("serving", "address", ln.Addr().String(), "data", s.Dir(), "tls", c.TLSCert != "", "token", guard.NeedsLogin())
	err = ingest.Serve(e.ctx, ln, c.routes(p, s, guard, metrics, log), c.bounds(p, log))
	log.Info("stopped", "unmeasured", p.Stats().Queue)
	return err
}

// check refuses what belongs together and is not.
func (c *serveCmd) check() error {
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return &xerr.Usage{Flag: "--tls-cert, --tls-key", Found: "one of them", Want: "both or none"}
	}
	if c.NoAuth && !auth.Loopback(c.Listen) {
		return &xerr.Usage{Flag: "--no-auth", Found: "--listen " + c.Listen, Want: "an address of this machine alone, such as 127.0.0.1:7070",
			Hint: "leave out --no-auth: others could read and write"}
	}
	if c.NoAuth && c.NewToken {
		return &xerr.Usage{Flag: "--no-auth, --new-token", Found: "both", Want: "one of them"}
	}
	if err := c.telemetryFlags.check(); err != nil {
		return err
	}
	for flag, v := range map[string]float64{"--workers": float64(c.Workers), "--queue": float64(c.Queue), "--rate": c.Rate,
		"--retain-age": float64(c.RetainAge), "--retain-count": float64(c.RetainCount)} {
		if v < 0 {
			return &xerr.Usage{Flag: flag, Found: v, Want: "0 or more"}
		}
	}
	return nil
}

func (c *serveCmd) retention() store.Retention {
	return store.Retention{Age: c.RetainAge, Count: c.RetainCount, Bytes: int64(c.RetainBytes)}
}

func (c *serveCmd) pipelineOptions(log *slog.Logger) (*pipeline.Options, error) {
	thresholds, err := readThresholds(c.Rules)
	if err != nil {
		return nil, err
	}
	sinks, err := sinksOf(c.Webhook, c.WebhookSecret, c.Command)
	if err != nil {
		return nil, err
	}
	sinks = append(sinks, deliver.Log{Logger: log})
	return &pipeline.Options{Workers: c.Workers, Queue: c.Queue, Limit: int64(c.MaxCapture),
		Thresholds: thresholds, Deliverers: sinks, Log: log}, nil
}

// guard returns who may come in, and the token if it is new.
func (c *serveCmd) guard() (*auth.Guard, string, error) {
	if c.NoAuth {
		return auth.Everyone(), "", nil
	}
	open := auth.Open
	if c.NewToken {
		open = auth.Renew
	}
	g, token, err := open(c.Data)
	if err != nil {
		return nil, "", err
	}
	g.Secure = c.TLSCert != ""
	return g, token, nil
}
