package store

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

// logitSize is the bytes of one Logit: eight float64 and two uint32.
const logitSize = 8*8 + 2*4

func logitFloats(l *monitor.Logit) [8]*float64 {
	return [...]*float64{&l.Max, &l.QueryNorm, &l.KeyNorm, &l.Cosine, &l.Scale,
		&l.QueryMedian, &l.KeyMedian, &l.OtherKeys}
}

func packLogits(all []monitor.Logit) ([]byte, error) {
	b := make([]byte, 0, logitSize*len(all))
	for i := range all {
		l := &all[i]
		if l.Query < 0 || l.Key < 0 || int64(l.Query) > math.MaxUint32 || int64(l.Key) > math.MaxUint32 {
			return nil, fmt.Errorf("store: logit at %s: query %d, key %d", l.Where, l.Query, l.Key)
		}
		for _, f := range logitFloats(l) {
			b = appendFloat(b, *f)
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(l.Query))
		b = binary.LittleEndian.AppendUint32(b, uint32(l.Key))
	}
	return b, nil
}

func unpackLogits(b []byte, places []string) ([]monitor.Logit, error) {
	if len(b) != logitSize*len(places) {
		return nil, fmt.Errorf("logits of %d bytes, want %d for %d places", len(b), logitSize*len(places), len(places))
	}
	all := make([]monitor.Logit, len(places))
	for i, place := range places {
		l := &all[i]
		l.Where = place
		row := b[i*logitSize:]
		for n, f := range logitFloats(l) {
			*f = math.Float64frombits(binary.LittleEndian.Uint64(row[8*n:]))
		}
		l.Query = int(binary.LittleEndian.Uint32(row[64:]))
		l.Key = int(binary.LittleEndian.Uint32(row[68:]))
	}
	return all, nil
}

// real is a float64 whose JSON may be "NaN", "Infinity" or "-Infinity".
type real float64

// MarshalJSON writes the shortest digits that read back exactly.
func (r real) MarshalJSON() ([]byte, error) {
	if word := notFinite(float64(r)); word != "" {
		return json.Marshal(word)
	}
	return json.Marshal(float64(r))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *real) UnmarshalJSON(b []byte) error {
	if len(b) == 0 || b[0] != '"' {
		return json.Unmarshal(b, (*float64)(r))
	}
	switch string(b) {
	case `"NaN"`:
		*r = real(math.NaN())
	case `"Infinity"`:
		*r = real(math.Inf(1))
	case `"-Infinity"`:
		*r = real(math.Inf(-1))
	default:
		return fmt.Errorf("number %.40q", b)
	}
	return nil
}

func notFinite(v float64) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	}
	return ""
}
