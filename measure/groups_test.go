package measure

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
)

func gaussianMatrix(rng *rand.Rand, rows, cols int) linalg.Matrix {
	m := linalg.New(rows, cols)
	for i := range m.Data {
		m.Data[i] = rng.NormFloat64()
	}
	return m
}

// Heads 1 and 3 have the same field, head 2 has none, and head 4 is not finite.
func TestGroupsNameTheHeadsThatShareAField(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	const T, d = 40, 8
	l := &head.Layer{Index: 2, KVHeads: 5}
	for h := range 5 {
		l.Pairs = append(l.Pairs, head.Pair{ID: head.ID{Layer: 2, Head: h}, KVHead: h, Scale: 0.3, Mask: head.Causal,
			Q: gaussianMatrix(rng, T, d), K: gaussianMatrix(rng, T, d)})
	}
	l.Pairs[3].Q, l.Pairs[3].K = l.Pairs[1].Q, l.Pairs[1].K
	l.Pairs[2].K = linalg.New(T, d) // equal keys: E = 0
	bad := gaussianMatrix(rng, T, d)
	inf := 0.0
	bad.Set(3, 3, 1/inf)
	l.Pairs[4].K = bad
	table, err := Run(context.Background(), l, &Options{Measures: []*Measure{overlapMax}})
	if err != nil {
		t.Fatal(err)
	}
	g := table.Layers[0].Groups
	if g == nil || len(g.Groups) != 1 || !slices.Equal(g.Groups[0], []int{1, 3}) {
		t.Fatalf("groups %+v, want heads 1 and 3", g)
	}
	if len(g.Order) != 4 || slices.Contains(g.Order, 4) {
		t.Errorf("order %v, want the four finite heads", g.Order)
	}
	for i, h := range g.Order {
		if g.Defined[i] != (h != 2) {
			t.Errorf("head %d: defined %v", h, g.Defined[i])
		}
		for j := range g.Order {
			if g.Cosines[i][j] != g.Cosines[j][i] {
				t.Errorf("cosines of %d and %d are not symmetric", i, j)
			}
		}
	}
	other, err := Run(context.Background(), l, &Options{Measures: []*Measure{keyIncoherence}})
	if err != nil || other.Layers[0].Groups != nil {
		t.Errorf("groups without overlap.max: %+v, %v", other.Layers[0].Groups, err)
	}
}
