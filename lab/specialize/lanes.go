package specialize

// lane is the numbers of one head and token over a block of samples. The loops
// below take four lanes at a time, so that sums stay in registers; the compiler
// knows the length and checks no bounds.
type lane = [blockSize]float64

// weigh4 normalizes four heads' weights for one token and adds them to w.
func weigh4(w, p0, p1, p2, p3, n0, n1, n2, n3 *lane) {
	for i := range w {
		a, b, c, d := p0[i]*n0[i], p1[i]*n1[i], p2[i]*n2[i], p3[i]*n3[i]
		p0[i], p1[i], p2[i], p3[i] = a, b, c, d
		w[i] += (a + b) + (c + d)
	}
}

func weigh1(w, p, n *lane) {
	for i := range w {
		v := p[i] * n[i]
		p[i] = v
		w[i] += v
	}
}

// inner4 adds p·u of four tokens.
func inner4(inner, p0, p1, p2, p3, u0, u1, u2, u3 *lane) {
	for i := range inner {
		inner[i] += (p0[i]*u0[i] + p1[i]*u1[i]) + (p2[i]*u2[i] + p3[i]*u3[i])
	}
}

func inner1(inner, p, u *lane) {
	for i := range inner {
		inner[i] += p[i] * u[i]
	}
}

// gradient4 turns p of four tokens into p·(u − inner).
func gradient4(inner, p0, p1, p2, p3, u0, u1, u2, u3 *lane) {
	for i := range inner {
		s := inner[i]
		p0[i] *= u0[i] - s
		p1[i] *= u1[i] - s
		p2[i] *= u2[i] - s
		p3[i] *= u3[i] - s
	}
}

func gradient1(inner, p, u *lane) {
	for i := range inner {
		p[i] *= u[i] - inner[i]
	}
}
