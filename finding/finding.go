// Package finding turns a table of measures into findings: a stable code, its
// severity, its evidence, what it means and what to do. Every rule is a
// documented value in one visible list, All, and every threshold stands in one
// embedded TOML file with its source. It knows nothing of files or models.
package finding

import "github.com/eigenhead/eigenhead/measure"

// Severity orders findings; only Warn and Critical say that something is ill.
type Severity string

// The severities, in rising order.
const (
	Info     Severity = "info"
	Warn     Severity = "warn"
	Critical Severity = "critical"
)

// Finding is one statement about a head, a layer or the model.
type Finding struct {
	Code     string         `json:"code"`
	Severity Severity       `json:"severity"`
	Where    string         `json:"where"` // "L3H5", "L3KV1", "L3" or "model"
	Text     string         `json:"text"`  // one sentence with the numbers in it
	Evidence map[string]any `json:"evidence"`
}

// Rule is one documented check.
type Rule struct {
	Code      string
	Severity  Severity // the highest that it can raise
	Doc       Doc
	DependsOn []*Rule // silent where one of these fires
	Check     func(*Input) []Finding
}

// Doc is what explain, the page and the documentation print.
type Doc struct {
	Summary string // one sentence
	Means   string // what it says about the head
	Do      string // what to do about it
}

// Input is what rules look at.
type Input struct {
	Table      *measure.Table
	Model      Model
	Thresholds *Thresholds
}

// Model is what rules need to know of the model.
type Model struct {
	QKNorm bool // q and k pass a norm: key norms are nearly constant by construction
	Causal bool
	Tokens int // T
}
