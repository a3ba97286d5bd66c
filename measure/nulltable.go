package measure

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"

	"github.com/eigenhead/eigenhead/head"
)

// nullData is made by tools/nulltable: gzip of one line of JSON (tableHeader) and
// little-endian float32 pairs (mean, spread), NaN where a measure has no value:
//
//	attention  [mask][T][d][measure][s]
//	factors    [T][d][measure]
//
//go:embed data/nulls.bin.gz
var nullData []byte

// tableFormat names the layout.
const tableFormat = "eigenhead.nulltable/1"

// tableHeader says what the numbers of the file are.
type tableHeader struct {
	Format    string    `json:"format"`
	T         []int     `json:"t"`
	Dim       []int     `json:"dim"`
	S         []float64 `json:"s"`
	Masks     []string  `json:"masks"`
	Attention []string  `json:"attention"`
	Factors   []string  `json:"factors"`
	Draws     []int     `json:"draws"` // by T
}

// nullTable is the file in memory.
type nullTable struct {
	tableHeader
	attention, factors []float32
}

// loadTable decodes the embedded file once. It is ours, so a fault is a bug.
var loadTable = sync.OnceValue(func() *nullTable {
	t, err := decodeTable(nullData)
	if err != nil {
		panic(fmt.Sprintf("measure: embedded null table: %v", err))
	}
	return t
})

func decodeTable(data []byte) (*nullTable, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		return nil, err
	}
	line, rest, _ := bytes.Cut(raw, []byte("\n"))
	t := &nullTable{}
	if err := json.Unmarshal(line, &t.tableHeader); err != nil {
		return nil, err
	}
	cells := len(t.T) * len(t.Dim)
	n := 2 * cells * len(t.Masks) * len(t.Attention) * len(t.S)
	m := 2 * cells * len(t.Factors)
	if t.Format != tableFormat || len(rest) != 4*(n+m) {
		return nil, fmt.Errorf("format %q with %d bytes, want %q with %d", t.Format, len(rest), tableFormat, 4*(n+m))
	}
	all := make([]float32, n+m)
	if err := binary.Read(bytes.NewReader(rest), binary.LittleEndian, all); err != nil {
		return nil, err
	}
	t.attention, t.factors = all[:n], all[n:]
	return t, nil
}

// encode writes what decodeTable reads.
func (t *nullTable) encode() ([]byte, error) {
	header, err := json.Marshal(t.tableHeader)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level is valid
	payload := new(bytes.Buffer)
	_ = binary.Write(payload, binary.LittleEndian, t.attention) // a Buffer takes everything
	_ = binary.Write(payload, binary.LittleEndian, t.factors)
	for _, part := range [][]byte{header, {'\n'}, payload.Bytes()} {
		if _, err := z.Write(part); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// tableAttention interpolates the table to a shape; nil where it does not reach.
func tableAttention(sh shape) *cell {
	t := loadTable()
	mask := slices.Index(t.Masks, sh.Mask.String())
	grid, ok := t.around(sh.T, sh.Dim)
	if mask < 0 || !ok {
		return nil
	}
	c := &cell{Nodes: t.S, Moments: make(map[string][]moment, len(t.Attention)), kind: kindTable}
	for k, name := range t.Attention {
		m := make([]moment, len(t.S))
		found := true
		for j := range t.S {
			var there bool
			m[j], there = grid.moment(func(ti, di int) (mean, sd float64) {
				at := 2 * ((((mask*len(t.T)+ti)*len(t.Dim)+di)*len(t.Attention)+k)*len(t.S) + j)
				return float64(t.attention[at]), float64(t.attention[at+1])
			})
			found = found && there
		}
		if found {
			c.Moments[name] = m
		}
	}
	return c
}

// tableFactors interpolates the table to a shape; nil where it does not reach.
// Between nodes it needs T ≥ 2d: key.leverage_max has a kink at T = d, where it
// becomes 1.
func tableFactors(T, d int) *cell {
	t := loadTable()
	grid, ok := t.around(T, d)
	if !ok || T < 2*d && !(slices.Contains(t.T, T) && slices.Contains(t.Dim, d)) {
		return nil
	}
	c := &cell{Moments: make(map[string][]moment, len(t.Factors)), kind: kindTable}
	for k, name := range t.Factors {
		m, there := grid.moment(func(ti, di int) (mean, sd float64) {
			at := 2 * ((ti*len(t.Dim)+di)*len(t.Factors) + k)
			return float64(t.factors[at]), float64(t.factors[at+1])
		})
		if there {
			c.Moments[name] = []moment{m}
		}
	}
	return c
}

// patch is the part of the grid that an interpolation uses, with its weights.
type patch struct{ t, d []weighted }

type weighted struct {
	node   int
	weight float64
}

// around returns the nodes near a shape, and false outside the grid.
func (t *nullTable) around(T, d int) (patch, bool) {
	if T < t.T[0] || T > t.T[len(t.T)-1] || d < t.Dim[0] || d > t.Dim[len(t.Dim)-1] {
		return patch{}, false
	}
	return patch{t: cubic(logs(t.T), math.Log(float64(T))), d: cubic(logs(t.Dim), math.Log(float64(d)))}, true
}

func logs(x []int) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = math.Log(float64(v))
	}
	return out
}

// moment interpolates mean and spread; false where the measure has no value at
// some node.
func (g patch) moment(at func(t, d int) (mean, sd float64)) (moment, bool) {
	var weights, means, sds []float64
	for _, t := range g.t {
		for _, d := range g.d {
			m, s := at(t.node, d.node)
			if math.IsNaN(m) || math.IsNaN(s) {
				return moment{}, false
			}
			weights, means, sds = append(weights, t.weight*d.weight), append(means, m), append(sds, s)
		}
	}
	return moment{Mean: blend(weights, means), SD: max(0, blend(weights, sds))}, true
}

// masksOf are the masks that the table holds.
var masksOf = []head.Mask{head.Causal, {}}
