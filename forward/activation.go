package forward

import (
	"fmt"

	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/internal/kernel"
)

// activate applies the nonlinearity in place.
func activate(x []float32, a arch.Activation) {
	if a == arch.ReLU {
		for i, v := range x {
			x[i] = max(v, 0)
		}
		return
	}
	kernel.Activate32(curve(a), x)
}

// gateBy multiplies x, the output of Up, by the activated output of Gate, which it
// uses up.
func gateBy(x, gate []float32, a arch.Activation) {
	switch a {
	case arch.ClampedSwiGLU:
		kernel.ClampedSwiGLU32(x, gate)
	case arch.ReLU:
		for i, v := range gate {
			x[i] *= max(v, 0)
		}
	default:
		kernel.ActivateBy32(curve(a), x, gate)
	}
}

// curve returns the kernels' name of a.
func curve(a arch.Activation) kernel.Activation {
	switch a {
	case arch.SiLU:
		return kernel.SiLU
	case arch.GELUTanh:
		return kernel.GELUTanh
	case arch.GELU:
		return kernel.GELU
	}
	panic(fmt.Sprintf("forward: activation %v is no function of one number", a))
}
