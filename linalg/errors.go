package linalg

import "fmt"

// NonFiniteError says that a matrix holds a NaN or an infinity where a
// decomposition needs numbers.
type NonFiniteError struct {
	Row, Col int // the first such element in row order
}

// Error names the element.
func (e *NonFiniteError) Error() string {
	return fmt.Sprintf("matrix: element (%d, %d) is NaN or infinite, want finite numbers", e.Row, e.Col)
}

// NoConvergence says that an iteration gave up. No partial result is returned.
type NoConvergence struct {
	Method     string // such as "singular values"
	Rows, Cols int    // shape of the matrix given
}

// Error names the method and the shape.
func (e *NoConvergence) Error() string {
	return fmt.Sprintf("%s of a %d×%d matrix: no convergence, want convergence within LAPACK's 30 sweeps per value",
		e.Method, e.Rows, e.Cols)
}

func finite(m Matrix) error {
	if i, j, found := m.NonFinite(); found {
		return &NonFiniteError{Row: i, Col: j}
	}
	return nil
}

// check panics when the lengths that must agree do not; shapes is printed.
func check(ok bool, op string, shapes ...[2]int) {
	if ok {
		return
	}
	text := "linalg: " + op + ": shapes do not fit:"
	for _, s := range shapes {
		text += fmt.Sprintf(" [%d, %d]", s[0], s[1])
	}
	panic(text)
}

func shape(m Matrix) [2]int     { return [2]int{m.Rows, m.Cols} }
func shape32(m Matrix32) [2]int { return [2]int{m.Rows, m.Cols} }
