package measure

import (
	"fmt"
	"math"
)

// Omit is the error of a measure that has no value here: it does not apply, or
// the input gives it none. It is an ordinary outcome and lands in Table.Omitted.
type Omit struct{ Reason string }

// Error returns the reason.
func (o *Omit) Error() string { return o.Reason }

func omit(format string, args ...any) error { return &Omit{Reason: fmt.Sprintf(format, args...)} }

// number wraps a plain value; one that left the float64 range is omitted, since
// neither NaN nor an infinity may stand in a result.
func number(v float64) (Value, error) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Value{}, omit("leaves the float64 range")
	}
	return Value{Value: v}, nil
}

// bounded wraps a value with its absolute error and what that error certifies.
func bounded(v, bound float64, kind string) (Value, error) {
	out, err := number(v)
	if err != nil || math.IsNaN(bound) || math.IsInf(bound, 0) {
		return Value{}, omit("leaves the float64 range")
	}
	out.Bound, out.BoundKind = &bound, kind
	return out, nil
}
