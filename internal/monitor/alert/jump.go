package alert

import (
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

// Jump says what the growth of a head's largest score is made of, between an earlier
// snapshot and this one:
//
//	Max = scale·‖q‖·‖k‖·cos   so   ln(Max'/Max) = Δln‖q‖ + Δln‖k‖ + Δln cos
//
// Each pair is [earlier, now].
type Jump struct {
	From        int64      `json:"from_step"`
	Cause       string     `json:"cause"` // "scale", "direction" or "single key"
	Max         [2]float64 `json:"max"`
	QueryNorm   [2]float64 `json:"query_norm"`
	KeyNorm     [2]float64 `json:"key_norm"`
	Cosine      [2]float64 `json:"cosine"`
	QueryMedian [2]float64 `json:"query_norm_median"`
	KeyMedian   [2]float64 `json:"key_norm_median"`
	OtherKeys   [2]float64 `json:"other_keys"` // the largest score without the key of Max
	Query       int        `json:"query"`      // token whose query made the score
	Key         int        `json:"key"`        // token whose key did
}

// The causes of a jump.
const (
	causeScale     = "scale"
	causeDirection = "direction"
	causeKey       = "single key"
)

// keyPart is the part of the score's growth that the other keys must share for it not
// to be a matter of one key. Chosen, not derived: half.
const keyPart = 0.5

// jumpOf compares with the oldest snapshot of the look-back that has the head, where
// its largest score was smaller; nil where there is none.
func jumpOf(s *scope, l *monitor.Logit) *Jump {
	for _, f := range s.past {
		if p := f.logit(l.Where); p != nil {
			if !(p.Max < l.Max) {
				return nil
			}
			return between(f.Step, p, l)
		}
	}
	return nil
}

func between(step int64, p, l *monitor.Logit) *Jump {
	j := &Jump{From: step, Max: [2]float64{p.Max, l.Max}, QueryNorm: [2]float64{p.QueryNorm, l.QueryNorm},
		KeyNorm: [2]float64{p.KeyNorm, l.KeyNorm}, Cosine: [2]float64{p.Cosine, l.Cosine},
		QueryMedian: [2]float64{p.QueryMedian, l.QueryMedian}, KeyMedian: [2]float64{p.KeyMedian, l.KeyMedian},
		OtherKeys: [2]float64{p.OtherKeys, l.OtherKeys}, Query: l.Query, Key: l.Key}
	scale := growth(j.QueryNorm) + growth(j.KeyNorm)
	switch {
	case j.OtherKeys[1]-j.OtherKeys[0] < keyPart*(j.Max[1]-j.Max[0]):
		j.Cause = causeKey
	case p.Max <= 0 || growth(j.Cosine) > scale:
		j.Cause = causeDirection // below 0 no growth of norms makes a score larger
	default:
		j.Cause = causeScale
	}
	return j
}

// growth is ln(after/before), 0 where either has no logarithm.
func growth(v [2]float64) float64 {
	if !(v[0] > 0 && v[1] > 0) {
		return 0
	}
	return math.Log(v[1] / v[0])
}

// sentence says the cause with its numbers.
func (j *Jump) sentence() string {
	pair := func(v [2]float64) string { return num(v[0]) + " → " + num(v[1]) }
	switch j.Cause {
	case causeKey:
		return fmt.Sprintf("a single key, token %d: ‖k‖ %s, largest score without it %s", j.Key, pair(j.KeyNorm), pair(j.OtherKeys))
	case causeDirection:
		return fmt.Sprintf("direction: cosine %s, ‖q‖ %s, ‖k‖ %s", pair(j.Cosine), pair(j.QueryNorm), pair(j.KeyNorm))
	}
	return fmt.Sprintf("scale: ‖q‖ %s, ‖k‖ %s, cosine %s", pair(j.QueryNorm), pair(j.KeyNorm), pair(j.Cosine))
}
