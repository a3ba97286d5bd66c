package measure

import (
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/attention"
	"github.com/eigenhead/eigenhead/linalg"
	"github.com/eigenhead/eigenhead/spectrum"
)

// profile bins what pictures of a head show over at most ProfileBins tokens; nil
// if the head is not finite.
func (s *Subject) profile() *Profile {
	if s.bad() != nil {
		return nil
	}
	T := s.pair().T()
	p := &Profile{Start: binStarts(T)}
	p.Channels = s.profileChannels(p.Start)
	p.NullSigma = s.nullSigma()
	r, err := s.rows()
	if err != nil {
		p.RowsAbsent = err.Error()
		return p
	}
	p.MaxLogit = binned(p.Start, T, math.Inf(-1), func(acc float64, i int) float64 { return max(acc, r.MaxLogit[i]) })
	p.Entropy = binMeans(p.Start, T, func(i int) float64 {
		if r.Visible[i] < 2 {
			return 0
		}
		return r.EntropyNats[i] / math.Log(float64(r.Visible[i]))
	})
	p.Sink = binMeans(p.Start, T, func(i int) float64 { return r.First[i] })
	return p
}

// binStarts cuts T tokens into at most ProfileBins bins of nearly equal length.
func binStarts(T int) []int {
	n := min(T, ProfileBins)
	out := make([]int, n)
	for b := range out {
		out[b] = b * T / n
	}
	return out
}

func binned(start []int, T int, zero float64, add func(acc float64, i int) float64) []float64 {
	out := make([]float64, len(start))
	for b, from := range start {
		to := T
		if b+1 < len(start) {
			to = start[b+1]
		}
		acc := zero
		for i := from; i < to; i++ {
			acc = add(acc, i)
		}
		out[b] = acc
	}
	return out
}

func binMeans(start []int, T int, of func(i int) float64) []float64 {
	out := binned(start, T, 0, func(acc float64, i int) float64 { return acc + of(i) })
	count := binned(start, T, 0, func(acc float64, _ int) float64 { return acc + 1 })
	for b := range out {
		out[b] /= count[b]
	}
	return out
}

// profileChannels returns the leading channels over bins; none if E = 0.
func (s *Subject) profileChannels(start []int) []Channel {
	c, err := s.channels()
	if err != nil {
		return nil
	}
	energy := c.Frobenius()
	var out []Channel
	for k := range min(profileChannels, c.Rank(c.Noise), c.U.Cols) {
		r := c.Sigma[k] / energy
		out = append(out, Channel{Sigma: c.Sigma[k], Share: r * r,
			Query: binSquares(start, c.U, k), Key: binSquares(start, c.V, k)})
	}
	return out
}

func binSquares(start []int, m linalg.Matrix, k int) []float64 {
	return binned(start, m.Rows, 0, func(acc float64, i int) float64 { return acc + m.At(i, k)*m.At(i, k) })
}

// nullSigma returns the spectrum of a Gaussian head with the same ‖E‖_F, in the
// full convention; nil without nulls.
func (s *Subject) nullSigma() []float64 {
	if s.run.opts.Nulls == nil || s.convention() != attention.Full {
		return nil
	}
	sp, err := s.energy()
	if err != nil {
		return nil
	}
	unit := s.run.opts.Nulls.Spectrum(s.pair().T(), s.pair().Dim())
	out := make([]float64, len(unit))
	for i, v := range unit {
		out[i] = v * sp.Frobenius()
	}
	return out
}

// spectrumDraws are averaged for a null spectrum: singular values of Gaussian
// products spread little.
const spectrumDraws = 8

// Spectrum returns the mean singular values of the energy field of a Gaussian head
// with T tokens and dimension d, relative to its Frobenius norm; min(d, T − 1) of
// them, descending. In law they are those of R_q·R_kᵀ, the triangles of Gaussian
// matrices with T and T−1 rows, which are drawn as such: O(d³) whatever T is.
func (n *Nulls) Spectrum(T, d int) []float64 {
	key := fmt.Sprintf("spectrum T=%d d=%d", T, d)
	n.mu.Lock()
	l, ok := n.profiles[key]
	if !ok {
		l = new(lazy[[]float64])
		n.profiles[key] = l
	}
	n.mu.Unlock()
	out, _ := l.get(func() ([]float64, error) { return nullSpectrum(T, d), nil })
	return out
}

func nullSpectrum(T, d int) []float64 {
	out := make([]float64, max(0, min(d, T-1)))
	for draw := range spectrumDraws {
		r := source("spectrum", shape{T: T, Dim: d}, draw)
		sp, err := spectrum.OfProduct(triangle(r, T, d), triangle(r, T-1, d))
		if err != nil || len(sp.Sigma) < len(out) {
			return nil // a picture without its reference
		}
		f := sp.Frobenius()
		for i := range out {
			out[i] += sp.Sigma[i] / f / spectrumDraws
		}
	}
	return out
}
