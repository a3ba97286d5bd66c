package report

import (
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/measure"
)

// HeadView is what the command head shows of one head: its leading channels over
// the tokens, E = Σ_c σ_c u_c v_cᵀ.
type HeadView struct {
	Source     string // base name of the checkpoint or capture
	ID         head.ID
	KVHead     int
	Dim        int
	Pieces     []string // one a token; nil where the vocabulary is not known
	Tokens     int
	Convention string // of Channels
	Ranks      []ConventionRank
	Channels   []HeadChannel
	Frobenius  float64 // ‖E‖_F, of which shares are taken

	Sigma     []float64                // whole spectrum, to be drawn; nil: not drawn
	NullSigma []float64                // that of a Gaussian head of the same ‖E‖_F; nil: none
	Measures  map[string]measure.Value // of the head and its KV head, to be listed; nil: none
}

// ConventionRank is the rank of E in one convention of the energy field.
type ConventionRank struct {
	Convention string
	Rank       int
	Bound      int    // what algebra allows
	Omitted    string // reason where the rank was not computed
}

// HeadChannel is one singular triple of E.
type HeadChannel struct {
	Sigma, Share float64   // σ_c and σ_c²/‖E‖_F²
	Query, Key   []float64 // u_c(i)² and v_c(j)² by token; each sums to 1
}
