package measure

import (
	"math"

	"github.com/eigenhead/eigenhead/linalg"
)

// The channel.* measures say over how many tokens the leading channels of the
// energy field spread: v_c over keys, u_c over queries.

// leading is the number of channels that channel.* average over; a profile shows
// profileChannels of them.
const (
	leading         = 8
	profileChannels = 4
)

// vectorError is the largest error of a channel's vectors that channel.* accept.
// σ carries an absolute error of at most Bound, which turns u_c and v_c by up to
// Bound/gap: a channel whose gap to either neighbor is below Bound/vectorError is
// left out, since only the span of such a cluster is determined.
const vectorError = 1e-6

var channelKeyIPR = &Measure{
	Name: "channel.key_ipr", Unit: "1", Per: PerHead,
	Doc: Doc{
		Summary: "How local the leading channels are over key tokens: T times the inverse participation ratio.",
		Formula: "mean over c ≤ min(8, rank) of T·Σ_j v_c(j)⁴",
		Range:   "[1, T]: 1 if a channel weighs all keys alike, T if it sits on one. Channels with a gap to a neighbor below 10⁶ times the error of σ are left out; no value if none is left.",
		Null:    "3(T − 1)/(T + 1), close to 3, whatever d: v_c is a random direction among those with Σ_j v_c(j) = 0.",
		Meaning: "High: a channel reads a few tokens (sink, delimiter). About T/value tokens carry it.",
	},
	Source:  "arXiv 2605.02907 (IPR of channels); mean over the leading eight, times T, is ours.",
	Compute: func(s *Subject) (Value, error) { return meanIPR(s, keySide) },
	Null:    func(s *Subject) (*Null, error) { return iprNull(s, keySide) },
}

var channelQueryIPR = &Measure{
	Name: "channel.query_ipr", Unit: "1", Per: PerHead,
	Doc: Doc{
		Summary: "How local the leading channels are over query tokens.",
		Formula: "mean over c ≤ min(8, rank) of T·Σ_i u_c(i)⁴",
		Range:   "[1, T], as channel.key_ipr.",
		Null:    "3T/(T + 2), close to 3, whatever d: u_c is a random direction.",
		Meaning: "High: a channel acts for a few queries only.",
	},
	Source:  "As channel.key_ipr.",
	Compute: func(s *Subject) (Value, error) { return meanIPR(s, querySide) },
	Null:    func(s *Subject) (*Null, error) { return iprNull(s, querySide) },
}

var channelKeyIPRMax = &Measure{
	Name: "channel.key_ipr_max", Unit: "1", Per: PerHead,
	Doc: Doc{
		Summary: "The most local of the leading channels over key tokens.",
		Formula: "max over c ≤ min(8, rank) of T·Σ_j v_c(j)⁴",
		Range:   "[1, T], as channel.key_ipr.",
		Null:    "The largest of min(8, rank) random directions.",
		Meaning: "High while channel.key_ipr is low: one channel alone is local.",
	},
	Source:  "As channel.key_ipr.",
	Compute: maxKeyIPR,
	Null:    factorNull("channel.key_ipr_max"),
}

type side int

const (
	keySide side = iota
	querySide
)

// iprs returns T·Σx⁴ for each leading channel whose vectors are determined.
func iprs(s *Subject, of side) ([]float64, error) {
	c, err := s.channels()
	if err != nil {
		return nil, err
	}
	rank := c.Rank(c.Noise)
	if rank == 0 {
		return nil, errNoEnergy
	}
	m := c.V
	if of == querySide {
		m = c.U
	}
	var out []float64
	for k := range min(leading, rank, m.Cols) {
		if gap(c.Sigma, k)*vectorError > c.Bound {
			out = append(out, ipr(m, k))
		}
	}
	if out == nil {
		return nil, omit("the leading singular values are too close together to tell their channels apart")
	}
	return out, nil
}

// gap is the distance of σ_k from its nearer neighbor; below the last is 0, the
// singular value of everything outside the factors' span.
func gap(sigma []float64, k int) float64 {
	below := 0.0
	if k+1 < len(sigma) {
		below = sigma[k+1]
	}
	g := sigma[k] - below
	if k > 0 {
		g = min(g, sigma[k-1]-sigma[k])
	}
	return g
}

// ipr returns T·Σ x⁴ of column k.
func ipr(m linalg.Matrix, k int) float64 {
	sum := 0.0
	for i := range m.Rows {
		x := m.At(i, k)
		sum += x * x * x * x
	}
	return float64(m.Rows) * sum
}

func meanIPR(s *Subject, of side) (Value, error) {
	all, err := iprs(s, of)
	if err != nil {
		return Value{}, err
	}
	sum := 0.0
	for _, v := range all {
		sum += v
	}
	return number(sum / float64(len(all)))
}

func maxKeyIPR(s *Subject) (Value, error) {
	all, err := iprs(s, keySide)
	if err != nil {
		return Value{}, err
	}
	largest := math.Inf(-1)
	for _, v := range all {
		largest = max(largest, v)
	}
	return number(largest)
}
