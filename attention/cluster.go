package attention

import (
	"fmt"
	"slices"

	"github.com/eigenhead/eigenhead/linalg"
)

// RedundantCosine is the mean cosine from which heads count as one group: fields
// that share four fifths of their energy or more. Chosen, not derived.
const RedundantCosine = 0.9

// RelatedCosine is the mean cosine from which heads count as one family: fields
// that share half of their energy. Chosen, not derived.
const RelatedCosine = 0.7

// Clustering groups heads whose energy fields point the same way.
type Clustering struct {
	Groups    [][]int  // heads of each group, its representative first; groups by their first head in Order
	Order     []int    // all heads, alike ones side by side: the order for a heat map
	Redundant []int    // heads beside their group's representative, ascending
	Opposed   [][2]int // pairs of groups (indices into Groups) with mean cosine ≤ −level: one field, two signs
	Level     float64  // the mean cosine that joins
}

// Cluster groups heads by average linkage: the two groups with the largest mean
// cosine are joined, and those joined at level or above are one group. The sign
// counts: opposite heads are not redundant, they are listed as opposed. A group's
// representative has the largest mean cosine to the others.
//
// Shapes: cosines [n, n], symmetric; defined [n] or nil for all, heads without a
// field stay alone and come last. Panics where they do not fit or level is not in
// (0, 1]. Ties go to the lower head, so equal input gives equal output. Cost: O(n³).
// See Overlaps for the cosines.
func Cluster(cosines linalg.Matrix, defined []bool, level float64) *Clustering {
	n := cosines.Rows
	if cosines.Cols != n || defined != nil && len(defined) != n || !(level > 0 && level <= 1) {
		panic(fmt.Sprintf("attention: Cluster: cosines [%d, %d], %d flags, level %g", n, cosines.Cols, len(defined), level))
	}
	c := &Clustering{Level: level}
	var open, alone [][]int
	for h := range n {
		if defined == nil || defined[h] {
			open = append(open, []int{h})
		} else {
			alone = append(alone, []int{h})
		}
	}
	for cut := false; len(open) > 1; {
		i, j, best := closest(cosines, open)
		if best < level && !cut {
			c.Groups, cut = clone(open), true
		}
		open[i] = append(open[i], open[j]...)
		open = slices.Delete(open, j, j+1)
		if len(open) == 1 && !cut {
			c.Groups = clone(open)
		}
	}
	if c.Groups == nil {
		c.Groups = clone(open)
	}
	for _, g := range slices.Concat(open, alone) {
		c.Order = append(c.Order, g...)
	}
	c.finish(cosines, alone)
	return c
}

// finish orders groups as Order does, finds representatives and opposites.
func (c *Clustering) finish(cosines linalg.Matrix, alone [][]int) {
	place := make(map[int]int, len(c.Order))
	for i, h := range c.Order {
		place[h] = i
	}
	slices.SortFunc(c.Groups, func(a, b []int) int { return place[a[0]] - place[b[0]] })
	for i, g := range c.Groups {
		for j := range i {
			if linkage(cosines, c.Groups[j], g) <= -c.Level {
				c.Opposed = append(c.Opposed, [2]int{j, i})
			}
		}
		best := 0
		for k := range g {
			if linkage(cosines, g[k:k+1], g) > linkage(cosines, g[best:best+1], g)+1e-12 {
				best = k
			}
		}
		lead := g[best]
		copy(g[1:best+1], g[:best])
		g[0] = lead
		c.Redundant = append(c.Redundant, g[1:]...)
	}
	c.Groups = append(c.Groups, alone...)
	slices.Sort(c.Redundant)
}

func clone(groups [][]int) [][]int {
	out := make([][]int, len(groups))
	for i, g := range groups {
		out[i] = slices.Clone(g)
	}
	return out
}

// closest returns the pair of groups with the largest mean cosine.
func closest(cosines linalg.Matrix, groups [][]int) (a, b int, best float64) {
	best = -2
	for i := range groups {
		for j := i + 1; j < len(groups); j++ {
			if v := linkage(cosines, groups[i], groups[j]); v > best {
				a, b, best = i, j, v
			}
		}
	}
	return a, b, best
}

// linkage is the mean cosine between two groups.
func linkage(cosines linalg.Matrix, a, b []int) float64 {
	sum := 0.0
	for _, i := range a {
		for _, j := range b {
			sum += cosines.At(i, j)
		}
	}
	return sum / float64(len(a)*len(b))
}
