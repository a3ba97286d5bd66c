package kernel

import "math"

// generic is the set that every build has.
var generic = &set{
	name:   "generic",
	gemm32: tile[float32]{mr: 4, nr: 2, columns: true, run: plainTile[float32], transpose: plainTranspose[float32]},
	gemm64: tile[float64]{mr: 4, nr: 2, columns: true, run: plainTile[float64], transpose: plainTranspose[float64]},
	dot:    plainDot,
	axpy:   plainAxpy,
	exp32:  plainExp32,
	exp64:  plainExp64,
}

// plainTile is the 4×2 micro-kernel in Go, on A as [k][4]: as many sums as stay
// in sixteen registers.
func plainTile[E Float](k int, a []E, _, _ int, b []E, bks int, c []E, ldc int, add bool) {
	var c00, c01, c10, c11, c20, c21, c30, c31 E
	a, b = a[:4*k], b[:2*k]
	for len(a) >= 4 && len(b) >= 2 {
		b0, b1 := b[0], b[1]
		v := a[0]
		c00 += v * b0
		c01 += v * b1
		v = a[1]
		c10 += v * b0
		c11 += v * b1
		v = a[2]
		c20 += v * b0
		c21 += v * b1
		v = a[3]
		c30 += v * b0
		c31 += v * b1
		a, b = a[4:], b[2:]
	}
	putRow(c, add, c00, c01)
	putRow(c[ldc:], add, c10, c11)
	putRow(c[2*ldc:], add, c20, c21)
	putRow(c[3*ldc:], add, c30, c31)
}

func putRow[E Float](c []E, add bool, v0, v1 E) {
	c = c[:2]
	if add {
		v0, v1 = c[0]+v0, c[1]+v1
	}
	c[0], c[1] = v0, v1
}

func plainDot(x, y []float64) float64 {
	var s0, s1, s2, s3 float64
	i := 0
	for ; i+4 <= len(x); i += 4 {
		u, v := x[i:i+4:i+4], y[i:i+4:i+4]
		s0 += u[0] * v[0]
		s1 += u[1] * v[1]
		s2 += u[2] * v[2]
		s3 += u[3] * v[3]
	}
	for ; i < len(x); i++ {
		s0 += x[i] * y[i]
	}
	return (s0 + s1) + (s2 + s3)
}

func plainAxpy(alpha float64, x, y []float64) {
	for i, v := range x {
		y[i] += alpha * v
	}
}

func plainExp64(dst, x []float64, shift float64) {
	for i, v := range x {
		dst[i] = math.Exp(v - shift)
	}
}

func plainExp32(dst, x []float32, shift float32) {
	for i, v := range x {
		dst[i] = float32(math.Exp(float64(v - shift)))
	}
}
