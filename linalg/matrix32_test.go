package linalg

import (
	"math"
	"testing"
)

func TestMatrix32(t *testing.T) {
	m := New32(3, 5)
	for i := range m.Data {
		m.Data[i] = float32(i)
	}
	part := m.ColSlice(1, 4)
	c := part.Clone()
	if c.Stride != 3 || c.At(2, 1) != 12 || part.At(2, 1) != 12 {
		t.Errorf("copy %v of columns 1 to 3", c)
	}
	c.Data[0] = 9
	if m.At(0, 1) != 1 {
		t.Error("the copy shares its numbers")
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		part.Row(1)[2] = float32(bad)
		if i, j, found := part.NonFinite(); i != 1 || j != 2 || !found {
			t.Errorf("%v found at %d, %d: %v", bad, i, j, found)
		}
	}
	part.Row(1)[2] = math.MaxFloat32
	if _, _, found := m.NonFinite(); found {
		t.Error("a finite number was found")
	}
}
