package specialize

import (
	"fmt"
	"math"
	"slices"
)

// Event is something that happened in a run.
type Event struct {
	Kind    string  `json:"kind"`
	Time    float64 `json:"t"`
	Until   float64 `json:"until,omitempty"`   // plateau: its end
	Feature *int    `json:"feature,omitempty"` // counted from 0
	Head    *int    `json:"head,omitempty"`    // counted from 0
	Value   float64 `json:"value"`             // what Text says of it
	Text    string  `json:"text"`
}

// The kinds of event.
const (
	Together  = "together"  // heads moved alike along E θ, up to this time
	Learned   = "learned"   // a feature's largest |m_hf| first passed half its final value
	Split     = "split"     // heads' spread on a feature first moved scores by half their noise
	Excursion = "excursion" // a head left a feature that it had taken
	Joined    = "joined"    // a head took a feature long after it was first learned: heads re-arranged
	Plateau   = "plateau"   // the loss stood still and then fell again
)

// Thresholds of the events, chosen, not derived.
const (
	learnedScore = 0.5  // |m_hf|·√E θ_f², how far the signal moves a score: below it at the end a feature was not learned
	halfway      = 0.5  // of the final value
	leftShare    = 0.5  // of its peak, below which a head has left a feature
	joinedLate   = 2.0  // times the time at which the feature was learned
	plateauFall  = 0.03 // of the whole fall of the loss
	plateauRatio = 1.8  // of end and start of a plateau's time
	alike        = 0.1  // specialization below which heads move together
)

// Specialization returns 1 − |mean m|²/mean |m|², over heads: 0 where all heads
// have the same m, 1 where they cancel.
func Specialization(st State, features int) float64 {
	H := st.K.Rows
	mean, total := make([]float64, features), 0.0
	for h := range H {
		for f, v := range st.K.Row(h)[:features] {
			mean[f] += v / float64(H)
			total += v * v / float64(H)
		}
	}
	if total == 0 {
		return 0
	}
	sum := 0.0
	for _, v := range mean {
		sum += v * v
	}
	return 1 - sum/total
}

// Alignment returns the cosine between the heads' mean m and a direction.
func Alignment(st State, direction []float64) float64 {
	dot, size := 0.0, 0.0
	for f, d := range direction {
		sum := 0.0
		for h := range st.K.Rows {
			sum += st.K.At(h, f)
		}
		dot += sum * d
		size += sum * sum
	}
	if size == 0 {
		return 0
	}
	return dot / math.Sqrt(size) / Norm(direction)
}

// Apart returns the heads' spread on feature f, √(mean (m_hf − mean m_f)²).
func Apart(st State, f int) float64 {
	H := float64(st.K.Rows)
	mean, sum := 0.0, 0.0
	for h := range st.K.Rows {
		mean += st.K.At(h, f) / H
	}
	for h := range st.K.Rows {
		d := st.K.At(h, f) - mean
		sum += d * d / H
	}
	return math.Sqrt(sum)
}

// strongest returns the head with the largest |m_hf|, and that value with its sign.
func strongest(st State, f int) (head int, m float64) {
	for h := range st.K.Rows {
		if v := st.K.At(h, f); math.Abs(v) > math.Abs(m) {
			head, m = h, v
		}
	}
	return head, m
}

// Events reads a trajectory: when heads stopped moving together, when each feature
// was learned and split and by which head, who left, and where the loss stood
// still. In order of time.
func Events(t *Trajectory, law *Law) []Event {
	if len(t.Times) < 3 {
		return nil
	}
	F := law.Features()
	var all []Event
	if e, ok := t.together(law); ok {
		all = append(all, e)
	}
	for f := range F {
		all = append(all, t.feature(law, f)...)
	}
	if len(all) > 0 && all[0].Kind == Together { // over at the latest when heads split on a feature
		for _, e := range all {
			if e.Kind == Split {
				all[0].Time = min(all[0].Time, e.Time)
			}
		}
	}
	all = append(all, t.plateaus()...)
	slices.SortStableFunc(all, func(a, b Event) int {
		switch {
		case a.Time < b.Time:
			return -1
		case a.Time > b.Time:
			return 1
		}
		return 0
	})
	return all
}

// together finds the end of a first phase in which heads move alike: when their
// specialization, after a minimum at most half as high, passed alike.
func (t *Trajectory) together(law *Law) (Event, bool) {
	mean, _ := law.Moments()
	if Norm(mean) == 0 || t.Last().K.Rows < 2 {
		return Event{}, false
	}
	F := len(mean)
	s := func(st State) float64 { return Specialization(st, F) }
	least := 1
	for i := range t.States {
		if i > 0 && s(t.States[i]) < s(t.States[least]) {
			least = i
		}
	}
	final, cosine := s(t.Last()), Alignment(t.States[least], mean)
	if final < alike {
		return Event{Kind: Together, Time: t.Times[len(t.Times)-1], Value: cosine,
			Text: fmt.Sprintf("heads are much alike to the end (cosine %.3f with E θ at first)", cosine)}, true
	}
	if s(t.States[least]) > alike/2 {
		return Event{}, false
	}
	i := least
	for s(t.States[i]) < alike {
		i++
	}
	return Event{Kind: Together, Time: t.cross(i, s, alike), Value: cosine,
		Text: fmt.Sprintf("heads moved together until now, along E θ (cosine %.3f), then split", cosine)}, true
}

// cross returns the time between records i−1 and i at which f reaches level.
func (t *Trajectory) cross(i int, f func(State) float64, level float64) float64 {
	if i == 0 {
		return t.Times[0]
	}
	a, b := f(t.States[i-1]), f(t.States[i])
	if a == b {
		return t.Times[i]
	}
	u := min(max((level-a)/(b-a), 0), 1)
	return t.Times[i-1] + u*(t.Times[i]-t.Times[i-1])
}

// first returns when f first reaches level.
func (t *Trajectory) first(f func(State) float64, level float64) (at float64, index int, ok bool) {
	for i, st := range t.States {
		if f(st) >= level {
			return t.cross(i, f, level), i, true
		}
	}
	return 0, 0, false
}

func (t *Trajectory) feature(law *Law, f int) []Event {
	_, second := law.Moments()
	_, final := strongest(t.Last(), f)
	if math.Abs(final)*math.Sqrt(second.At(f, f)) < learnedScore {
		return nil
	}
	var all []Event
	size := func(st State) float64 { _, m := strongest(st, f); return math.Abs(m) }
	learned := math.Inf(1)
	if at, i, ok := t.first(size, halfway*math.Abs(final)); ok {
		head, m := strongest(t.States[i], f)
		learned = at
		all = append(all, Event{Kind: Learned, Time: at, Feature: &f, Head: &head, Value: m,
			Text: fmt.Sprintf("feature %d learned by head %d (m = %+.2f)", f+1, head+1, m)})
	}
	apart := func(st State) float64 { return Apart(st, f) * math.Sqrt(second.At(f, f)) }
	if apart(t.Last()) >= learnedScore {
		at, _, _ := t.first(apart, learnedScore)
		all = append(all, Event{Kind: Split, Time: at, Feature: &f, Value: Apart(t.Last(), f), Text: fmt.Sprintf("heads split on feature %d", f+1)})
	}
	for h := range t.Last().K.Rows {
		if e, ok := t.left(h, f, math.Abs(final)); ok {
			all = append(all, e)
		}
		if e, ok := t.joined(h, f, math.Abs(final), learned); ok {
			all = append(all, e)
		}
	}
	return all
}

// left finds a head whose |m_hf| peaked at more than half of what the feature's
// best head ends with, and then fell below half of that peak for good.
func (t *Trajectory) left(h, f int, final float64) (Event, bool) {
	peak, at := 0.0, 0
	for i, st := range t.States {
		if v := math.Abs(st.K.At(h, f)); v > peak {
			peak, at = v, i
		}
	}
	end := math.Abs(t.Last().K.At(h, f))
	if peak < halfway*final || end > leftShare*peak {
		return Event{}, false
	}
	back := len(t.States) - 1
	for back > at && math.Abs(t.States[back-1].K.At(h, f)) <= leftShare*peak {
		back--
	}
	return Event{Kind: Excursion, Time: t.Times[back], Feature: &f, Head: &h, Value: peak,
		Text: fmt.Sprintf("head %d left feature %d (|m| peaked at %.2f at t = %.4g, ends at %.2f)", h+1, f+1, peak, t.Times[at], end)}, true
}

// joined finds a head that ends with at least half of the feature's largest |m| and
// came to half of that only long after the feature was learned.
func (t *Trajectory) joined(h, f int, final, learned float64) (Event, bool) {
	end := t.Last().K.At(h, f)
	if math.Abs(end) < halfway*final {
		return Event{}, false
	}
	toward := func(st State) float64 { return math.Copysign(1, end) * st.K.At(h, f) }
	last := len(t.States) - 1
	for last > 0 && toward(t.States[last-1]) >= halfway*math.Abs(end) {
		last--
	}
	at := t.cross(last, toward, halfway*math.Abs(end))
	if at < joinedLate*learned {
		return Event{}, false
	}
	return Event{Kind: Joined, Time: at, Feature: &f, Head: &h, Value: end,
		Text: fmt.Sprintf("head %d comes to feature %d (m ends at %+.2f)", h+1, f+1, end)}, true
}

// plateaus finds stretches over which the loss, per unit of ln t, falls so slowly
// that growth of t by plateauRatio takes less than plateauFall of the whole fall,
// at least that long, and followed by a further fall of more than twice that. The
// first thousandth of the run, in which nothing can have happened, is left out.
func (t *Trajectory) plateaus() []Event {
	n := len(t.Loss)
	top, low := t.Loss[0], t.Loss[0]
	for _, v := range t.Loss {
		top, low = max(top, v), min(low, v)
	}
	tiny := plateauFall * (top - low)
	flat := func(i int) bool {
		return math.Abs(t.Loss[i+1]-t.Loss[i]) <= tiny/math.Log(plateauRatio)*math.Log(t.Times[i+1]/t.Times[i])
	}
	var all []Event
	for i := 1; i+1 < n; i++ {
		if t.Times[i] < t.Times[n-1]/1000 || !flat(i) {
			continue
		}
		j := i
		for j+1 < n && flat(j) {
			j++
		}
		if t.Times[j] > plateauRatio*t.Times[i] && t.Loss[j]-t.Loss[n-1] > 2*tiny {
			all = append(all, Event{Kind: Plateau, Time: t.Times[i], Until: t.Times[j], Value: t.Loss[j],
				Text: fmt.Sprintf("the loss stands at %.3f until t = %.4g", t.Loss[j], t.Times[j])})
		}
		i = j
	}
	return all
}

// Escape compares how fast the heads leave a stationary point along one feature
// with the linearized rate there.
type Escape struct {
	Feature   int     `json:"feature"` // counted from 0
	Point     string  `json:"point"`
	Rate      float64 `json:"rate"`      // of the fastest antisymmetric mode on the feature
	From      float64 `json:"from"`      // time at which the prediction starts
	Amplitude float64 `json:"amplitude"` // spread of the heads on the feature then
	Level     float64 `json:"level"`     // spread that both times refer to
	Predicted float64 `json:"predicted"` // From + ln(Level/Amplitude)/Rate
	Measured  float64 `json:"measured"`  // when the run reached Level
}

// escapeScore is the level, as |m|·√Var θ_f: the quadratic order still rules there.
const escapeScore = 0.3

// Escapes returns one comparison for each feature on which an antisymmetric mode
// of the given point grows and the run reaches the level. From the zero point the
// prediction starts with the run, from the symmetric one when the heads' mean m
// has come to 90 % of the point's. After the first feature the point is no longer
// the one the heads leave, so later features' predictions are only orders; modes
// ten times slower than the fastest have none.
func Escapes(t *Trajectory, law *Law, modes []Mode, at State) []Escape {
	v := law.Variance()
	fastest := 0.0
	for _, mode := range modes {
		if mode.Kind == Antisymmetric {
			fastest = max(fastest, mode.Rate)
		}
	}
	var all []Escape
	for f := range v {
		if v[f] == 0 {
			continue
		}
		for _, mode := range modes {
			if mode.Kind != Antisymmetric || mode.Feature != f || mode.Rate < 0.1*fastest || mode.Rate <= 0 {
				continue
			}
			if e, ok := t.escape(f, mode, escapeScore/math.Sqrt(v[f]), at); ok {
				all = append(all, e)
			}
			break
		}
	}
	return all
}

func (t *Trajectory) escape(f int, mode Mode, level float64, at State) (Escape, bool) {
	apart := func(st State) float64 { return Apart(st, f) }
	from := 0
	if mode.Point == AtSymmetric {
		target := 0.9 * meanSize(at, len(mode.Direction))
		for from < len(t.States)-1 && meanSize(t.States[from], len(mode.Direction)) < target {
			from++
		}
	}
	a := apart(t.States[from])
	measured, _, ok := t.first(apart, level)
	if !ok || !(a > 0) || a >= level || measured <= t.Times[from] {
		return Escape{}, false
	}
	return Escape{Feature: f, Point: mode.Point, Rate: mode.Rate, From: t.Times[from], Amplitude: a, Level: level,
		Predicted: t.Times[from] + math.Log(level/a)/mode.Rate, Measured: measured}, true
}

// meanSize is |mean m| over heads.
func meanSize(st State, features int) float64 {
	sum := 0.0
	for f := range features {
		mean := 0.0
		for h := range st.K.Rows {
			mean += st.K.At(h, f) / float64(st.K.Rows)
		}
		sum += mean * mean
	}
	return math.Sqrt(sum)
}
