package measure

import (
	"github.com/eigenhead/eigenhead/attention"
)

// HeadGroups says which heads of a layer share one energy field.
type HeadGroups struct {
	Level  float64 `json:"level"`  // mean cosine from which heads count as one group
	Groups [][]int `json:"groups"` // true head numbers, only groups of several, the representative first
	Order  []int   `json:"order"`  // all heads, alike ones side by side

	Cosines [][]float64 `json:"-"` // for pictures: of the heads in Order; NaN-free, see Defined
	Defined []bool      `json:"-"` // by Order: false where E has no direction
}

// groups clusters the layer's heads by the cosines of their energy fields, or
// returns nil where the overlaps do not apply.
func (r *layerRun) groups() *HeadGroups {
	s := &Subject{Layer: r.layer, run: r}
	if len(r.layer.Pairs) < 2 || r.layer.Sparse {
		return nil
	}
	o, err := s.overlaps()
	if err != nil || o.cosines.Rows == 0 {
		return nil // overlap.max is omitted with the reason
	}
	byRow := make([]int, o.cosines.Rows) // row of cosines → pair
	defined := make([]bool, o.cosines.Rows)
	row := 0
	for pair := range o.row { // cosines have a row for each finite head
		if r.bad[pair] == nil {
			byRow[row], defined[row] = pair, o.row[pair] >= 0
			row++
		}
	}
	c := attention.Cluster(o.cosines, defined, attention.RedundantCosine)
	number := func(row int) int { return r.layer.Pairs[byRow[row]].ID.Head }
	g := &HeadGroups{Level: c.Level, Groups: [][]int{}}
	for _, rows := range c.Groups {
		if len(rows) < 2 {
			continue
		}
		heads := make([]int, len(rows))
		for i, row := range rows {
			heads[i] = number(row)
		}
		g.Groups = append(g.Groups, heads)
	}
	for _, row := range c.Order {
		g.Order = append(g.Order, number(row))
		g.Defined = append(g.Defined, defined[row])
		line := make([]float64, len(c.Order))
		for j, other := range c.Order {
			if defined[row] && defined[other] {
				line[j] = o.cosines.At(row, other)
			}
		}
		g.Cosines = append(g.Cosines, line)
	}
	return g
}
