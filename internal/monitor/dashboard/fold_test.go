package dashboard

import (
	"fmt"
	"testing"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

// draw is fold for a list.
func draw(list []monitor.Scalars) *drawn {
	f := newFold(list[len(list)-1].Step)
	for _, row := range list {
		f.add(row)
	}
	return f.drawn()
}

// TestFoldIsBounded: however many steps and names there are, the picture is small and
// has the series that come first, whole.
func TestFoldIsBounded(t *testing.T) {
	var list []monitor.Scalars
	for i := range int64(5000) {
		list = append(list, monitor.Scalars{Step: 7 * i, Values: map[string]float64{fmt.Sprintf("n%04d", 4999-i): 1, "lr": float64(i), "end": 1}})
	}
	list[4998].Values["n0000"], list[4999].Values["loss"] = -5, 8
	f := newFold(7 * 4999)
	for _, row := range list {
		f.add(row)
		if len(f.steps) > maxPoints+1 || len(f.series) > maxSeries {
			t.Fatalf("%d points of %d series", len(f.steps), len(f.series))
		}
	}
	d := f.drawn()
	if len(d.Series) != maxSeries || d.Series[0].Name != "loss" || d.Series[1].Name != "lr" || d.Series[2].Name != "n0000" {
		t.Fatalf("%d series, %s, %s, %s", len(d.Series), d.Series[0].Name, d.Series[1].Name, d.Series[2].Name)
	}
	if lr := d.Series[1]; lr.Lo[0] != 0 || lr.Hi[len(lr.Hi)-1] != 4999 || len(lr.Lo) != len(d.Steps) {
		t.Errorf("lr from %g to %g", lr.Lo[0], lr.Hi[len(lr.Hi)-1])
	}
}
