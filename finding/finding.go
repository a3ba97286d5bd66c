// Package finding turns a table of measures into findings: a stable code, its
// severity, its evidence, what it means and what to do. Every rule is a
// documented value in one visible list, All, and every threshold stands in one
// embedded TOML file with its source. It knows nothing of files or models.
package finding

import (
	"cmp"
	"slices"
	"strings"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/measure"
)

// All lists every rule.
var All = []*Rule{
	NonFinite,         // non_finite.go
	MaxLogit,          // max_logit.go
	EntropyCollapse,   // entropy_collapse.go
	CollapsedResidual, // collapsed_residual.go
	IncoherentKeys,    // incoherent_keys.go
	LocalizedChannel,  // localized_channel.go
	RedundantPair,     // redundant_pair.go
	DormantHead,       // dormant_head.go
	SinkHead,          // sink_head.go
	InductionHead,     // induction_head.go
	PreviousTokenHead, // previous_token_head.go
	// Massive activations left out: every healthy pre-norm model has them.
	// A low stable rank of the residual stream left out: massive activations
	// alone bring it to 1.01; see CollapsedResidual for what collapse is.
}

// Severity orders findings; only Warn and Critical say that something is ill.
type Severity string

// The severities, in rising order.
const (
	Info     Severity = "info"
	Warn     Severity = "warn"
	Critical Severity = "critical"
)

// Rank orders severities: 0 for Info, 1 for Warn, 2 for Critical, −1 for anything else.
func (s Severity) Rank() int { return slices.Index([]Severity{Info, Warn, Critical}, s) }

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
	Thresholds *Thresholds // nil: Default
}

// Model is what rules need to know of the model.
type Model struct {
	QKNorm bool // q and k pass a norm: key norms are nearly constant by construction
	Causal bool
	Tokens int // T
}

// Run applies every rule and returns the findings by falling severity, then code,
// layer and head. A rule is silent at a place where a rule that it depends on
// fires, and at the heads of a layer where that one fires for the whole layer.
func Run(in *Input) []Finding {
	if in.Thresholds == nil {
		filled := *in
		filled.Thresholds = Default()
		in = &filled
	}
	raised := make(map[*Rule][]Finding, len(All))
	for _, r := range All {
		raised[r] = r.Check(in)
	}
	all := []Finding{}
	for _, r := range All {
		for _, f := range raised[r] {
			if !explained(f.Where, r.DependsOn, raised) {
				f.Code = r.Code
				all = append(all, f)
			}
		}
	}
	slices.SortStableFunc(all, order)
	return all
}

func explained(where string, causes []*Rule, raised map[*Rule][]Finding) bool {
	for _, cause := range causes {
		for _, f := range raised[cause] {
			rest, inside := strings.CutPrefix(where, f.Where)
			if inside && (rest == "" || rest[0] == 'H' || rest[0] == 'K') {
				return true
			}
		}
	}
	return false
}

func order(a, b Finding) int {
	la, ia := Place(a.Where)
	lb, ib := Place(b.Where)
	return cmp.Or(cmp.Compare(b.Severity.Rank(), a.Severity.Rank()), cmp.Compare(a.Code, b.Code),
		cmp.Compare(la, lb), cmp.Compare(ia, ib))
}

// Place reads layer and head, or layer and KV head, from a finding's Where; a
// number that Where does not name is −1.
func Place(where string) (layer, index int) {
	layer, index = -1, -1
	if id, err := head.ParseID(strings.Replace(where, "KV", "H", 1)); err == nil {
		return id.Layer, id.Head
	}
	if id, err := head.ParseID(where + "H0"); err == nil {
		layer = id.Layer
	}
	return layer, index
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
