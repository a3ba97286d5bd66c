package kernel

// norm holds the passes over rows of float32 around a forward pass's products. Its
// functions take whole vectors of width elements; nil leaves everything to the twins.
type norm struct {
	width    int
	sum      func(n int, x *float32) float64
	squares  func(n int, x *float32, center float64) float64
	gained   func(n int, dst, x, gain *float32, r float32)
	centered func(n int, dst, x, gain *float32, mean, r float64)
	turn     func(n int, a, b, cos, sin *float32)
	add      func(n int, x, y *float32)
}

// Sum32 returns Σ x in float64. Relative error below len(x)·2⁻⁵³ of Σ|x|.
func Sum32(x []float32) float64 {
	k := &current().norm
	var sum float64
	i := pieces(len(x), k.width, func(i, n int) { sum += k.sum(n, &x[i]) })
	for _, v := range x[i:] {
		sum += float64(v)
	}
	return sum
}

// Squares32 returns Σ (x − center)² in float64. Relative error below
// (len(x) + 3)·2⁻⁵³.
func Squares32(x []float32, center float64) float64 {
	k := &current().norm
	var sum float64
	i := pieces(len(x), k.width, func(i, n int) { sum += k.squares(n, &x[i], center) })
	for _, v := range x[i:] {
		c := float64(v) - center
		sum += c * c
	}
	return sum
}

// Gained32 stores gain·(x·r) in dst; x and gain are at least as long, and dst may be
// x. Both products are rounded.
func Gained32(dst, x, gain []float32, r float32) {
	x, gain = x[:len(dst)], gain[:len(dst)]
	k := &current().norm
	i := pieces(len(dst), k.width, func(i, n int) { k.gained(n, &dst[i], &x[i], &gain[i], r) })
	plainGained(dst[i:], x[i:], gain[i:], r)
}

// Centered32 stores gain·((x − mean)·r) in dst, with the right factor in float64 until
// it is rounded; x and gain are at least as long, and dst may be x.
func Centered32(dst, x, gain []float32, mean, r float64) {
	x, gain = x[:len(dst)], gain[:len(dst)]
	k := &current().norm
	i := pieces(len(dst), k.width, func(i, n int) { k.centered(n, &dst[i], &x[i], &gain[i], mean, r) })
	plainCentered(dst[i:], x[i:], gain[i:], mean, r)
}

// Turn32 sets a_i, b_i to a_i·cos_i − b_i·sin_i, b_i·cos_i + a_i·sin_i; b, cos and sin
// are at least as long as a.
func Turn32(a, b, cos, sin []float32) {
	b, cos, sin = b[:len(a)], cos[:len(a)], sin[:len(a)]
	k := &current().norm
	i := pieces(len(a), k.width, func(i, n int) { k.turn(n, &a[i], &b[i], &cos[i], &sin[i]) })
	plainTurn(a[i:], b[i:], cos[i:], sin[i:])
}

// Add32 adds y, at least as long, to x.
func Add32(x, y []float32) {
	y = y[:len(x)]
	k := &current().norm
	i := pieces(len(x), k.width, func(i, n int) { k.add(n, &x[i], &y[i]) })
	for j, v := range y[i:] {
		x[i+j] += v
	}
}

func plainGained(dst, x, gain []float32, r float32) {
	for j, v := range x {
		dst[j] = gain[j] * (v * r)
	}
}

func plainCentered(dst, x, gain []float32, mean, r float64) {
	for j, v := range x {
		dst[j] = gain[j] * float32((float64(v)-mean)*r)
	}
}

// plainTurn rounds each product: arm64 would fuse it with the sum.
func plainTurn(a, b, cos, sin []float32) {
	b, sin = b[:len(cos)], sin[:len(cos)]
	for j, c := range cos {
		x, y, s := a[j], b[j], sin[j]
		a[j], b[j] = float32(x*c)-float32(y*s), float32(y*c)+float32(x*s)
	}
}
