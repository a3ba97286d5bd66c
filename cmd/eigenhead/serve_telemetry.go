package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/eigenhead/eigenhead"
	"github.com/eigenhead/eigenhead/internal/monitor/pipeline"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
	"github.com/eigenhead/eigenhead/internal/monitor/telemetry"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// telemetryFlags say what other monitoring systems are told. /metrics is always there.
type telemetryFlags struct {
	OTLP          string        `name:"otlp" placeholder:"URL" help:"Push measures, alerts and the server's health there as OTLP over HTTP; headers from $$OTEL_EXPORTER_OTLP_HEADERS."`
	OTLPEvery     time.Duration `name:"otlp-every" default:"1m" placeholder:"TIME" help:"How often to push."`
	Metrics       []string      `placeholder:"NAME,…" help:"Measures on /metrics, such as attention.*. Default: those that alerts look at."`
	MetricsSeries int           `default:"10000" placeholder:"N" help:"Series of measures on /metrics at most. Sound heads of silent runs are left out first, and counted."`
}

// check refuses what is no address, measure or number.
func (c *telemetryFlags) check() error {
	if c.OTLP != "" {
		if err := telemetry.CheckEndpoint("--otlp", c.OTLP); err != nil {
			return err
		}
	}
	if c.OTLPEvery < time.Second {
		return &xerr.Usage{Flag: "--otlp-every", Found: c.OTLPEvery, Want: "1s or more"}
	}
	if c.MetricsSeries < 1 {
		return &xerr.Usage{Flag: "--metrics-series", Found: c.MetricsSeries, Want: "1 or more"}
	}
	return telemetry.CheckMeasures("--metrics", c.Metrics)
}

// telemetry returns what /metrics shows, and a function that ends the pushes once the
// last numbers are sent.
func (c *telemetryFlags) telemetry(ctx context.Context, s *store.Store, p *pipeline.Pipeline, log *slog.Logger) (t *telemetry.Telemetry, end func()) {
	t = telemetry.New(s, p, &telemetry.Options{Measures: c.Metrics, Series: c.MetricsSeries, Version: eigenhead.Version, Log: log})
	if c.OTLP == "" {
		return t, func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // it ends after the server
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := t.Push(ctx, c.OTLP, c.OTLPEvery); err != nil {
			log.Error("pushing metrics ended", "to", c.OTLP, "error", err.Error())
		}
	}()
	return t, func() {
		cancel()
		<-done
	}
}
