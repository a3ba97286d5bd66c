// Package measure is the catalogue of numbers about attention heads: each a
// documented value with its Gaussian null, all of them in one visible list, All.
// From the layers that a forward pass or a capture hands over it makes a Table.
// It knows nothing of files, checkpoints or model families.
package measure

// Per says what a measure is a property of.
type Per int

// A measure belongs to a query head, a KV head or a layer.
const (
	PerHead Per = iota
	PerKVHead
	PerLayer
)

// String names the owner for messages and documentation.
func (p Per) String() string {
	return [...]string{"head", "KV head", "layer"}[p]
}

// Measure is one documented number.
type Measure struct {
	Name   string // stable: JSON key, flag, series name
	Unit   string // "1" for a ratio, "nats", "tokens", …
	Per    Per
	Doc    Doc
	Source string // paper or repository, and how ours differs
	// Compute returns the value with its bound, or an *Omit that says why there is none.
	Compute func(*Subject) (Value, error)
	// Null returns the null; nil where there is none, and then NoNull says why.
	Null   func(*Subject) (*Null, error)
	NoNull string
	NoZ    string // why there is no z beside a null; empty where there is one
}

// Doc is what explain, the page and the documentation print.
type Doc struct {
	Summary string // one sentence
	Formula string // Unicode
	Range   string // range and degenerate cases
	Null    string // what the null is, in words
	Meaning string // how to read a high or low value
}

// All is the catalogue, in the order in which reports list it. A test refuses an
// entry that is undocumented, and a measure that is not here does not exist.
var All = []*Measure{
	energyRank, energyK90, energyK95, energyK99, energyTop20, // energy.go
	energyStableRank, energyEffectiveRank, energySigma1, energyFrobenius,
	keyIncoherence, keyIncoherenceCentered, keyCondition, keyLeverageMax, keyNormMinMedian, // key.go
	channelKeyIPR, channelQueryIPR, channelKeyIPRMax, // channel.go
	attentionLogitStd, attentionMaxLogit, attentionEntropy, attentionEntropyP05, // attention.go
	attentionUniformDistance, attentionFrobenius,
	attentionSink, attentionSinkMax, attentionNullMass, attentionDiagonal, // attention_place.go
	attentionPrevious, attentionDistance, attentionInduction,
	attentionSigma1, attentionSigma2, attentionGap, attentionEigenGap, attentionStableRank, // attention_sigma.go
	overlapMax,                                               // overlap.go
	weightsK90, weightsSigma1, weightsTrace, weightsVariance, // weights.go
	outputShare, outputPart, // output.go
	residualStableRank, residualGramStableRank, residualEffectiveRank, // residual.go
	residualCosine, residualTokenResidual, residualMassive,
}
