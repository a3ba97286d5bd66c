// Package alert judges a training run over time: which heads, layers or losses have
// fallen ill, since when, why, and when they recovered. It is pure: no clock, no
// files, no store. The same snapshots and scalars give the same alerts in whatever
// order they arrive, so that a restarted server replays its store and stands where
// it stood.
//
// A rule finds a value beyond a level (level), different from the run's own earlier
// snapshots (trend) or from the other heads of the same snapshot (peer outlier). An
// alert goes inactive, pending, firing as in Prometheus, counted in snapshots:
// patience before it is raised, recovery before it ends, and a cool-down before the
// same place may raise it again.
package alert

import (
	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
)

// Rule is one documented check over time. Exactly one of its sources is set.
type Rule struct {
	Code      string
	Severity  finding.Severity // the highest that it can raise
	Doc       finding.Doc
	DependsOn []*Rule // silent where one of these is ill

	crowd    bool                           // when many heads are ill the run says it, see crowdOf
	patience func(*finding.Monitor) float64 // snapshots in a row; nil: one
	snapshot func(*scope) []verdict         // judges one snapshot against earlier ones
	scalar   *scalarRule                    // judges a number of every step
	silence  bool                           // judges that nothing arrives
}

// All lists every rule, causes before what depends on them.
var All = []*Rule{
	NonFinite,        // non_finite.go
	MaxLogit,         // max_logit.go
	LogitGrowth,      // logit_growth.go
	EntropyCollapse,  // entropy_collapse.go
	RankCollapse,     // rank_collapse.go
	IncoherentKeys,   // incoherent_keys.go
	HeadDeath,        // head_death.go
	SinkOnset,        // sink_onset.go
	Redundancy,       // redundancy.go
	LossSpike,        // loss_spike.go
	GradientSpike,    // gradient_spike.go
	MissingHeartbeat, // missing_heartbeat.go
	// Massive activations left out: every healthy pre-norm model grows them.
}

// Lookup returns the rule of a code, or nil.
func Lookup(code string) *Rule {
	for _, r := range All {
		if r.Code == code {
			return r
		}
	}
	return nil
}

// verdict is what a rule says of one place in one snapshot.
type verdict struct {
	where    string           // of the alert: "L3H5", "L3KV1", "L3" or "run"
	track    string           // what patience is counted for, where that is not the place
	severity finding.Severity // "": well
	near     bool             // well, but not yet back behind the threshold: neither ill nor recovering
	atOnce   bool             // patience does not apply
	weight   float64          // how ill, beside the severity, to compare places of a rule
	say      func() (text string, evidence map[string]any)
}

// well says that a place was judged and is not ill.
func well(where string) verdict { return verdict{where: where} }

// name is what the verdict's patience is counted for.
func (v verdict) name() string {
	if v.track != "" {
		return v.track
	}
	return v.where
}

// wholeRun is the place of what concerns no single head or layer.
const wholeRun = "run"

// alertKey names an alert within its run.
type alertKey struct {
	code, where string
	step        int64
}

func keyOf(a *monitor.Alert) alertKey { return alertKey{a.Code, a.Where, a.Step} }
