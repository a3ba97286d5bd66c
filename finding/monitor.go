package finding

// Monitor are the thresholds of the training monitor's rules over time. Growth, rise
// and fall compare with earlier snapshots of the run; patience, recovery and
// cool-down count snapshots, in the rules about scalars steps.
type Monitor struct {
	Window     float64 `toml:"window"`
	Recovery   float64 `toml:"recovery"`
	CoolDown   float64 `toml:"cool_down"`
	Hysteresis float64 `toml:"hysteresis"`
	Crowd      float64 `toml:"crowd"`
	Peers      struct {
		Z     float64 `toml:"z"`
		Least float64 `toml:"least"`
	} `toml:"peers"`
	MaxLogit struct {
		Warn     float64 `toml:"warn"`
		Critical float64 `toml:"critical"`
		Rise     float64 `toml:"rise"`
		Patience float64 `toml:"patience"`
	} `toml:"max-logit"`
	LogitGrowth struct {
		Floor    float64 `toml:"floor"`
		Growth   float64 `toml:"growth"`
		Patience float64 `toml:"patience"`
	} `toml:"logit-growth"`
	EntropyCollapse struct {
		Warn      float64 `toml:"warn"`
		Critical  float64 `toml:"critical"`
		Fall      float64 `toml:"fall"`
		NamedMass float64 `toml:"named_mass"`
		Share     float64 `toml:"share"`
		Rise      float64 `toml:"rise"`
		Patience  float64 `toml:"patience"`
	} `toml:"entropy-collapse"`
	RankCollapse struct {
		Warn     float64 `toml:"warn"`
		Critical float64 `toml:"critical"`
		Cosine   float64 `toml:"cosine"`
		Fall     float64 `toml:"fall"`
		Patience float64 `toml:"patience"`
	} `toml:"rank-collapse"`
	IncoherentKeys struct {
		Ratio    float64 `toml:"ratio"`
		Z        float64 `toml:"z"`
		Extreme  float64 `toml:"extreme"`
		Rise     float64 `toml:"rise"`
		Patience float64 `toml:"patience"`
	} `toml:"incoherent-keys"`
	HeadDeath struct {
		Share    float64 `toml:"share"`
		Fall     float64 `toml:"fall"`
		Patience float64 `toml:"patience"`
	} `toml:"head-death"`
	SinkOnset struct {
		Mass     float64 `toml:"mass"`
		Excess   float64 `toml:"excess"`
		Rise     float64 `toml:"rise"`
		Patience float64 `toml:"patience"`
	} `toml:"sink-onset"`
	Redundancy struct {
		Cosine   float64 `toml:"cosine"`
		Extreme  float64 `toml:"extreme"`
		Z        float64 `toml:"z"`
		Rise     float64 `toml:"rise"`
		Patience float64 `toml:"patience"`
	} `toml:"redundancy"`
	LossSpike        Spike            `toml:"loss-spike"`
	GradientSpike    GradientSpike    `toml:"gradient-spike"`
	MissingHeartbeat MissingHeartbeat `toml:"missing-heartbeat"`
}

// Spike says when a scalar of every step has jumped.
type Spike struct {
	Sigma    float64 `toml:"sigma"`
	Window   float64 `toml:"window"`
	Jump     float64 `toml:"jump"`
	Recovery float64 `toml:"recovery"`
	CoolDown float64 `toml:"cool_down"`
}

// GradientSpike is Spike, with the number of them that makes a warning.
type GradientSpike struct {
	Spike
	Count float64 `toml:"count"`
}

// MissingHeartbeat says how long a run may be silent.
type MissingHeartbeat struct {
	Seconds float64 `toml:"seconds"`
	Gaps    float64 `toml:"gaps"`
	First   float64 `toml:"first"`
}
