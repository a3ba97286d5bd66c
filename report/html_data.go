package report

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/eigenhead/eigenhead/measure"
)

// The page's own data is smaller than the report: positions in place of names,
// four digits, weights as whole numbers of 1/pageWeight, profiles of fewer bins
// where there are many heads. page.js reads it.
const (
	pageBudget = 9 << 20 // bytes for the data; the page itself takes about 0.1 MB
	pageWeight = 100000
)

// detailLevel is how much of each head's pictures goes into a page.
type detailLevel struct{ bins, channels, sigmas int }

var detailLevels = []detailLevel{
	{measure.ProfileBins, 4, math.MaxInt}, {128, 4, 128}, {64, 4, 64}, {64, 2, 48}, {32, 2, 32}, {16, 1, 24}, {0, 0, 16}, {0, 0, 0},
}

// pageData returns the data at the finest level that the budget allows. A few
// heads tell which levels are hopeless, so that large models are not written
// once for each.
func (r *Report) pageData() []byte {
	const tried = 8
	step := max(len(r.Heads)/tried, 1)
	few := *r
	few.Heads, few.KVHeads, few.Findings = nil, nil, nil
	for i := 0; i < len(r.Heads); i += step {
		few.Heads = append(few.Heads, r.Heads[i])
	}
	var data []byte
	for i, level := range detailLevels {
		last := i == len(detailLevels)-1
		if !last && len(few.pageDataAt(level))/max(len(few.Heads), 1)*len(r.Heads) > pageBudget {
			continue
		}
		if data = r.pageDataAt(level); len(data) <= pageBudget || last {
			break
		}
	}
	return data
}

// encoder appends JSON.
type encoder struct{ b []byte }

func (e *encoder) raw(s string) { e.b = append(e.b, s...) }

func (e *encoder) json(v any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and integers only
	}
	e.b = append(e.b, data...)
}

func (e *encoder) number(x float64) { e.b = strconv.AppendFloat(e.b, x, 'g', 4, 64) }

func (e *encoder) numbers(list []float64) {
	e.raw("[")
	for i, x := range list {
		if i > 0 {
			e.raw(",")
		}
		e.number(x)
	}
	e.raw("]")
}

// weights appends shares as whole numbers.
func (e *encoder) weights(list []float64) {
	e.raw("[")
	for i, x := range list {
		if i > 0 {
			e.raw(",")
		}
		e.b = strconv.AppendInt(e.b, int64(math.Round(x*pageWeight)), 10)
	}
	e.raw("]")
}

// each appends a list, one element by f.
func (e *encoder) each(n int, f func(i int)) {
	e.raw("[")
	for i := range n {
		if i > 0 {
			e.raw(",\n")
		}
		f(i)
	}
	e.raw("]")
}

func (r *Report) pageDataAt(level detailLevel) []byte {
	e := &encoder{}
	sigmas := 0
	for _, h := range r.Heads {
		sigmas = max(sigmas, len(h.Spectrum))
	}
	at := thin(sigmas, level.sigmas)
	var shared []int // most heads have the same bins: they are written once
	if len(r.Heads) > 0 && r.Heads[0].Profile != nil {
		shared = merged(r.Heads[0].Profile, level.bins).Start
	}
	fmt.Fprintf(e, `{"tokens":%d,"w":%d,"first":%q,"at":`, r.Input.Tokens, pageWeight, r.first())
	e.json(at)
	e.raw(`,"x":`)
	e.json(slices.Concat([]int{}, shared))
	if level.bins == 0 {
		e.raw(`,"noprofile":"Channels and rows over tokens are left out: there are too many heads for one page. Scan fewer layers, or draw one head with the head command."`)
	}
	e.raw(`,"measures":{"head":`)
	heads, kv, layers := r.present(measure.PerHead), r.present(measure.PerKVHead), r.present(measure.PerLayer)
	e.docs(heads)
	e.raw(`,"kv":`)
	e.docs(kv)
	e.raw(`,"layer":`)
	e.docs(layers)
	e.raw("},\n\"heads\":")
	e.each(len(r.Heads), func(i int) { e.head(&r.Heads[i], heads, at, shared, level) })
	e.raw(",\n\"kv\":")
	e.each(len(r.KVHeads), func(i int) {
		fmt.Fprintf(e, `{"l":%d,"k":%d,"m":`, r.KVHeads[i].Layer, r.KVHeads[i].KVHead)
		e.values(r.KVHeads[i].Measures, kv)
		e.raw("}")
	})
	e.raw(",\n\"layers\":")
	e.each(len(r.Layers), func(i int) {
		fmt.Fprintf(e, `{"l":%d,"m":`, r.Layers[i].Layer)
		e.values(r.Layers[i].Measures, layers)
		e.groups(r.Layers[i].Groups, level)
		e.raw("}")
	})
	e.raw(",\n\"findings\":")
	e.each(len(r.Findings), func(i int) {
		f := r.Findings[i]
		e.json(struct {
			C string `json:"c"`
			S string `json:"s"`
			W string `json:"w"`
			T string `json:"t"`
		}{f.Code, string(f.Severity), f.Where, f.Text})
	})
	e.raw("}")
	return e.b
}

// first is the head that the page opens with: that of the most notable finding.
func (r *Report) first() string {
	at := r.byPlace()
	for _, n := range r.notables() {
		if _, ok := at[n.Where]; ok && strings.Contains(n.Where, "H") {
			return n.Where
		}
	}
	return ""
}

// groups appends which heads share one energy field, with their cosines in
// hundredths where pictures are written at all.
func (e *encoder) groups(g *measure.HeadGroups, level detailLevel) {
	if g == nil {
		return
	}
	e.raw(`,"g":`)
	e.json(g.Groups)
	e.raw(`,"o":`)
	e.json(g.Order)
	if level.bins == 0 || len(g.Cosines) == 0 {
		return
	}
	rows := make([][]*int, len(g.Cosines))
	for i, line := range g.Cosines {
		rows[i] = make([]*int, len(line))
		for j, c := range line {
			if g.Defined[i] && g.Defined[j] {
				hundredths := int(math.Round(100 * c))
				rows[i][j] = &hundredths
			}
		}
	}
	e.raw(`,"c":`)
	e.json(rows)
}

// Write makes an encoder an io.Writer for fmt.
func (e *encoder) Write(p []byte) (int, error) {
	e.b = append(e.b, p...)
	return len(p), nil
}

func (e *encoder) docs(list []*measure.Measure) {
	e.each(len(list), func(i int) {
		m := list[i]
		e.json(map[string]string{"n": m.Name, "u": m.Unit, "s": m.Doc.Summary, "f": m.Doc.Formula, "r": m.Doc.Range,
			"nu": m.Doc.Null, "g": m.Doc.Meaning, "src": m.Source, "nn": m.NoNull, "nz": m.NoZ})
	})
}

// values appends [value, null mean, null sd, z, bound], cut after the last that is
// there, for each measure; 0 for one that is absent.
func (e *encoder) values(values map[string]measure.Value, order []*measure.Measure) {
	e.raw("[")
	for i, m := range order {
		if i > 0 {
			e.raw(",")
		}
		v, ok := values[m.Name]
		if !ok {
			e.raw("0")
			continue
		}
		parts := []*float64{&v.Value, nil, nil, v.Z, v.Bound}
		if v.Null != nil {
			parts[1] = &v.Null.Mean
			if v.Null.SD > 0 {
				parts[2] = &v.Null.SD
			}
		}
		n := len(parts)
		for parts[n-1] == nil {
			n--
		}
		e.raw("[")
		for j, p := range parts[:n] {
			if j > 0 {
				e.raw(",")
			}
			if p == nil {
				e.raw("null")
			} else {
				e.number(*p)
			}
		}
		e.raw("]")
	}
	e.raw("]")
}

func (e *encoder) head(h *measure.HeadResult, order []*measure.Measure, at, shared []int, level detailLevel) {
	fmt.Fprintf(e, `{"l":%d,"h":%d,"k":%d,"m":`, h.Layer, h.Head, h.KVHead)
	e.values(h.Measures, order)
	if h.Overlap != nil {
		fmt.Fprintf(e, `,"o":[%d,`, h.Overlap.Head)
		e.number(h.Overlap.Cosine)
		e.raw("]")
	}
	if s := pickAt(h.Spectrum, at); len(s) > 0 {
		e.raw(`,"s":`)
		e.numbers(s)
	}
	if h.Profile != nil {
		if s := pickAt(h.Profile.NullSigma, at); len(s) > 0 {
			e.raw(`,"n":`)
			e.numbers(s)
		}
		if level.bins > 0 {
			e.profile(merged(h.Profile, level.bins), shared, level)
		}
	}
	e.raw("}")
}

func (e *encoder) profile(p *measure.Profile, shared []int, level detailLevel) {
	e.raw(`,"p":{`)
	if !slices.Equal(p.Start, shared) {
		e.raw(`"x":`)
		e.json(p.Start)
		e.raw(",")
	}
	e.raw(`"c":`)
	e.each(min(len(p.Channels), level.channels), func(i int) {
		c := p.Channels[i]
		e.raw(`{"s":`)
		e.number(c.Sigma)
		e.raw(`,"e":`)
		e.number(c.Share)
		e.raw(`,"q":`)
		e.weights(c.Query)
		e.raw(`,"k":`)
		e.weights(c.Key)
		e.raw("}")
	})
	if p.RowsAbsent != "" {
		e.raw(`,"why":`)
		e.json(p.RowsAbsent)
	}
	if len(p.Entropy) > 0 && len(p.Sink) > 0 {
		e.raw(`,"a":`)
		e.weights(p.Entropy)
		e.raw(`,"b":`)
		e.weights(p.Sink)
	}
	if len(p.MaxLogit) > 0 {
		e.raw(`,"g":`)
		e.numbers(p.MaxLogit)
	}
	e.raw("}")
}
