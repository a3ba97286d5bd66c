package pipeline

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

// losses makes steps of a loss that is at 2, and at 5 from step jump on.
func losses(from, to, jump int64) (all []monitor.Scalars) {
	for s := from; s < to; s++ {
		v := 2 + 0.01*float64(s%2)
		if s >= jump {
			v += 3
		}
		all = append(all, monitor.Scalars{Step: s, Values: map[string]float64{"loss": v, "grad_norm": v, "lr": 1e-3}})
	}
	return all
}

func (b *bench) scalars(t *testing.T, list []monitor.Scalars) {
	t.Helper()
	if err := b.Scalars(context.Background(), "toy", list); err != nil {
		t.Fatal(err)
	}
}

// told is each kept alert with its end.
func (b *bench) told(t *testing.T) (all []string) {
	t.Helper()
	for _, a := range b.alerts(t) {
		end := "open"
		if a.Recovered != nil {
			end = fmt.Sprint(*a.Recovered)
		}
		all = append(all, fmt.Sprintf("%s %s@%d %s", a.Severity, a.Code, a.Step, end))
	}
	slices.Sort(all)
	return all
}

// TestScalarsSeenTwice repeats what is kept, in one process and after a restart from
// the first line, as a retry and a folder that is read again do: alerts stay open.
func TestScalarsSeenTwice(t *testing.T) {
	dir := t.TempDir()
	b := start(t, dir, nil, nil)
	b.scalars(t, losses(0, 230, 200))
	want := []string{"info gradient-spike@200 open", "warn loss-spike@200 open"}
	check := func(when string) {
		t.Helper()
		b.drain(t)
		if got := b.told(t); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	check("once")
	b.scalars(t, losses(150, 230, 200))
	check("the last 80 again")
	b.scalars(t, losses(0, 230, 200))
	check("all again")
	b.stop()
	b = start(t, dir, nil, nil)
	for from := int64(0); from < 230; from += 100 {
		b.scalars(t, losses(from, min(from+100, 230), 200))
	}
	check("all again after a restart")
	b.scalars(t, losses(220, 251, 200))
	want = []string{"critical loss-spike@250 open", "info gradient-spike@200 open", "warn gradient-spike@250 open", "warn loss-spike@200 open"}
	check("overlapping what is new")
	b.scalars(t, losses(245, 270, 1000))
	want = []string{"critical loss-spike@250 260", "info gradient-spike@200 254", "warn gradient-spike@250 260", "warn loss-spike@200 254"}
	check("the run went back and is well")
}

// TestLateScalars sends the steps of a spike after later ones: the alerts are those of
// the order of steps, and those of later steps do not end at once.
func TestLateScalars(t *testing.T) {
	b := start(t, t.TempDir(), nil, nil)
	b.scalars(t, losses(0, 200, 1000))
	b.scalars(t, losses(205, 220, 1000))
	b.scalars(t, losses(200, 205, 200))
	b.scalars(t, losses(300, 320, 300))
	b.scalars(t, losses(220, 240, 1000))
	b.drain(t)
	want := []string{"info gradient-spike@200 214", "info gradient-spike@300 open", "warn loss-spike@200 214", "warn loss-spike@300 open"}
	if got := b.told(t); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestRepeatsChangeNothing sends random series in portions, each now and then again
// and with scalars apart: live alerts are those of a replay of the run that came once.
func TestRepeatsChangeNothing(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 7))
		var all []monitor.Scalars
		levels := []float64{3, 3, 3, 5, 30, math.NaN()}
		for range 5 {
			level := levels[r.IntN(len(levels))]
			for i := range 1 + r.IntN(150) {
				all = append(all, monitor.Scalars{Step: int64(3 * len(all)), Values: map[string]float64{"loss": level + 0.01*float64(i%3), "grad_norm": level + 0.01*float64(i%3)}})
			}
		}
		once, twice := start(t, t.TempDir(), nil, nil), start(t, t.TempDir(), nil, nil)
		once.scalars(t, all)
		for at := 0; at < len(all); {
			from, to := max(0, at-r.IntN(200)), min(len(all), at+1+r.IntN(100))
			var part []monitor.Scalars
			for _, s := range all[from:to] {
				part = append(part, monitor.Scalars{Step: s.Step, Values: map[string]float64{"loss": s.Values["loss"]}})
			}
			twice.scalars(t, part)
			twice.scalars(t, all[from:to])
			at = to
		}
		once.drain(t)
		want := once.told(t)
		if got := twice.told(t); !slices.Equal(got, want) {
			t.Errorf("seed %d: repeated %v\nonce %v", seed, got, want)
		}
		twice.stop()
		again := start(t, twice.dir, nil, nil)
		again.drain(t)
		if got := again.told(t); !slices.Equal(got, want) {
			t.Errorf("seed %d: replayed %v\nonce %v", seed, got, want)
		}
	}
}
