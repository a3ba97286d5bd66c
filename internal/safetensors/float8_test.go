package safetensors

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// TestFloat8 compares every number of one byte with torch's (testdata/float8.py).
func TestFloat8(t *testing.T) {
	data, err := os.ReadFile("testdata/float8.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string][]uint32
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	if len(want) != 2 {
		t.Fatalf("%d types, want 2", len(want))
	}
	src := make([]byte, 256)
	for i := range src {
		src[i] = byte(i)
	}
	for dtype, bits := range want {
		x, y := make([]float32, 256), make([]float64, 256)
		Float32s(x, dtype, src)
		Float64s(y, dtype, src)
		for i, b := range bits {
			v := math.Float32frombits(b)
			if nan := v != v; nan != (x[i] != x[i]) || nan != (y[i] != y[i]) || !nan && (math.Float32bits(x[i]) != b || y[i] != float64(v)) {
				t.Errorf("%s: byte %#x is %g and %g, want %g", dtype, i, x[i], y[i], v)
			}
		}
	}
}
