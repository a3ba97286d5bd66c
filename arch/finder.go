package arch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/eigenhead/eigenhead/checkpoint"
	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/linalg"
)

// finder looks tensors up by name and checks their shapes. It keeps the first
// error, so that a family can list its tensors top to bottom, and remembers
// what was used, so that leftOver can tell what was not.
type finder struct {
	c      *checkpoint.Checkpoint
	source string // of the configuration, for messages
	used   map[string]bool
	params int64
	ignore []string // parts of names of tensors that carry no weight
	err    error
}

func newFinder(c *checkpoint.Checkpoint, source string) *finder {
	return &finder{c: c, source: source, used: map[string]bool{}}
}

// has reports whether the tensor is there.
func (f *finder) has(name string) bool {
	_, ok := f.c.Tensor(name)
	return ok
}

// raw returns a tensor of the wanted shape; why says in the words of the
// configuration where the shape comes from.
func (f *finder) raw(name, why string, want ...int) *checkpoint.Tensor {
	if f.err != nil {
		return nil
	}
	t, ok := f.c.Tensor(name)
	if !ok {
		f.err = &xerr.Format{File: f.c.Path, What: "tensor " + quote(name), Found: "missing", Want: fmt.Sprintf("shape %v", want),
			Hint: fmt.Sprintf("%s and weights may come from different models, or the download is incomplete", f.source)}
		return nil
	}
	if !slices.Equal(t.Shape, want) {
		f.err = &xerr.Format{File: f.c.Path + ": tensor " + quote(name), What: fmt.Sprintf("shape %v", t.Shape),
			Want: fmt.Sprintf("%v (%s of %s)", want, why, f.source),
			Hint: fmt.Sprintf("%s and weights may come from different models", f.source)}
		return nil
	}
	f.use(t)
	return t
}

// tensor returns a tensor of numbers of the wanted shape.
func (f *finder) tensor(name, why string, want ...int) *checkpoint.Tensor {
	t := f.raw(name, why, want...)
	if f.err == nil && !t.Readable() {
		f.err = &xerr.Unsupported{File: f.c.Path + ": tensor " + quote(name), What: "type", Found: t.Type.String(),
			Want: "a type that can be read", Hint: "`eigenhead models` lists the types"}
		return nil
	}
	return t
}

// use remembers that a tensor is part of the model.
func (f *finder) use(t *checkpoint.Tensor) {
	if f.used[t.Name] {
		return
	}
	f.used[t.Name] = true
	n := int64(t.Elements())
	switch {
	case strings.HasSuffix(t.Name, "_blocks"):
		n *= 2 // MXFP4: two numbers to a byte
	case strings.HasSuffix(t.Name, "_scales"):
		n = 0
	}
	f.params += n
}

// matrix returns a weight stored [out, in].
func (f *finder) matrix(name, why string, out, in int) Weight {
	return Weight{Out: out, In: in, c: f.c, tensor: f.tensor(name, why, out, in)}
}

// vector returns a gain or bias of n values.
func (f *finder) vector(name, why string, n int) Vector {
	return Vector{N: n, c: f.c, tensor: f.tensor(name, why, n)}
}

// bias returns a bias if it is wanted, else nil; a bias that is there though the
// configuration says that there is none is an error, as nobody can tell which
// of the two is right.
func (f *finder) bias(name, why string, n int, wanted bool, key string) *Vector {
	if wanted {
		v := f.vector(name, why, n)
		return &v
	}
	if f.has(name) && f.err == nil {
		f.err = &xerr.Unsupported{File: f.c.Path, What: "tensor " + quote(name), Found: "present",
			Want: fmt.Sprintf("none, as %s of %s is false", key, f.source),
			Hint: "set the key to true if the model was trained with biases"}
		if key == "" {
			f.err = &xerr.Unsupported{File: f.c.Path, What: "tensor " + quote(name), Found: "present", Want: "none in this family"}
		}
	}
	return nil
}

// optional returns a bias if the file has it: GGUF has no key that tells.
func (f *finder) optional(name, why string, n int) *Vector {
	return f.bias(name, why, n, f.has(name), "")
}

// tying is how the output head relates to the embedding.
type tying int

const (
	tieNever    tying = iota // its own tensor, which must be there
	tieAlways                // the embedding, even where a copy was saved
	tieIfAbsent              // its own tensor if there is one (GGUF)
)

// head finds the output head.
func (f *finder) head(m *Model, name, why string, tied tying) {
	m.Tied = tied == tieAlways || tied == tieIfAbsent && !f.has(name)
	if !m.Tied {
		head := f.matrix(name, why, m.Vocab, m.Embedding.In)
		m.Head = &head
		return
	}
	m.Head = &m.Embedding
	if f.err != nil || !f.has(name) {
		return
	}
	params := f.params
	copied := f.matrix(name, why, m.Vocab, m.Embedding.In)
	f.params = params // a copy adds no parameter
	if f.err != nil {
		return
	}
	same, err := equal(copied, m.Embedding)
	if err != nil {
		f.err = err
	} else if !same {
		m.Warnings = append(m.Warnings, fmt.Sprintf("tensor %q differs from the embedding though tie_word_embeddings is true: the embedding is used, as the reference implementation does", name))
	}
}

// equal compares two weights of one shape, block by block.
func equal(a, b Weight) (bool, error) {
	const rows = 256
	bufA, bufB := linalg.New32(min(rows, a.Out), a.In), linalg.New32(min(rows, a.Out), a.In)
	for from := 0; from < a.Out; from += rows {
		n := min(rows, a.Out-from)
		x, y := bufA.RowSlice(0, n), bufB.RowSlice(0, n)
		if err := a.LoadRows(x, from); err != nil {
			return false, err
		}
		if err := b.LoadRows(y, from); err != nil {
			return false, err
		}
		if !slices.Equal(x.Data, y.Data) {
			return false, nil
		}
	}
	return true, nil
}

// arithmeticTensors are parts of names of tensors that change the numbers of a
// layer in ways that no family here has: ignoring them would be a guess.
var arithmeticTensors = []string{
	"lora_", "_exps", "ffn_gate_inp", "block_sparse_moe", ".experts.", "q_norm.", "k_norm.", "attn_q_norm", "attn_k_norm",
	"sinks", "weight_scale", "_blocks", "_scales", "qweight", "qzeros", "g_idx", ".absmax", "post_attention_norm", "post_ffw_norm",
	"feedforward_layernorm", "rope_freqs", "rope_factors",
}

// leftOver warns of tensors that no weight uses, and refuses those that are
// known to change the arithmetic.
func (f *finder) leftOver(m *Model) error {
	const shown = 5
	var extra []string
	more := 0
	for _, name := range f.c.Names() {
		if f.used[name] || containsAny(name, f.ignore) {
			continue
		}
		if containsAny(name, arithmeticTensors) {
			return &xerr.Unsupported{File: f.c.Path, What: "tensor " + quote(name), Found: "present",
				Want: "the tensors of family " + m.Family, Hint: "it changes the arithmetic of a layer in a way that is not supported in this family"}
		}
		if len(extra) < shown {
			extra = append(extra, quote(name))
		} else {
			more++
		}
	}
	if len(extra) > 0 {
		text := "tensors that the model does not use: " + strings.Join(extra, ", ")
		if more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		m.Warnings = append(m.Warnings, text)
	}
	m.Parameters = f.params
	return nil
}

func containsAny(name string, parts []string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(name, p) })
}

// linear returns a weight [out, in] that the file may store transposed.
func (f *finder) linear(name, why string, out, in int, transposed bool) Weight {
	if !transposed {
		return f.matrix(name, why, out, in)
	}
	return Weight{Out: out, In: in, c: f.c, tensor: f.tensor(name, why, in, out), transposed: true}
}

// withPrefix returns the prefix under which the first name is found, preferring
// the first of the list.
func (f *finder) withPrefix(name string, prefixes ...string) string {
	if i := slices.IndexFunc(prefixes, func(p string) bool { return f.has(p + name) }); i >= 0 {
		return prefixes[i]
	}
	return prefixes[0]
}
