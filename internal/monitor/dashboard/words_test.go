package dashboard

import (
	"math"
	"testing"
	"time"
)

func TestWords(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct{ got, want string }{
		{num(0.012345), "0.0123"}, {num(-1234.5), "−1230"}, {num(2e9), "2e+09"}, {num(999999), "1e+06"},
		{whole(0), "0"}, {whole(999), "999"}, {whole(1234567), "1\u202f234\u202f567"}, {whole(-1234), "-1\u202f234"}, {whole(math.MinInt64)[:2], "-9"},
		{count(1, "head"), "1 head"}, {count(1200, "head"), "1\u202f200 heads"},
		{ago(now, now.Add(time.Hour)), "just now"}, {ago(now, now.Add(-59*time.Second)), "59 s ago"}, {ago(now, now.Add(-3*time.Hour)), "3 h ago"},
		{ago(now, now.Add(-100*time.Hour)), "4 days ago"}, {ago(now, time.Time{}), "never"},
		{evidenceText(1e20), "1e+20"}, {evidenceText(3.0), "3"}, {evidenceText(nil), "none"}, {evidenceText(true), "true"},
		{evidenceText([]any{1.0, "x"}), "1, x"}, {evidenceText(map[string]any{"b": 2.5, "a": []any{}}), "a , b 2.5"},
		{cut("äöü", 2), "äö…"}, {cut("äö", 2), "äö"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
	if got := seconds(now, now.Add(time.Minute)); got != 0 {
		t.Errorf("seconds = %d", got)
	}
}

func TestSpark(t *testing.T) {
	nan := gap(math.NaN())
	d := &drawn{Steps: []int64{0, 10, 20, 30}, Series: []series{{Name: "loss", Lo: []gap{1, 2, nan, 1}, Hi: []gap{1, 4, nan, 1}, Bad: []int64{20}}, {Name: "none", Lo: []gap{nan, nan, nan, nan}, Hi: []gap{nan, nan, nan, nan}}}}
	s := sparkOf(d, "loss")
	if s.Path != "M0.0 32.5h0.1L56.7 22.2V1.5M170.0 32.5h0.1" || !s.Bad || s.Words != "loss from 1 to 1, between 1 and 4" {
		t.Errorf("%+v", s)
	}
	if s := sparkOf(d, "none"); s.Path != "" || s.Bad {
		t.Errorf("%+v", s)
	}
	if sparkOf(d, "lr") != nil {
		t.Error("a series that is not there has a picture")
	}
}
