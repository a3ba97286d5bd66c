package report

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/head"
)

// headView makes the view of one head of the sample.
func headView(tokens int) *HeadView {
	r := sample(1, 2, 1, tokens)
	h := r.Heads[1]
	v := &HeadView{ID: head.ID{Layer: 3, Head: 5}, KVHead: 1, Dim: 64, Source: "sample.gguf", Convention: "full", Frobenius: 600, Tokens: tokens,
		Ranks: []ConventionRank{{"full", 63, 63, ""}, {"causal-mean", 64, 64, ""}, {"masked", 0, 63, "too many tokens"}},
		Sigma: h.Spectrum, NullSigma: h.Profile.NullSigma,
		Measures: maps.Clone(h.Measures)}
	for i := range tokens {
		v.Pieces = append(v.Pieces, fmt.Sprintf(" w%d\n", i))
	}
	for _, c := range h.Profile.Channels {
		v.Channels = append(v.Channels, HeadChannel{Sigma: c.Sigma, Share: c.Share, Query: c.Query, Key: c.Key})
	}
	maps.Copy(v.Measures, r.KVHeads[0].Measures)
	return v
}

func headText(t *testing.T, v *HeadView, o TextOptions) string {
	t.Helper()
	var out bytes.Buffer
	if err := WriteHeadText(&out, v, o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestHeadText(t *testing.T) {
	golden(t, "head-80.txt", []byte(headText(t, headView(64), TextOptions{Written: []string{"L3H5.svg"}})))
	for _, width := range []int{40, 60, 80, 120, 200} {
		for _, line := range strings.Split(headText(t, headView(64), TextOptions{Width: width}), "\n") {
			if n := cells.StringWidth(line); n > width {
				t.Errorf("%d columns at width %d: %s", n, width, line)
			}
		}
	}
	// One token, no pieces, no channel.
	if got := headText(t, &HeadView{Tokens: 1, Channels: []HeadChannel{{Query: []float64{1}, Key: []float64{1}}}}, TextOptions{}); !strings.Contains(got, "keys     0 1\n") {
		t.Errorf("got\n%s", got)
	}
}

func TestHeadFigure(t *testing.T) {
	for _, tokens := range []int{1, 64, 200} {
		f := HeadFigure(headView(tokens))
		var svg, png bytes.Buffer
		if err := f.WriteSVG(&svg); err != nil {
			t.Fatal(err)
		}
		if err := f.WritePNG(&png); err != nil {
			t.Fatal(err)
		}
		if s := svg.String(); strings.Contains(s, "NaN") || !strings.Contains(s, "L3H5 of sample.gguf") {
			t.Errorf("%d tokens: the SVG lacks its title or holds NaN", tokens)
		}
	}
}
