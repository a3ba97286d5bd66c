package kernel

// Double stores src in dst, at least as long, as float64: exact, and a signaling NaN
// may come out quiet.
func Double(dst []float64, src []float32) {
	dst = dst[:len(src)]
	s := current()
	i := 0
	if s.double != nil {
		i = pieces(len(src), s.row.lanes, func(i, n int) { s.double(n, &dst[i], &src[i]) })
	}
	for j, v := range src[i:] {
		dst[i+j] = float64(v)
	}
}
