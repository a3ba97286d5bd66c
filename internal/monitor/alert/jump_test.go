package alert_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/alert"
)

// score makes a consistent logit of its parts.
func score(where string, kv int, q, k, cos, other float64) monitor.Logit {
	return monitor.Logit{Where: where, KVHead: kv, Max: q * k * cos / 4, QueryNorm: q, KeyNorm: k, Cosine: cos, Scale: 0.25, OtherKeys: other, QueryMedian: q / 2, KeyMedian: k / 2, Key: 7, Query: 9}
}

func TestJumpNamesItsCause(t *testing.T) {
	before := score("L0H0", 0, 10, 10, 0.8, 18) // max 20
	for _, c := range []struct {
		name  string
		now   monitor.Logit
		cause string
		text  string
	}{
		{"norms of queries", score("L0H0", 0, 80, 10, 0.8, 150), "scale", "scale: ‖q‖ 10 → 80, ‖k‖ 10 → 10, cosine 0.8 → 0.8"},
		{"norms of both", score("L0H0", 0, 30, 30, 0.8, 150), "scale", "scale: ‖q‖ 10 → 30, ‖k‖ 10 → 30"},
		{"one key", score("L0H0", 0, 10, 80, 0.8, 19), "single key", "a single key, token 7: ‖k‖ 10 → 80, largest score without it 18 → 19"},
	} {
		e := alert.New("r", nil)
		e.Observe(&monitor.Analysis{Key: monitor.Key{Step: 100}, Logits: []monitor.Logit{before}})
		check(t, c.name, e.Observe(&monitor.Analysis{Key: monitor.Key{Step: 200}, Logits: []monitor.Logit{c.now}}), c.cause, c.text)
	}
	small := score("L0H0", 0, 60, 60, 0.02, 17) // max 18
	now := score("L0H0", 0, 60, 60, 0.5, 420)   // max 450
	e := alert.New("r", nil)
	e.Observe(&monitor.Analysis{Key: monitor.Key{Step: 100}, Logits: []monitor.Logit{small}})
	check(t, "angle", e.Observe(&monitor.Analysis{Key: monitor.Key{Step: 200}, Logits: []monitor.Logit{now}}), "direction", "direction: cosine 0.02 → 0.5")
}

func check(t *testing.T, name string, got []monitor.Alert, cause, text string) {
	t.Helper()
	if len(got) != 1 {
		t.Errorf("%s: %d alerts, want one", name, len(got))
		return
	}
	j, ok := got[0].Evidence["jump"].(*alert.Jump)
	if !ok || j.Cause != cause || j.From != 100 || !strings.Contains(got[0].Text, "since step 100: "+text) {
		t.Errorf("%s: %s\n%+v, want %s", name, got[0].Text, j, cause)
	}
	if _, err := json.Marshal(got[0]); err != nil {
		t.Error(err)
	}
}

// TestClip multiplies the factors out: heads above τ come to τ, those below stay.
func TestClip(t *testing.T) {
	for _, c := range []struct {
		name string
		kv   [3]int
		norm bool
		do   string
		list int
	}{
		{"own keys", [3]int{0, 1, 2}, false, "W_Q and W_K of the head", 1},
		{"shared keys", [3]int{0, 0, 0}, false, "W_K belongs to several query heads", 3},
		{"QK-norm", [3]int{0, 0, 1}, true, "gains of the two norms", 2},
	} {
		logits := []monitor.Logit{score("L0H0", c.kv[0], 100, 40, 0.4, 390), score("L0H1", c.kv[1], 20, 40, 0.8, 150), score("L0H2", c.kv[2], 5, 40, 0.4, 15)}
		got := alert.New("r", nil).Observe(&monitor.Analysis{QKNorm: c.norm, Logits: logits})
		if len(got) != 2 {
			t.Fatalf("%s: %v, want two alerts", c.name, got)
		}
		clip := got[0].Evidence["qk_clip"].(*alert.Clip)
		if clip.Tau != 100 || clip.Gamma != 0.25 || clip.Above != 2 || len(clip.Heads) != c.list || !strings.Contains(clip.Do, c.do) {
			t.Errorf("%s: %+v", c.name, clip)
		}
		for _, h := range clip.Heads {
			want := min(1, 100/h.Max)
			if d := math.Abs(h.WQ*h.WK - want); !(d < 1e-15) || h.Gamma != want {
				t.Errorf("%s, %s: W_Q·%g and W_K·%g, want together %g", c.name, h.Where, h.WQ, h.WK, want)
			}
			if h.WK != clip.Heads[0].WK {
				t.Errorf("%s: one W_K cannot have two factors", c.name)
			}
		}
	}
}
