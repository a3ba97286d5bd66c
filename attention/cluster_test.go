package attention

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/eigenhead/eigenhead/linalg"
)

// TestClusterFindsPlantedGroups hides groups of near copies, some with the sign
// turned, among heads in random order.
func TestClusterFindsPlantedGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "heads")
		kinds := rapid.IntRange(1, n).Draw(t, "kinds")
		kind := make([]int, n) // 2k and 2k+1 are opposite
		for h := range kind {
			kind[h] = rapid.IntRange(0, 2*kinds-1).Draw(t, "kind")
		}
		m := linalg.New(n, n)
		for i := range n {
			for j := range n {
				switch {
				case i == j:
					m.Set(i, j, 1)
				case kind[i] == kind[j]:
					m.Set(i, j, .97)
				case kind[i]/2 == kind[j]/2:
					m.Set(i, j, -.96)
				default:
					m.Set(i, j, .1)
				}
			}
		}
		c := Cluster(m, nil, RedundantCosine)
		if got := slices.Sorted(slices.Values(c.Order)); len(got) != n || got[0] != 0 || got[n-1] != n-1 {
			t.Fatalf("order %v is no permutation", c.Order)
		}
		members := 0
		for _, g := range c.Groups {
			for _, h := range g {
				if kind[h] != kind[g[0]] {
					t.Fatalf("group %v of kinds %v", g, kind)
				}
			}
			members += len(g)
		}
		distinct := slices.Compact(slices.Sorted(slices.Values(kind)))
		if len(c.Groups) != len(distinct) || members != n || len(c.Redundant) != n-len(distinct) {
			t.Fatalf("groups %v, redundant %v, kinds %v", c.Groups, c.Redundant, kind)
		}
		pairs := 0
		for _, k := range distinct {
			if k%2 == 1 && slices.Contains(distinct, k-1) {
				pairs++
			}
		}
		if len(c.Opposed) != pairs {
			t.Fatalf("opposed %v among %v, want %d pairs", c.Opposed, kind, pairs)
		}
	})
}

// TestClusterKeepsUndefinedHeadsApart checks heads without a field.
func TestClusterKeepsUndefinedHeadsApart(t *testing.T) {
	m := linalg.New(3, 3)
	for i := range 3 {
		m.Set(i, i, 1)
	}
	m.Set(0, 2, .95)
	m.Set(2, 0, .95)
	c := Cluster(m, []bool{true, false, true}, RedundantCosine)
	if !slices.Equal(c.Order, []int{0, 2, 1}) || len(c.Groups) != 2 || !slices.Equal(c.Redundant, []int{2}) {
		t.Errorf("order %v, groups %v, redundant %v", c.Order, c.Groups, c.Redundant)
	}
	if c := Cluster(linalg.Matrix{}, nil, .9); len(c.Groups) != 0 || len(c.Order) != 0 {
		t.Errorf("no heads: %+v", c)
	}
}
