package eigenhead

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/eigenhead/eigenhead/attention"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/linalg"
	"github.com/eigenhead/eigenhead/measure"
	"github.com/eigenhead/eigenhead/report"
	"github.com/eigenhead/eigenhead/spectrum"
)

// maxDenseRank is the longest window whose masked field, which has no factors, is
// decomposed densely for its rank: chosen, not derived, to stay below a few seconds.
const maxDenseRank = 1024

// Head returns the leading channels of one head over the tokens, and the rank of
// its energy field in the three conventions. Options are those of Scan that
// choose tokens and convention. Errors as for Scan. Cost: a forward pass up to
// the head's layer, O(T·d²), and O(T³) for the rank of the masked field, which is
// left out, with that reason, beyond 1024 tokens.
func Head(ctx context.Context, source string, id head.ID, channels int, opts *Options) (*report.HeadView, error) {
	if opts == nil {
		opts = &Options{}
	}
	src, err := open(source)
	if err != nil {
		return nil, err
	}
	defer src.close()
	if !slices.Contains(src.layerNumbers(), id.Layer) {
		return nil, &xerr.Usage{Flag: id.String(), Found: fmt.Sprintf("layer %d not found", id.Layer), Want: span(src.layerNumbers())}
	}
	w, err := src.window(opts)
	if err != nil {
		return nil, err
	}
	view := &report.HeadView{Source: src.name, ID: id, Tokens: w.input.Tokens, Pieces: src.pieces(w.ids)}
	mopts := &measure.Options{Convention: cmp.Or(opts.Energy, attention.Full), Memory: DefaultMemory, Seed: opts.Seed,
		Nulls: measure.NewNulls(opts.CacheDir, opts.Simulating)}
	steps := newSteps(opts.Progress, 1, src.passWork([]int{id.Layer}, false, w.input.Tokens),
		[]int64{measure.Work(src.shapes(id.Layer, w.input.Tokens), mopts)})
	mopts.Progress = steps.measure
	_, err = src.layers(ctx, walk{tokens: w.ids, layers: []int{id.Layer}, progress: steps.passed}, func(l *head.Layer) error {
		i := slices.IndexFunc(l.Pairs, func(p head.Pair) bool { return p.ID == id })
		if i < 0 {
			return &xerr.Usage{Flag: id.String(), Found: "head not found", Want: fmt.Sprintf("one of the layer's %d heads", len(l.Pairs))}
		}
		if err := viewPair(ctx, view, l.Pairs[i], opts.Energy, channels); err != nil {
			return err
		}
		return viewMeasures(ctx, view, l, mopts)
	})
	return view, err
}

// viewPair fills the view from one pair.
func viewPair(ctx context.Context, view *report.HeadView, p head.Pair, convention attention.Convention, n int) error {
	if convention == "" {
		convention = attention.Full
	}
	view.KVHead, view.Dim, view.Convention = p.KVHead, p.Dim(), string(convention)
	a, b := attention.Field(p, convention)
	all, err := spectrum.ChannelsOfProduct(a, b)
	if err != nil {
		return fmt.Errorf("%v: %w", p.ID, err)
	}
	view.Frobenius, view.Sigma = all.Frobenius(), all.Sigma
	for c := range min(n, all.Rank(all.Noise)) {
		view.Channels = append(view.Channels, report.HeadChannel{
			Sigma: all.Sigma[c], Share: math.Pow(all.Sigma[c]/view.Frobenius, 2),
			Query: squares(all.U, c), Key: squares(all.V, c),
		})
	}
	view.Ranks, err = ranks(ctx, p)
	return err
}

// viewMeasures adds every measure of the head and of its KV head, and the null
// spectrum. The whole layer is measured, as overlaps need all its heads.
func viewMeasures(ctx context.Context, view *report.HeadView, l *head.Layer, opts *measure.Options) error {
	table, err := measure.Run(ctx, l, opts)
	if err != nil {
		return err
	}
	view.Measures = map[string]measure.Value{}
	for _, h := range table.Heads {
		if h.ID == view.ID {
			maps.Copy(view.Measures, h.Measures)
		}
	}
	for _, k := range table.KVHeads {
		if k.KVHead == view.KVHead {
			maps.Copy(view.Measures, k.Measures)
		}
	}
	if attention.Convention(view.Convention) == attention.Full {
		for _, s := range opts.Nulls.Spectrum(view.Tokens, view.Dim) {
			view.NullSigma = append(view.NullSigma, s*view.Frobenius)
		}
	}
	return nil
}

// squares returns the squares of a column, which sum to 1.
func squares(m linalg.Matrix, col int) []float64 {
	s := make([]float64, m.Rows)
	for i := range s {
		x := m.At(i, col)
		s[i] = x * x
	}
	return s
}

// ranks counts the singular values above noise in each convention.
func ranks(ctx context.Context, p head.Pair) ([]report.ConventionRank, error) {
	T, d := p.T(), p.Dim()
	var all []report.ConventionRank
	for _, c := range []attention.Convention{attention.Full, attention.CausalMean} {
		a, b := attention.Field(p, c)
		s, err := spectrum.OfProduct(a, b)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", p.ID, err)
		}
		bound := min(d, T-1)
		if c == attention.CausalMean {
			bound = min(d+1, T)
		}
		all = append(all, report.ConventionRank{Convention: string(c), Rank: s.Rank(s.Noise), Bound: bound})
	}
	masked, err := maskedRank(ctx, p)
	return append(all, masked), err
}

func maskedRank(ctx context.Context, p head.Pair) (report.ConventionRank, error) {
	T := p.T()
	r := report.ConventionRank{Convention: string(attention.Masked), Bound: T - 1}
	if T > maxDenseRank {
		r.Omitted = fmt.Sprintf("needs a dense decomposition, which is not made beyond %d tokens", maxDenseRank)
		return r, nil
	}
	op, err := attention.NewMasked(ctx, p, nil)
	if err != nil {
		return r, err
	}
	identity, dense := linalg.New(T, T), linalg.New(T, T)
	for i := range T {
		identity.Set(i, i, 1)
	}
	op.Mul(dense, identity)
	s, err := spectrum.OfMatrix(dense)
	if err != nil {
		return r, fmt.Errorf("%v: %w", p.ID, err)
	}
	r.Rank = s.Rank(s.Noise)
	return r, nil
}

// pieces returns the text of each token, or nil where no vocabulary is there.
func (s *source) pieces(ids []int) []string {
	if s.model == nil || ids == nil {
		return nil
	}
	tok, err := s.tokenizer()
	if err != nil {
		return nil
	}
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = tok.Text(id)
	}
	return all
}
