package report

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// reread is a report through its JSON form, so a copy that shares nothing.
func reread(t *testing.T, r *Report) *Report {
	t.Helper()
	var b bytes.Buffer
	if err := WriteJSON(&b, r); err != nil {
		t.Fatal(err)
	}
	got, err := ReadJSON("report.json", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	if err := WriteJSON(&again, got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Fatal("a report that was read and written again has other bytes")
	}
	return got
}

func TestCompareFindsWhatChanged(t *testing.T) {
	a := ill()
	b := reread(t, a)
	same, err := Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range same.Measures {
		if m.Median != 0 || m.Max != 0 {
			t.Errorf("%s differs between a report and its copy", m.Measure)
		}
	}
	const name = "attention.entropy"
	v := b.Heads[5].Measures[name]
	v.Value += 0.25
	b.Heads[5].Measures[name] = v
	b.Findings = b.Findings[1:]
	c, err := Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if c.Heads[0].Where != b.Heads[5].String() || c.Heads[0].Changes[0].Measure != name {
		t.Errorf("most changed: %+v", c.Heads[0])
	}
	for _, m := range c.Measures {
		if want := 0.0; m.Measure == name {
			if math.Abs(m.Max-0.25) > 1e-12 || m.Where != b.Heads[5].String() || m.Median != 0 {
				t.Errorf("%+v", m)
			}
		} else if m.Max != want {
			t.Errorf("%s changed by %g", m.Measure, m.Max)
		}
	}
	if len(c.Lost) != 1 || len(c.Gained) != 0 || c.Lost[0].Code != a.Findings[0].Code {
		t.Errorf("lost %+v, gained %+v", c.Lost, c.Gained)
	}
	var text bytes.Buffer
	if err := WriteCompareText(&text, c, TextOptions{Width: 100}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"median |Δ|", name, b.Heads[5].String(), "findings only in A: 1"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("text lacks %q", want)
		}
	}
}

func TestCompareRefusesOtherArchitectures(t *testing.T) {
	_, err := Compare(sample(4, 3, 3, 64), sample(3, 4, 4, 64))
	var usage *xerr.Usage
	if err == nil || !errors.As(err, &usage) {
		t.Errorf("got %v", err)
	}
}

func TestReadJSONRefusesWhatIsNoReport(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":       "x",
		"other schema":  `{"schema": "eigenhead.report/9"}`,
		"unknown field": `{"schema": "eigenhead.report/1", "surprise": 1}`,
		"wrong type":    `{"schema": "eigenhead.report/1", "heads": 3}`,
		"empty":         "",
	} {
		if _, err := ReadJSON("r.json", []byte(text)); err == nil || !xerr.Input(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestQuantile(t *testing.T) {
	for _, c := range []struct{ q, want float64 }{{0, 1}, {0.5, 2.5}, {0.25, 1.75}, {1, 4}} {
		if got := quantile([]float64{4, 1, 3, 2}, c.q); got != c.want {
			t.Errorf("quantile %g is %g, want %g", c.q, got, c.want)
		}
	}
	if got := quantile([]float64{7}, 0.9); got != 7 {
		t.Errorf("quantile of one number is %g", got)
	}
}
