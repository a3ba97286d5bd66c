package store

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/measure"
)

// FuzzNulls reads any bytes as nulls of eight values: an error or nulls, never a
// panic, and what is read survives being written.
func FuzzNulls(f *testing.F) {
	z := 2.5
	p := newPacker(8)
	for i := range 8 {
		v := monitor.Value{Value: float64(i)}
		if i != 3 {
			v.Null = &measure.Null{Mean: float64(i / 3), SD: 1, Kind: "table"}
		}
		if i%2 == 0 {
			v.Z = &z
		}
		if err := p.add(i, &v); err != nil {
			f.Fatal(err)
		}
	}
	_, nulls := p.blobs()
	f.Add(nulls)
	f.Add([]byte{})
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, p := newNullReader(b), newPacker(8)
		var values []monitor.Value
		for i := range 8 {
			v := monitor.Value{Value: float64(i)}
			var err error
			if v.Null, v.Z, err = r.next(v.Value); err != nil {
				return
			}
			values = append(values, v)
			if err := p.add(i, &v); err != nil {
				t.Fatal(err)
			}
		}
		_, again := p.blobs()
		r = newNullReader(again)
		for i, v := range values {
			null, z, err := r.next(float64(i))
			if err != nil || (null == nil) != (v.Null == nil) || null != nil && !sameNull(*null, *v.Null) ||
				(z == nil) != (v.Z == nil) || z != nil && !sameBits(*z, *v.Z) && !(math.IsNaN(*z) && math.IsNaN(*v.Z)) {
				t.Fatalf("value %d: %v, %v (%v), want %v, %v", i, null, z, err, v.Null, v.Z)
			}
		}
	})
}

// FuzzScalars: the same for the scalars of a step.
func FuzzScalars(f *testing.F) {
	f.Add(packScalars(map[int64]float64{1: 2.5, 300: -1, math.MaxInt64: 0}))
	f.Add([]byte{0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		values, err := unpackScalars(b)
		if err != nil {
			return
		}
		again, err := unpackScalars(packScalars(values))
		if err != nil || len(again) != len(values) {
			t.Fatalf("%v, want %v (%v)", again, values, err)
		}
		for id, v := range values {
			if !sameBits(again[id], v) {
				t.Fatalf("%d: %v, want %v", id, again[id], v)
			}
		}
	})
}

// FuzzValues: a blob of values over any number of places.
func FuzzValues(f *testing.F) {
	f.Add(newPacker(9).data, uint16(9))
	f.Add([]byte{}, uint16(0))
	f.Fuzz(func(t *testing.T, b []byte, n uint16) {
		p, err := unpack(b, int(n))
		if err != nil {
			return
		}
		count := 0
		for i := range int(n) {
			if p.has(i) {
				count++
				_ = p.at(i)
			}
		}
		if p.count() != count {
			t.Fatalf("count %d, want %d", p.count(), count)
		}
	})
}

// FuzzReal: numbers of JSON that may not be finite.
func FuzzReal(f *testing.F) {
	for _, s := range []string{`1.5`, `"NaN"`, `"Infinity"`, `"-Infinity"`, `"x"`, `null`, `1e999`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r, again real
		if json.Unmarshal(b, &r) != nil {
			return
		}
		text, err := json.Marshal(r)
		if err == nil {
			err = json.Unmarshal(text, &again)
		}
		if err != nil || !sameBits(float64(r), float64(again)) && !math.IsNaN(float64(r)) {
			t.Fatalf("%v becomes %v (%v)", r, again, err)
		}
	})
}

func TestLogitsComeBack(t *testing.T) {
	want := []monitor.Logit{{Where: "L0H0", Max: 1, Query: 2, Key: 3, QueryNorm: 4, KeyNorm: 5, Cosine: 6, Scale: 7,
		QueryMedian: 8, KeyMedian: 9, OtherKeys: math.Inf(-1)}, {Where: "L0H1"}}
	b, err := packLogits(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := unpackLogits(b, []string{"L0H0", "L0H1"})
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v (%v)", got, want, err)
	}
	if _, err := unpackLogits(b, []string{"L0H0"}); err == nil {
		t.Error("logits for one place too many were read")
	}
	if _, err := packLogits([]monitor.Logit{{Query: -1}}); err == nil {
		t.Error("a query of −1 was kept")
	}
}
