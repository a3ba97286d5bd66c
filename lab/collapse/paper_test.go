package collapse

import (
	"math"
	"os"
	"slices"
	"testing"
)

// The 25 configurations are those of the published table, by name and in its order but
// for the grouping.
func TestPaperConfigurations(t *testing.T) {
	var ours []string
	for _, c := range PaperConfigs(false) {
		ours = append(ours, c.Name())
	}
	slices.Sort(ours)
	var theirs []string
	for _, p := range PublishedTable() {
		theirs = append(theirs, p.Configuration)
	}
	slices.Sort(theirs)
	theirs = slices.Compact(theirs)
	if len(ours) != 25 || !slices.Equal(ours, theirs) {
		t.Errorf("ours %q\npublished %q", ours, theirs)
	}
}

// The published table at T = 40: at least 97 % of the cells within three standard errors
// of the difference, none beyond five, and a value where the published code has nan.
func TestPublishedTable(t *testing.T) {
	r, err := Run(background, &Options{Paper: true, Gamma: []float64{1}, T: []int{40}, Seeds: 8})
	if err != nil {
		t.Fatal(err)
	}
	compareWithTable(t, r, 125)
}

// All of it, when asked for: it takes half a minute.
func TestPublishedTableWhole(t *testing.T) {
	if os.Getenv("EIGENHEAD_SLOW") == "" {
		t.Skip("EIGENHEAD_SLOW is not set: the whole published sweep takes half a minute")
	}
	r, err := Run(background, &Options{Paper: true})
	if err != nil {
		t.Fatal(err)
	}
	compareWithTable(t, r, 250)
}

func compareWithTable(t *testing.T, r *Result, cells int) {
	t.Helper()
	if len(r.Published) != cells {
		t.Fatalf("%d cells compared, want %d", len(r.Published), cells)
	}
	judged, beyond := 0, 0
	for _, d := range r.Published {
		if !(d.Ours.Mean >= 1) {
			t.Errorf("%s, T=%d, l=%d: stable rank %g", d.Configuration, d.T, d.Layer, d.Ours.Mean)
		}
		if d.Z == nil {
			continue
		}
		judged++
		if z := math.Abs(*d.Z); z > 3 {
			beyond++
			t.Logf("%s, T=%d, l=%d: %g ± %g, published %g ± %g: %.2f", d.Configuration, d.T, d.Layer, d.Ours.Mean, d.Ours.SD, *d.Mean, d.SD, *d.Z)
			if z > 5 {
				t.Errorf("%s, T=%d, l=%d: %.2f standard errors off", d.Configuration, d.T, d.Layer, *d.Z)
			}
		}
	}
	if float64(beyond) > 0.03*float64(judged) {
		t.Errorf("%d of %d cells beyond 3 standard errors", beyond, judged)
	}
}

// The variant without the doubling is another one: A(X)_perp + skip at T = 150 is 141 and
// 140 in layers 2 and 3, published (doubled) 125 and 75.
func TestUndoubledSkip(t *testing.T) {
	c := Config{Attention: KeyQuery, Fix: Center, Skip: PlainSkip, Undoubled: true}
	all, err := Forward(background, c, Size{150, 1}, 3, 1, true)
	if err != nil {
		t.Fatal(err)
	}
	within(t, "layer 2", all[1]["stable_rank"], 141, 2)
	within(t, "layer 3", all[2]["stable_rank"], 140, 2)
}
