package checkpoint

import "fmt"

// Slice returns element i of a tensor along its first dimension as a tensor of
// its own: one expert of a stack of experts. It panics if there is no such
// element, or if the tensor's type packs numbers across its edges.
func (t *Tensor) Slice(i int) *Tensor {
	if len(t.Shape) < 2 || i < 0 || i >= t.Shape[0] {
		panic(fmt.Sprintf("checkpoint: element %d of %s %v", i, t.Name, t.Shape))
	}
	s := *t
	s.Shape = t.Shape[1:]
	s.Name = fmt.Sprintf("%s[%d]", t.Name, i)
	if t.scales != nil {
		s.scales = t.scales.bytes(i)
		part := t.bytes(i)
		s.begin, s.end = part.begin, part.end
		return &s
	}
	n := s.Elements()
	if t.kind == nil || n%t.kind.block != 0 {
		panic(fmt.Sprintf("checkpoint: an element of %s %v is no whole number of blocks of %v", t.Name, t.Shape, t.Type))
	}
	size := t.kind.size(n)
	s.begin, s.end = t.begin+i*size, t.begin+(i+1)*size
	return &s
}

// bytes returns element i of a tensor of bytes, or of a joined one's bytes.
func (t *Tensor) bytes(i int) *Tensor {
	s := *t
	s.Shape = t.Shape[1:]
	size := (t.end - t.begin) / t.Shape[0]
	s.begin, s.end = t.begin+i*size, t.begin+(i+1)*size
	return &s
}
