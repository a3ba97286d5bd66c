package capture

import "slices"

// logitsName is the tensor that belongs to the sequence and not to a layer.
const logitsName = "logits_last"

// HasLogits reports whether the capture holds the logits after the last token.
func (c *Capture) HasLogits() bool { return c.logits != nil }

// LogitsLast returns the logits after the last token, one for each token id: nil
// where the capture has none. NaN and infinity are no error, as in other tensors.
// Errors: mmap.ErrShrunk.
func (c *Capture) LogitsLast() ([]float64, error) { return c.read(c.logits) }

// checkLogits refuses a shape that is not [vocab], and logits too few for the ids.
func (c *Capture) checkLogits() error {
	if c.logits == nil {
		return nil
	}
	if err := c.shape(c.logits, "vocab", -1); err != nil {
		return err
	}
	if n := c.logits.Shape[0]; len(c.Meta.Tokens) > 0 && slices.Max(c.Meta.Tokens) >= n {
		return c.bad(logitsName, "shape", c.logits.Shape, "more logits than the largest id in tokens, one for each id")
	}
	return nil
}

// LogitsLast appends the logits after the last token, [vocab]. It may come before,
// between or behind the layers, once. Errors: the system's.
func (w *Writer) LogitsLast(logits []float32) error {
	if len(logits) == 0 {
		panic("capture: no logits")
	}
	return w.out.Float32s(logitsName, []int{len(logits)}, logits)
}
