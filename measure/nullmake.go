package measure

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// TableSpec is the grid of a null table and the number of draws behind each node.
type TableSpec struct {
	T     []int           // ascending
	Dim   []int           // head dimensions, ascending
	Draws func(T int) int // nil: as simulations outside the table
}

// DefaultTableSpec is the grid of the embedded table: T from 32 to 2048, head
// dimensions from 8 to 256, s from 0 to 10.
func DefaultTableSpec() *TableSpec {
	return &TableSpec{T: []int{32, 64, 128, 256, 512, 1024, 2048}, Dim: []int{8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256}}
}

// MakeNullTable simulates the grid and returns the file that package measure
// embeds. The result depends on the grid and the number of draws only, not on the
// number of cores; across kernels of linalg, numbers agree to rounding. report is told of every finished node. It is what
// tools/nulltable runs.
// Errors: ctx's.
func MakeNullTable(ctx context.Context, spec *TableSpec, report func(what string, done, total int)) ([]byte, error) {
	t, draws := newNullTable(spec), spec.draws()
	done, total := 0, len(t.T)*len(t.Dim)*(len(t.Masks)+1)
	step := func(what string, T, d int) {
		done++
		report(fmt.Sprintf("%s T=%d d=%d", what, T, d), done, total)
	}
	for ti, T := range t.T {
		for di, d := range t.Dim {
			c, err := simulateFactors(ctx, Lookup, shape{T: T, Dim: d}, factorDraws(T, draws(T)), quiet)
			if err != nil {
				return nil, err
			}
			t.putFactors(ti, di, c)
			step("factors", T, d)
			for mi, mask := range masksOf {
				c, err := simulateAttention(ctx, Lookup, shape{T: T, Dim: d, Mask: mask}, t.S, draws(T), quiet)
				if err != nil {
					return nil, err
				}
				t.putAttention(mi, ti, di, c)
				step(mask.String(), T, d)
			}
		}
	}
	t.smooth()
	return t.encode()
}

func (s *TableSpec) draws() func(T int) int {
	if s.Draws != nil {
		return s.Draws
	}
	return drawsFor
}

// newNullTable returns a table of zeros with its header.
func newNullTable(spec *TableSpec) *nullTable {
	t := &nullTable{tableHeader: tableHeader{Format: tableFormat, T: spec.T, Dim: spec.Dim, S: lowNodes,
		Attention: attentionNames, Factors: factorNames}}
	for _, m := range masksOf {
		t.Masks = append(t.Masks, m.String())
	}
	for _, T := range spec.T {
		t.Draws = append(t.Draws, spec.draws()(T))
	}
	cells := len(t.T) * len(t.Dim)
	t.attention = make([]float32, 2*cells*len(t.Masks)*len(t.Attention)*len(t.S))
	t.factors = make([]float32, 2*cells*len(t.Factors))
	return t
}

// factorDraws: factors cost O(T·d²), not T², and can afford more draws.
func factorDraws(T, draws int) int { return max(draws, 64) }

func quiet(int, int) {}

func (t *nullTable) putFactors(ti, di int, c *cell) {
	for k, name := range t.Factors {
		put(t.factors, (ti*len(t.Dim)+di)*len(t.Factors)+k, c.Moments[name], 0)
	}
}

func (t *nullTable) putAttention(mi, ti, di int, c *cell) {
	for k, name := range t.Attention {
		for j := range t.S {
			put(t.attention, (((mi*len(t.T)+ti)*len(t.Dim)+di)*len(t.Attention)+k)*len(t.S)+j, c.Moments[name], j)
		}
	}
}

func put(to []float32, at int, m []moment, j int) {
	if m == nil {
		nan := float32(math.NaN())
		to[2*at], to[2*at+1] = nan, nan
		return
	}
	to[2*at], to[2*at+1] = float32(m[j].Mean), float32(m[j].SD)
}

// Midpoint compares the table with a simulation between its nodes.
type Midpoint struct {
	Measure   string
	T, Dim    int
	Mask      string
	S         float64
	Table     float64 // the table's mean
	Simulated float64
	SD        float64 // the table's spread
	Sampling  float64 // three standard errors of Simulated: a check makes thousands of comparisons
}

// Excess returns |Table − Simulated| beyond sampling error, in units of what is
// promised: half the spread or 1 % of the value, whichever is larger. At most 1
// keeps the promise.
func (m Midpoint) Excess() float64 {
	promise := max(m.SD/2, math.Abs(m.Simulated)/100)
	return max(0, math.Abs(m.Table-m.Simulated)-m.Sampling) / max(promise, 1e-12)
}

// CheckNullTable simulates heads halfway between the nodes of the embedded table,
// in T, d and s at once (geometric means of T and d), from minT to maxT tokens, and
// hands every comparison to visit. It is what tools/nulltable -check runs.
// Errors: ctx's.
func CheckNullTable(ctx context.Context, minT, maxT int, draws func(T int) int, visit func(Midpoint)) error {
	t := loadTable()
	for _, T := range midpoints(t.T) {
		for _, d := range midpoints(t.Dim) {
			if T < minT || T > maxT {
				continue
			}
			if err := checkFactors(ctx, T, d, factorDraws(T, draws(T)), visit); err != nil {
				return err
			}
			for _, mask := range masksOf {
				if err := checkAttention(ctx, shape{T: T, Dim: d, Mask: mask}, middles(t.S), draws(T), visit); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func checkFactors(ctx context.Context, T, d, draws int, visit func(Midpoint)) error {
	table := tableFactors(T, d)
	if table == nil {
		return nil
	}
	sim, err := simulateFactors(ctx, Lookup, shape{T: T, Dim: d}, draws, quiet)
	if err != nil {
		return err
	}
	compare(table, sim, 0, Midpoint{T: T, Dim: d}, visit)
	return nil
}

func checkAttention(ctx context.Context, sh shape, at []float64, draws int, visit func(Midpoint)) error {
	table := tableAttention(sh)
	if table == nil {
		return nil
	}
	sim, err := simulateAttention(ctx, Lookup, sh, at, draws, quiet)
	if err != nil {
		return err
	}
	for j, s := range at {
		compare(table, sim, j, Midpoint{T: sh.T, Dim: sh.Dim, Mask: sh.Mask.String(), S: s}, visit)
	}
	return nil
}

func compare(table, sim *cell, j int, at Midpoint, visit func(Midpoint)) {
	names := make([]string, 0, len(sim.Moments))
	for name := range sim.Moments {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		want := sim.Moments[name][j]
		if uniformMeans[name] {
			continue // the mean is a closed form, and the table not asked for it
		}
		got, err := table.at(name, at.S)
		if err != nil {
			got.Mean = math.Inf(1) // absent from the table: fails the check
		}
		p := at
		p.Measure, p.Table, p.Simulated, p.SD = name, got.Mean, want.Mean, got.SD
		p.Sampling = 3 * want.SD / math.Sqrt(float64(sim.Draws))
		visit(p)
	}
}

// uniformMeans are linear in A: see uniformNull.
var uniformMeans = map[string]bool{"attention.sink": true, "attention.diagonal": true,
	"attention.previous": true, "attention.distance": true}

func midpoints(x []int) []int {
	var out []int
	for i := range len(x) - 1 {
		out = append(out, int(math.Round(math.Sqrt(float64(x[i])*float64(x[i+1])))))
	}
	return out
}

func middles(x []float64) []float64 {
	var out []float64
	for i := range len(x) - 1 {
		out = append(out, (x[i]+x[i+1])/2)
	}
	return out
}
