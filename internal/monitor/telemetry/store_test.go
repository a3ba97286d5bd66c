package telemetry

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/pipeline"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
)

// From a capture's first byte to the page, with the real store and pipeline.
func TestACaptureShowsOnThePage(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := store.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p := pipeline.New(s, &pipeline.Options{Workers: 1})
	if err := p.Start(ctx); err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	f, err := os.Open("../testdata/runs/logits/step-00000120-sample-0.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, _, err := p.Accept(ctx, "logits", f); err != nil {
		t.Fatal(err)
	}
	if err := p.Scalars(ctx, "logits", []monitor.Scalars{{Step: 121, Values: map[string]float64{"loss": 2.5}}}); err != nil {
		t.Fatal(err)
	}
	if err := p.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	got := scrape(t, New(s, p, nil))
	for series, want := range map[string]float64{
		"eigenhead_captures_received_total{}":                     1,
		"eigenhead_snapshots_analyzed_total{}":                    1,
		`eigenhead_run_measured_step{run="logits"}`:               120,
		`eigenhead_run_step{run="logits"}`:                        121,
		`eigenhead_scalar{name="loss",run="logits"}`:              2.5,
		`eigenhead_read_errors_total{}`:                           0,
		`eigenhead_alerts_open{run="logits",severity="critical"}`: 0,
	} {
		if v, ok := got[series]; !ok || v != want {
			t.Errorf("%s: %v (%v), want %v", series, v, ok, want)
		}
	}
	if v := got[`eigenhead_attention_max_logit{head="2",layer="1",run="logits"}`]; v < 100 {
		t.Errorf("max logit of L1H2: %v, want above 100 at step 120", v)
	}
	for _, series := range []string{`eigenhead_output_write_norm{head="0",layer="0",run="logits"}`,
		`eigenhead_key_incoherence{kv_head="3",layer="3",run="logits"}`, `eigenhead_residual_cosine{layer="3",run="logits"}`} {
		if got[series] == 0 {
			t.Errorf("%s is not shown", series)
		}
	}
}
