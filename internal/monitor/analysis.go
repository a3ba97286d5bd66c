package monitor

import "github.com/eigenhead/eigenhead/measure"

// Value is one measure at one place of one snapshot.
type Value struct {
	Where   string        `json:"where"` // "L3H5", "L3KV1" or "L3"
	Measure string        `json:"measure"`
	Value   float64       `json:"value"`
	Null    *measure.Null `json:"null,omitempty"`
	Z       *float64      `json:"z,omitempty"`
}

// Analysis is everything that one capture gave.
type Analysis struct {
	Key
	Model     string              `json:"model,omitempty"`
	Tokens    int                 `json:"tokens"` // T
	QKNorm    bool                `json:"qk_norm"`
	Causal    bool                `json:"causal"`
	Values    []Value             `json:"values"` // by layer, then head, in the catalogue's order
	NonFinite []measure.NonFinite `json:"non_finite,omitempty"`
	Logits    []Logit             `json:"logits"`            // one for each head whose scores are finite
	Scalars   map[string]float64  `json:"scalars,omitempty"` // of the capture's metadata
}

// Logit takes a head's largest visible score apart: Max = Scale·QueryNorm·KeyNorm·Cosine.
type Logit struct {
	Where       string  `json:"where"`
	KVHead      int     `json:"kv_head"`
	Max         float64 `json:"max"`        // attention.max_logit
	Query       int     `json:"query"`      // row i of the largest score
	Key         int     `json:"key"`        // column j of it
	QueryNorm   float64 `json:"query_norm"` // ‖q_i‖
	KeyNorm     float64 `json:"key_norm"`   // ‖k_j‖
	Cosine      float64 `json:"cosine"`     // of q_i and k_j
	Scale       float64 `json:"scale"`
	QueryMedian float64 `json:"query_norm_median"` // median over tokens
	KeyMedian   float64 `json:"key_norm_median"`
	OtherKeys   float64 `json:"other_keys"` // the largest visible score without column j; Max where there is no other
}
