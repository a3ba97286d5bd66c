package measure

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/eigenhead/eigenhead/head"
)

func TestASinkThatIsNotFiniteIsLocated(t *testing.T) {
	for value, bad := range map[float64]bool{math.Inf(1): true, math.NaN(): true, math.Inf(-1): false, 2: false} {
		rng := rand.New(rand.NewPCG(3, 3))
		l := randomLayer(rng, 2, 2, 12, 4, head.Causal, 1)
		l.Pairs[1].Sink = &value
		table, err := Run(context.Background(), l, nil)
		if err != nil {
			t.Fatal(err)
		}
		found := len(table.NonFinite) == 1 && table.NonFinite[0].Where == l.Pairs[1].ID.String() && table.NonFinite[0].Tensor == "sink"
		if found != bad || !bad && len(table.NonFinite) != 0 {
			t.Errorf("sink %g: located %+v", value, table.NonFinite)
		}
		if _, has := table.Heads[1].Measures["attention.entropy"]; has == bad {
			t.Errorf("sink %g: entropy present: %v", value, has)
		}
	}
}
