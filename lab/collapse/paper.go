package collapse

import (
	_ "embed"
	"fmt"
	"math"
	"strconv"
	"strings"
)

//go:embed paper.tsv
var paperTable string

// PaperSizes and PaperGammas are the published sweep's; it has ten layers and five
// simulations.
var (
	PaperSizes  = []int{20, 40, 60, 80, 100, 150}
	PaperGammas = []float64{1, 0.5, 0.2}
)

// The other arguments of the published sweep.
const (
	PaperDepth = 10
	PaperSeeds = 5
)

// Published is one cell of the published sweep, gamma = 1: mean and standard
// deviation over five simulations of the stable rank of X_l·X_lᵀ. Mean is nil where
// the published code, in float32, gives nan.
type Published struct {
	Configuration string
	T, Layer      int
	Mean          *float64
	SD            float64
	Rounding      float64 // half a unit of Mean's last digit, at least 0.006
}

// PublishedTable returns the published cells in the table's order.
func PublishedTable() []Published {
	var all []Published
	columns := []struct{ t, l int }{{40, 1}, {40, 2}, {40, 3}, {40, 6}, {40, 10}, {150, 1}, {150, 2}, {150, 3}, {150, 6}, {150, 10}}
	for line := range strings.Lines(paperTable) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) != 1+len(columns) {
			panic(fmt.Sprintf("collapse: paper.tsv: %d fields, want %d: %s", len(fields), 1+len(columns), line))
		}
		for i, c := range columns {
			p := Published{Configuration: fields[0], T: c.t, Layer: c.l}
			if mean, sd, ok := strings.Cut(fields[i+1], "±"); ok {
				m := mustFloat(mean)
				p.Mean, p.SD, p.Rounding = &m, mustFloat(sd), halfUnit(m)
			}
			all = append(all, p)
		}
	}
	return all
}

// halfUnit is what rounding to three significant digits hides: 0.5 for 149, 0.05 for
// 29.8, 0.005 for 2 (trailing zeros are not printed).
func halfUnit(v float64) float64 {
	return max(0.5*math.Pow(10, math.Floor(math.Log10(v))-2), tableRounding)
}

func mustFloat(s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic("collapse: paper.tsv: " + err.Error())
	}
	return v
}

// PaperConfigs returns the 25 configurations in the order of the published table.
// undoubled leaves out the doubling of X that the published code does after a plain
// skip.
func PaperConfigs(undoubled bool) []Config {
	var all []Config
	kinds := []struct {
		a Attention
		f Fix
	}{{KeyQuery, Center}, {Markov, Center}, {Markov, NoFix}, {KeyQuery, NoFix}, {Identity, NoFix}}
	for _, k := range kinds {
		for _, skip := range []Skip{NoSkip, PlainSkip, ScaledSkip} {
			for _, norm := range []Norm{NoNorm, PostNorm} {
				if k.a == Identity && (skip != NoSkip || norm != NoNorm) {
					continue
				}
				c := Config{Attention: k.a, Fix: k.f, Skip: skip, Norm: norm}
				c.Undoubled = undoubled && skip == PlainSkip
				all = append(all, c.filled())
			}
		}
	}
	return all
}

// Difference is one published cell beside ours.
type Difference struct {
	Published
	Ours Stat
	Z    *float64 // difference over its standard error, rounding of the table allowed for; nil without a published value
}

// tableRounding is the least that the digits of the published table hide.
const tableRounding = 0.006

// Compare sets published cells beside ours, found by configuration, T and layer at
// gamma = 1; cells that we do not have are left out.
func Compare(cells []*Cell) []Difference {
	type key struct {
		name string
		t, l int
	}
	have := map[key]Stat{}
	for _, c := range cells {
		if c.Gamma == 1 {
			have[key{strings.Replace(c.Configuration, " (undoubled)", "", 1), c.T, c.Layer}] = c.Stats["stable_rank"]
		}
	}
	var all []Difference
	for _, p := range PublishedTable() {
		ours, ok := have[key{p.Configuration, p.T, p.Layer}]
		if !ok || ours.Seeds == 0 {
			continue
		}
		d := Difference{Published: p, Ours: ours}
		if p.Mean != nil {
			off := max(math.Abs(ours.Mean-*p.Mean)-p.Rounding, 0)
			se := math.Sqrt(p.SD*p.SD/PaperSeeds + ours.SD*ours.SD/float64(ours.Seeds))
			z := 0.0
			if off > 0 {
				z = off / se
			}
			if ours.Mean < *p.Mean {
				z = -z
			}
			d.Z = &z
		}
		all = append(all, d)
	}
	return all
}
