package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/measure"
)

// detail is what an analysis has beside values and logits.
type detail struct {
	Model     string              `json:"model,omitempty"`
	Tokens    int                 `json:"tokens"`
	QKNorm    bool                `json:"qk_norm"`
	Causal    bool                `json:"causal"`
	NonFinite []measure.NonFinite `json:"non_finite,omitempty"`
	Scalars   map[string]real     `json:"scalars,omitempty"`
}

// column is one measure at the places of one class.
type column struct {
	measure string
	class   string
	places  []string
	data    []byte
	nulls   []byte
}

// encoded is an analysis as the rows that it becomes.
type encoded struct {
	places        []string // all, as they first occur
	columns       []*column
	detail        string
	logitPlaces   []string
	logits        []byte
	layers, heads int
}

// SaveAnalysis keeps the measures of a snapshot and makes it Analyzed. A second
// analysis takes the place of the first.
//
// Errors: ErrNotFound where the snapshot was never committed; *xerr.Format for a
// place that cannot be kept or a value that comes twice; ErrNoSpace; else the system's.
func (s *Store) SaveAnalysis(ctx context.Context, a *monitor.Analysis) error {
	e, err := encode(a)
	if err != nil {
		return err
	}
	return s.write(ctx, func(g *group) error {
		id, run, err := g.snapshotID(a.Key)
		if err != nil {
			return err
		}
		if err := g.insertAnalysis(e, a.Key, id, run); err != nil {
			return err
		}
		if err := g.exec(`UPDATE snapshots SET state = 'analyzed', reason = '' WHERE id = ?`, id); err != nil {
			return err
		}
		return g.exec(`UPDATE runs SET model = iif(? = '', model, ?), layers = ?, heads = ? WHERE id = ?`,
			a.Model, a.Model, e.layers, e.heads, run)
	})
}

// maxReason bounds the reason of a failure.
const maxReason = 4096

// SaveFailure says why the measures of a snapshot cannot be made. An analysis that
// is kept already stays.
//
// Errors: ErrNotFound; ErrNoSpace; else the system's.
func (s *Store) SaveFailure(ctx context.Context, k monitor.Key, reason string) error {
	if len(reason) > maxReason {
		reason = reason[:maxReason] + "…"
	}
	reason = strings.ToValidUTF8(reason, "�")
	return s.write(ctx, func(g *group) error {
		id, _, err := g.snapshotID(k)
		if err != nil {
			return err
		}
		return g.exec(`UPDATE snapshots SET state = 'failed', reason = ? WHERE id = ? AND state <> 'analyzed'`, reason, id)
	})
}

func (g *group) snapshotID(k monitor.Key) (id, run int64, err error) {
	found, err := g.scan(`SELECT s.id, s.run FROM snapshots s JOIN runs r ON r.id = s.run
		WHERE r.name = ? AND s.step = ? AND s.sample = ?`, []any{k.Run, k.Step, k.Sample}, &id, &run)
	if err == nil && !found {
		err = fmt.Errorf("%s: %w", k, ErrNotFound)
	}
	return id, run, err
}

func (g *group) insertAnalysis(e *encoded, k monitor.Key, id, run int64) error {
	if err := g.exec(`DELETE FROM vals WHERE snapshot = ?`, id); err != nil {
		return err
	}
	order, err := g.layout(e.places)
	if err != nil {
		return err
	}
	logits, err := g.layout(e.logitPlaces)
	if err != nil {
		return err
	}
	err = g.exec(`INSERT OR REPLACE INTO analyses (snapshot, detail, places, columns, layout, logits) VALUES (?, ?, ?, ?, ?, ?)`,
		id, e.detail, order, len(e.columns), logits, e.logits)
	if err != nil {
		return err
	}
	for _, c := range e.columns {
		m, err := g.measureID(run, c.measure)
		if err != nil {
			return err
		}
		layout, err := g.layout(c.places)
		if err != nil {
			return err
		}
		err = g.exec(`INSERT INTO vals (snapshot, measure, sample, step, layout, data, nulls) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			id, m, k.Sample, k.Step, layout, c.data, c.nulls)
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *group) measureID(run int64, name string) (int64, error) {
	var id int64
	found, err := g.scan(`SELECT id FROM measures WHERE run = ? AND name = ?`, []any{run, name}, &id)
	if found || err != nil {
		return id, err
	}
	return g.insert(`INSERT INTO measures (run, name) VALUES (?, ?)`, run, name)
}

// encode packs an analysis. It runs before the transaction, which is thereby short.
func encode(a *monitor.Analysis) (*encoded, error) {
	e := &encoded{}
	places := map[string][]string{} // by class
	index := map[string]int{}       // of a place within its class
	for i := range a.Values {
		v := &a.Values[i]
		if _, seen := index[v.Where]; seen {
			continue
		}
		if err := checkPlace(v.Where); err != nil {
			return nil, err
		}
		class := classOf(v.Where)
		index[v.Where] = len(places[class])
		places[class] = append(places[class], v.Where)
		e.places = append(e.places, v.Where)
	}
	if err := e.addColumns(a.Values, places, index); err != nil {
		return nil, err
	}
	e.heads, e.layers = len(places["LH"]), countLayers(e.places)
	return e, e.addRest(a)
}

// addRest encodes what is not a value.
func (e *encoded) addRest(a *monitor.Analysis) error {
	d := detail{Model: a.Model, Tokens: a.Tokens, QKNorm: a.QKNorm, Causal: a.Causal, NonFinite: a.NonFinite}
	for name, v := range a.Scalars {
		if d.Scalars == nil {
			d.Scalars = map[string]real{}
		}
		d.Scalars[name] = real(v)
	}
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	e.detail = string(text)
	for _, l := range a.Logits {
		if err := checkPlace(l.Where); err != nil {
			return err
		}
		e.logitPlaces = append(e.logitPlaces, l.Where)
	}
	e.logits, err = packLogits(a.Logits)
	return err
}

// addColumns gathers the values by measure and class, in the order in which a
// measure first occurs.
func (e *encoded) addColumns(values []monitor.Value, places map[string][]string, index map[string]int) error {
	type name struct{ measure, class string }
	byName := map[name][]*monitor.Value{} // by place; nil: absent
	for i := range values {
		v := &values[i]
		n := name{v.Measure, classOf(v.Where)}
		list := byName[n]
		if list == nil {
			if v.Measure == "" || len(v.Measure) > 100 || !utf8.ValidString(v.Measure) {
				return &xerr.Format{What: "measure", Found: fmt.Sprintf("%.80q", v.Measure), Want: "1 to 100 bytes of UTF-8"}
			}
			list = make([]*monitor.Value, len(places[n.class]))
			byName[n] = list
			e.columns = append(e.columns, &column{measure: n.measure, class: n.class, places: places[n.class]})
		}
		if list[index[v.Where]] != nil {
			return &xerr.Format{What: "value", Found: v.Measure + " at " + v.Where + " twice", Want: "once"}
		}
		list[index[v.Where]] = v
	}
	for _, c := range e.columns {
		p := newPacker(len(c.places))
		for i, v := range byName[name{c.measure, c.class}] {
			if v == nil {
				continue
			}
			if err := p.add(i, v); err != nil {
				return err
			}
		}
		c.data, c.nulls = p.blobs()
	}
	return nil
}

// countLayers counts the layers among places: "L3H5", "L3KV1" and "L3" are of one.
func countLayers(places []string) int {
	layers := map[string]bool{}
	for _, p := range places {
		if p[0] == 'L' {
			layers[p[:1+digits(p[1:])]] = true
		}
	}
	return len(layers)
}
