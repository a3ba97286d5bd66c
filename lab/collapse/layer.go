package collapse

import (
	"math"

	"github.com/eigenhead/eigenhead/linalg"
)

// normEps is the eps of LayerNorm and RMSNorm.
const normEps = 1e-5

// input draws the tokens that enter layer 1.
func (s *sim) input() tokens {
	if s.thin {
		return s.thinInput()
	}
	switch s.Input {
	case GaussianIn:
		return newTokens(s.rng.normals(s.T, s.D, 1/math.Sqrt(float64(s.D))), 0)
	case Correlated:
		common := s.rng.normals(1, s.D, math.Sqrt(s.Rho/float64(s.D)))
		own := newTokens(s.rng.normals(s.T, s.D, math.Sqrt((1-s.Rho)/float64(s.D))), 0)
		own.C = own.C.plus(normalized(common, 0))
		return own
	}
	if s.T <= s.D {
		q, _ := linalg.QR(s.rng.normals(s.D, s.T, 1))
		return newTokens(q.T(), 0)
	}
	q, _ := linalg.QR(s.rng.normals(s.T, s.D, 1))
	return newTokens(q.Clone(), 0).times(math.Sqrt(float64(s.T) / float64(s.D)))
}

// layer returns the tokens after one layer, and the layer's attention matrices.
func (s *sim) layer(x tokens, number int) (tokens, []*mixing) {
	in := x
	if s.Norm == PreNorm {
		in = s.layerNorm(x)
	}
	branch, attention := s.branch(in, number)
	if s.Skip == ScaledSkip {
		branch = branch.times(1 / math.Sqrt(float64(s.D)))
	}
	if s.Skip != NoSkip {
		branch = branch.plus(x.widened(branch.R.M.Cols))
	}
	if s.MLP {
		branch = s.mlp(branch)
	}
	if s.Norm == PostNorm {
		branch = s.layerNorm(branch)
	}
	if s.Skip == PlainSkip && !s.MLP && !s.Undoubled { // the published code adds its missing MLP's input twice
		branch.C.E++
		branch.R.E++
	}
	return branch, attention
}

// branch returns Σ_h A_h·X·W_V,h·W_O,h.
func (s *sim) branch(in tokens, number int) (tokens, []*mixing) {
	attention := s.attention(in, number)
	sd := 1.0
	if s.ValueVar == "1/d" {
		sd = 1 / math.Sqrt(float64(s.D))
	}
	values := s.values(in, sd)
	if s.Attention == Identity {
		return values, nil
	}
	width := values.R.M.Cols / s.Heads
	parts := make([]tokens, s.Heads)
	for h, a := range attention {
		parts[h] = a.apply(values.colSlice(h*width, (h+1)*width))
		if s.Fix == Differential {
			parts[h] = rowNorm(parts[h], width).times(1 - lambdaInit(number))
		}
	}
	if s.Heads == 1 {
		return parts[0], attention
	}
	out := join(parts)
	return s.project(out, s.D, 1/math.Sqrt(float64(s.D))), attention
}

// join puts heads side by side.
func join(parts []tokens) tokens {
	beside := func(pick func(tokens) scaled) scaled {
		e, width := math.MinInt, 0
		for _, p := range parts {
			if !pick(p).zero() {
				e = max(e, pick(p).E)
			}
			width += pick(p).M.Cols
		}
		if e == math.MinInt {
			e = 0
		}
		out, at := linalg.New(pick(parts[0]).M.Rows, width), 0
		for _, p := range parts {
			m := pick(p).M
			to := out.ColSlice(at, at+m.Cols)
			for i := range m.Rows {
				copy(to.Row(i), m.Row(i))
			}
			scaleBy(to, pick(p).E-e)
			at += m.Cols
		}
		return normalized(out, e)
	}
	return tokens{C: beside(func(t tokens) scaled { return t.C }), R: beside(func(t tokens) scaled { return t.R })}
}

// mlp returns X + relu(X·W₁)·W₂, W₁ ~ N(0, 2/d), W₂ ~ N(0, 1/4d). It needs X as one
// matrix: what is 2⁵² below the common part is lost here, as in any network.
func (s *sim) mlp(x tokens) tokens {
	m, e := x.dense()
	hidden := linalg.New(s.T, 4*s.D)
	linalg.Mul(hidden, m, s.rng.normals(s.D, 4*s.D, math.Sqrt(2/float64(s.D))))
	for i, v := range hidden.Data {
		hidden.Data[i] = max(v, 0)
	}
	out := linalg.New(s.T, s.D)
	linalg.Mul(out, hidden, s.rng.normals(4*s.D, s.D, 1/math.Sqrt(4*float64(s.D))))
	return x.plus(newTokens(out, e))
}

// values returns in·W_V.
func (s *sim) values(in tokens, sd float64) tokens {
	if s.thin {
		return s.thinValues(in, sd)
	}
	return s.project(in, s.D, sd)
}

// layerNorm is LayerNorm of each token.
func (s *sim) layerNorm(x tokens) tokens {
	x = tokens{C: x.C.clone(), R: x.R.clone()}
	if s.thin { // the mean over channels is the first coordinate
		dropFirst(x.C.M)
		dropFirst(x.R.M)
	} else {
		subtractMeans(x.C.M)
		subtractMeans(x.R.M)
	}
	return rowNorm(x, s.D)
}

// rowNorm divides each row by g_i = √(v_i + eps), v_i = ‖x_i‖²/width its mean square
// (RMSNorm, and LayerNorm once means are off).
//
// With x_i = c + r_i the result is c/g₀ + [r_i − c·δ_i/(g₀(g_i + g₀))]/g_i, g₀ that of c
// alone and δ_i = v_i − v₀ = (2c·r_i + ‖r_i‖²)/d: nothing cancels when r is small.
func rowNorm(x tokens, width int) tokens {
	d := float64(width)
	// In the unit 2^e values are at most about 1; eps is in that unit's square.
	e := x.top()
	e = max(e, -400) // below, eps alone decides and needs no finer unit
	eps := math.Ldexp(normEps, -2*e)
	c, fc, fr := x.C.M.Data, math.Ldexp(1, x.C.E-e), math.Ldexp(1, x.R.E-e)
	g0 := math.Sqrt(fc*fc*linalg.Dot(c, c)/d + eps)
	common := linalg.New(1, len(c))
	if g0 > 0 {
		linalg.Axpy(1/g0, c, common.Data)
	}
	scale := linalg.New(x.R.M.Rows, len(c))
	for i := range scale.Rows {
		r := x.R.M.Row(i)
		delta := (2*fc*linalg.Dot(c, r) + fr*linalg.Dot(r, r)) / d // times fr: δ_i
		g := math.Sqrt(max(g0*g0+fr*delta, 0))
		if g == 0 {
			continue
		}
		linalg.Axpy(1/g, r, scale.Row(i))
		if g0 > 0 {
			linalg.Axpy(-fc*delta/(g0*(g+g0)*g), c, scale.Row(i))
		}
	}
	// common carries 2^(C.E − e), the rest 2^(R.E − e).
	return tokens{C: normalized(common, x.C.E-e), R: normalized(scale, x.R.E-e)}.centered()
}

func subtractMeans(m linalg.Matrix) {
	for i := range m.Rows {
		row := m.Row(i)
		mean := sum(row) / float64(len(row))
		for j := range row {
			row[j] -= mean
		}
	}
}
