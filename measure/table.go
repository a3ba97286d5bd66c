package measure

import "github.com/eigenhead/eigenhead/head"

// Null is what an i.i.d. Gaussian head of the same shape, mask and within-row
// logit standard deviation would give (docs/theory.md 1.5).
type Null struct {
	Mean  float64 `json:"mean"`
	SD    float64 `json:"sd"`              // spread over heads; 0 where the null has none
	Error float64 `json:"error,omitempty"` // stated error of Mean (interpolation, sampling)
	Kind  string  `json:"kind"`            // "closed form", "table" or "monte carlo"
}

// Value is one measured number beside its null.
type Value struct {
	Value     float64  `json:"value"`
	Null      *Null    `json:"null,omitempty"`
	NoNull    string   `json:"no_null,omitempty"`    // why a measure that has a null has none here
	Z         *float64 `json:"z,omitempty"`          // (Value − Null.Mean)/Null.SD
	NoZ       string   `json:"no_z,omitempty"`       // why there is a null and no z
	Bound     *float64 `json:"bound,omitempty"`      // absolute error of Value
	BoundKind string   `json:"bound_kind,omitempty"` // what Bound certifies
	Upper     *float64 `json:"upper,omitempty"`      // upper bound where it differs from Value+Bound
	UpperKind string   `json:"upper_kind,omitempty"` // what Upper certifies, with its probability of failure if it has one
	Windows   *Windows `json:"windows,omitempty"`    // spread over the windows of a text; nil: one window
}

// Overlap names the head of the same layer whose energy field is closest.
type Overlap struct {
	Head   int     `json:"head"`
	Cosine float64 `json:"cosine"` // signed
}

// HeadResult holds the measures of one query head.
type HeadResult struct {
	head.ID
	KVHead   int              `json:"kv_head"`
	Measures map[string]Value `json:"measures"`
	Spectrum []float64        `json:"spectrum,omitempty"` // singular values of E, descending
	Overlap  *Overlap         `json:"overlap_with,omitempty"`
	Profile  *Profile         `json:"-"` // for pictures only
}

// KVResult holds the measures of one KV head, computed once and not once per query head.
type KVResult struct {
	Layer    int              `json:"layer"`
	KVHead   int              `json:"kv_head"`
	Measures map[string]Value `json:"measures"`
}

// LayerResult holds the measures of one layer's residual stream.
type LayerResult struct {
	Layer    int              `json:"layer"`
	Measures map[string]Value `json:"measures"`
	Groups   *HeadGroups      `json:"groups,omitempty"` // heads that share one energy field; nil: no overlaps
}

// Omission says which measure is absent, where, and why. Where is "all", "L3",
// "L3H5" or "L3KV1".
type Omission struct {
	Measure string `json:"measure"`
	Where   string `json:"where"`
	Reason  string `json:"reason"`
}

// NonFinite locates the first NaN or infinity of one tensor.
type NonFinite struct {
	Where  string `json:"where"`  // "L3H5", "L3KV1" or "L3"
	Tensor string `json:"tensor"` // "q", "k", "v" or "x"
	Token  int    `json:"token"`
	Column int    `json:"column"`
	Value  string `json:"value"` // "NaN", "+Inf" or "-Inf"
}

// Profile is what the pictures of one head need, over tokens binned to at most
// ProfileBins points. Sums of channel weights over bins are 1 for each channel.
type Profile struct {
	Start      []int     // first token of each bin
	Channels   []Channel // leading channels, at most 4
	MaxLogit   []float64 // per bin: largest row maximum
	Entropy    []float64 // per bin: mean normalised row entropy
	Sink       []float64 // per bin: mean A[i,0]
	NullSigma  []float64 // null spectrum scaled to the same ‖E‖_F
	RowsAbsent string    // reason if the row statistics do not apply
}

// Channel is one singular triple of E over binned tokens.
type Channel struct {
	Sigma, Share float64   // σ_c and σ_c²/‖E‖_F²
	Query, Key   []float64 // Σ u_c(i)² and Σ v_c(j)² over the bin's tokens
}

// ProfileBins is the largest number of points in a profile, whatever T is.
const ProfileBins = 256

// Table is everything measured on some layers of one sequence.
type Table struct {
	Heads     []HeadResult
	KVHeads   []KVResult
	Layers    []LayerResult
	Omitted   []Omission
	NonFinite []NonFinite
}

// Append adds the rows of another table after those of t.
func (t *Table) Append(o *Table) {
	t.Heads = append(t.Heads, o.Heads...)
	t.KVHeads = append(t.KVHeads, o.KVHeads...)
	t.Layers = append(t.Layers, o.Layers...)
	t.Omitted = append(t.Omitted, o.Omitted...)
	t.NonFinite = append(t.NonFinite, o.NonFinite...)
}
