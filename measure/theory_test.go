package measure

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/eigenhead/eigenhead/attention"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
)

// theory.md 1.2 c, d: ranks of the conventions.
func TestRanksOfTheConventions(t *testing.T) {
	for _, c := range []struct {
		T, d int
		conv attention.Convention
		want float64
	}{
		{128, 16, attention.Full, 16}, {12, 16, attention.Full, 11},
		{128, 16, attention.CausalMean, 17}, {12, 16, attention.CausalMean, 12},
	} {
		l := randomLayer(rand.New(rand.NewPCG(1, 12)), 1, 1, c.T, c.d, head.Causal, 1)
		table, err := Run(context.Background(), l, &Options{Convention: c.conv, Measures: []*Measure{energyRank}, Nulls: NewNulls(t.TempDir(), nil)})
		if err != nil {
			t.Fatal(err)
		}
		v := table.Heads[0].Measures["energy.rank"]
		if v.Value != c.want || v.Null.Mean != c.want || v.Z != nil || v.NoZ == "" {
			t.Errorf("T=%d d=%d %s: rank %+v, want %g without z", c.T, c.d, c.conv, v, c.want)
		}
	}
}

// theory.md 1.3: T·IPR ≤ T·max‖v‖∞² ≤ T·leverage, and leverage follows from
// incoherence and condition.
func TestLeverageBoundsLocalization(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		T, d := rapid.IntRange(4, 40).Draw(r, "T"), rapid.IntRange(1, 8).Draw(r, "d")
		l := randomLayer(rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 4)), 1, 1, T, d, head.Causal, 1)
		big := rapid.Float64Range(1, 30).Draw(r, "large key")
		for j := range d {
			l.Pairs[0].K.Set(1, j, big*l.Pairs[0].K.At(1, j))
		}
		table, err := Run(context.Background(), l, nil)
		if err != nil {
			r.Fatal(err)
		}
		h, k := table.Heads[0].Measures, table.KVHeads[0].Measures
		ipr, leverage := h["channel.key_ipr_max"].Value, k["key.leverage_max"].Value
		if ipr > float64(T)*leverage*(1+1e-9) {
			r.Fatalf("T·IPR %g above T·leverage %g", ipr, float64(T)*leverage)
		}
		kappa := k["key.condition"].Value
		bound := k["key.incoherence_centered"].Value * float64(min(d, T-1)) * kappa * kappa
		if float64(T)*leverage > bound*(1+1e-9) {
			r.Fatalf("T·leverage %g above μ·r·κ² = %g", float64(T)*leverage, bound)
		}
	})
}

// theory.md 1.4: one key ten times as large gives μ_K of about 90 and T·IPR of
// about 410 at T = 512, d = 64.
func TestOneLargeKeyLocalizesAChannel(t *testing.T) {
	l := randomLayer(rand.New(rand.NewPCG(1, 14)), 1, 1, 512, 64, head.Mask{}, 1)
	for j := range 64 {
		l.Pairs[0].K.Set(100, j, 10*l.Pairs[0].K.At(100, j))
	}
	table, err := Run(context.Background(), l, &Options{Measures: []*Measure{keyIncoherence, channelKeyIPRMax}})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "μ_K", table.KVHeads[0].Measures["key.incoherence"].Value, 90, 15)
	near(t, "T·IPR", table.Heads[0].Measures["channel.key_ipr_max"].Value, 410, 50)
}

// Rotating queries and keys alike, as RoPE does at one position, changes no score.
func TestACommonRotationChangesNothing(t *testing.T) {
	l := randomLayer(rand.New(rand.NewPCG(2, 8)), 2, 1, 40, 6, head.Causal, 1)
	before, err := Run(context.Background(), l, nil)
	if err != nil {
		t.Fatal(err)
	}
	rotation, _ := linalg.QR(gaussian(rand.New(rand.NewPCG(3, 3)), 6, 6))
	turn := func(m linalg.Matrix) linalg.Matrix {
		out := linalg.New(m.Rows, m.Cols)
		linalg.Mul(out, m, rotation)
		return out
	}
	k := turn(l.Pairs[0].K)
	for h := range l.Pairs {
		l.Pairs[h].Q, l.Pairs[h].K = turn(l.Pairs[h].Q), k
	}
	after, err := Run(context.Background(), l, nil)
	if err != nil {
		t.Fatal(err)
	}
	for h := range before.Heads {
		for name, v := range before.Heads[h].Measures {
			near(t, name, after.Heads[h].Measures[name].Value, v.Value, 1e-9*(1+math.Abs(v.Value)))
		}
	}
	for name, v := range before.KVHeads[0].Measures {
		near(t, name, after.KVHeads[0].Measures[name].Value, v.Value, 1e-9*(1+math.Abs(v.Value)))
	}
}
