package spelling

import "testing"

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"same", "same", 0}} {
		if got, back := Edits(c.a, c.b), Edits(c.b, c.a); got != c.want || back != c.want {
			t.Errorf("%q, %q: %d and %d, want %d", c.a, c.b, got, back, c.want)
		}
	}
}

func TestOf(t *testing.T) {
	if got := Of("sink-hed", []string{"max-logit", "sink-head"}); got != "sink-head" {
		t.Errorf("got %q", got)
	}
	if got := Of("x", nil); got != "" {
		t.Errorf("got %q without names", got)
	}
}
