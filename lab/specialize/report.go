package specialize

import "github.com/eigenhead/eigenhead/linalg"

// Schema names the JSON form of a Report; a field never changes its meaning within it.
const Schema = "eigenhead.specialize/1"

// Report is everything that one call of the command found.
type Report struct {
	Schema   string      `json:"schema"`
	Tool     string      `json:"tool"`
	Kernel   string      `json:"kernel"`
	Seed     uint64      `json:"seed"`
	Setting  Setting     `json:"setting"`
	Runs     []Run       `json:"runs"`
	Floors   *FloorStudy `json:"floors,omitempty"`
	Diagrams []*Diagram  `json:"diagrams,omitempty"`
	Bridge   *Bridge     `json:"bridge,omitempty"`
	Notes    []string    `json:"notes"`
	Partial  bool        `json:"partial"`
}

// Setting is what the runs share.
type Setting struct {
	Tokens    int     `json:"tokens"`
	Heads     int     `json:"heads"`
	Features  int     `json:"features"`
	Law       *Law    `json:"law"`
	Time      float64 `json:"time"`
	Rate      float64 `json:"rate"` // 0: the flow
	Dimension int     `json:"dimension"`
	Size      float64 `json:"size"`
	Samples   int     `json:"samples"`
	Method    string  `json:"method"`
	Tolerance float64 `json:"tolerance"`
	Starts    int     `json:"starts"`
	Engine    string  `json:"engine"`
}

// Run is one activation followed from its starts; trajectory and matrices are those
// of the first.
type Run struct {
	Activation Activation   `json:"activation"`
	Aggregate  Aggregate    `json:"aggregate,omitempty"`
	Bias       bool         `json:"bias"`
	Engine     string       `json:"engine"` // "ode" or "sgd"
	Law        *Law         `json:"law"`
	Dimension  int          `json:"dimension"`
	Loss       float64      `json:"loss"`
	LossError  float64      `json:"loss_error"`
	Losses     []float64    `json:"losses"` // of every start
	Bayes      float64      `json:"bayes"`
	BayesError float64      `json:"bayes_error"`
	Floor      *float64     `json:"floor,omitempty"` // no loss of this activation is lower; nil: none is known
	Affine     float64      `json:"affine"`          // least loss of affine attention
	M          [][]float64  `json:"m"`
	R          [][]float64  `json:"r"`
	B          []float64    `json:"b"`
	Trajectory []Moment     `json:"trajectory"`
	Chosen     []Snapshot   `json:"chosen"` // r at chosen times
	Events     []Event      `json:"events"`
	Modes      []Mode       `json:"modes"`
	Escapes    []Escape     `json:"escapes"`
	Overlap    *Overlap     `json:"overlap"` // of the heads at the end, with groups
	Needed     Needed       `json:"needed"`
	Prunings   []*Pruning   `json:"prunings,omitempty"`
	Pruned     []PruneStep  `json:"pruned,omitempty"` // mean and spread over the starts
	Scaling    *Scaling     `json:"scaling,omitempty"`
	Distances  []Distance   `json:"distances,omitempty"`
	Distance   *Exponent    `json:"distance_exponent,omitempty"`
	Other      []OtherStart `json:"other_starts,omitempty"`
	Steps      int          `json:"steps"`
	Partial    bool         `json:"partial"`
}

// Moment is a state of a trajectory.
type Moment struct {
	Time           float64     `json:"t"`
	Loss           float64     `json:"loss"`
	LossError      float64     `json:"loss_error"`
	Specialization float64     `json:"specialization"`
	M              [][]float64 `json:"m"`
	B              []float64   `json:"b"`
}

// Snapshot is r at one time.
type Snapshot struct {
	Time float64     `json:"t"`
	R    [][]float64 `json:"r"`
}

// OtherStart is the outcome from a start after the first.
type OtherStart struct {
	Start uint64      `json:"start"`
	Loss  float64     `json:"loss"`
	M     [][]float64 `json:"m"`
}

// PruneStep is the loss after some heads went, over the starts.
type PruneStep struct {
	Removed     int      `json:"removed"`
	Mean        float64  `json:"mean"`
	SD          float64  `json:"sd"`
	Best        *float64 `json:"best,omitempty"`        // mean of the best subsets
	Reoptimized *float64 `json:"reoptimized,omitempty"` // mean
}

// Bridge sets the heads of a real layer beside the simulated ones.
type Bridge struct {
	Model    string   `json:"model"`
	Text     string   `json:"text"`
	Tokens   int      `json:"tokens"`
	Layer    int      `json:"layer"`
	Measured *Overlap `json:"measured"`
}

// rows copies a matrix into nested slices.
func rows(m linalg.Matrix) [][]float64 {
	out := make([][]float64, m.Rows)
	for i := range out {
		out[i] = append([]float64{}, m.Row(i)...)
	}
	return out
}
