package checkpoint

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// piece is one part of a split GGUF with a tensor of one number.
func piece(no, count byte, total uint32, tensor string, value byte) gguf {
	g := start(3, 1, 3).str("split.no").u32(2).raw(no, 0).str("split.count").u32(2).raw(count, 0).
		str("split.tensors.count").u32(5, total).tensor(tensor, 0, 0, 1).data(32, 4)
	g[len(g)-1] = value
	return g
}

const one, two, three = "w-00001-of-00003.gguf", "w-00002-of-00003.gguf", "w-00003-of-00003.gguf"

func whole() memory {
	return memory{one: piece(0, 3, 3, "a", 0x40), two: piece(1, 3, 3, "b", 0x41), three: piece(2, 3, 3, "c", 0x42)}
}

func TestSplit(t *testing.T) {
	for _, given := range []string{"", one, two, three} {
		c, err := open("m", whole(), given)
		if err != nil {
			t.Fatalf("%q: %v", given, err)
		}
		readEverything(t, c)
		for name, want := range map[string]float32{"a": 2, "b": 8, "c": 32} {
			if got := floats(t, c, name); got[0] != want {
				t.Errorf("%q: %s is %g, want %g", given, name, got[0], want)
			}
		}
		if n, err := c.KV().Uint("split.no"); n != 0 || err != nil || len(c.parts) != 3 {
			t.Errorf("%q: metadata of part %d, %d parts", given, n, len(c.parts))
		}
	}
}

func TestSplitErrors(t *testing.T) {
	other := func(name string, g gguf) func(memory) { return func(m memory) { m[name] = g } }
	for _, in := range []struct {
		name, given string
		change      func(memory)
		want        string
	}{
		{"part missing", one, func(m memory) { delete(m, two) }, two},
		{"part missing, folder", "", func(m memory) { delete(m, one) }, one},
		{"two models in the folder", "", other("x-00001-of-00003.gguf", piece(0, 3, 1, "a", 0)), "4 .gguf files"},
		{"part of another number", one, other(two, piece(2, 3, 3, "b", 0)), `"split.no": 2, want 1`},
		{"part of another count", one, other(two, piece(1, 2, 3, "b", 0)), `"split.count": 2, want 3`},
		{"count against the name", one, other(one, piece(0, 2, 3, "a", 0)), "split.count: 2, want 3"},
		{"part that is none", one, other(two, start(3, 0, 0)), `"split.no": missing`},
		{"tensor twice", one, other(two, piece(1, 3, 3, "a", 0)), "also in " + one},
		{"too few tensors", one, other(one, piece(0, 3, 9, "a", 0)), `"split.tensors.count": 9, want 3`},
		{"part cut off", one, func(m memory) { m[three] = m[three][:40] }, three},
		{"part of another format", one, other(three, gguf("not a model at all")), three},
	} {
		m := whole()
		in.change(m)
		c, err := open("m", m, in.given)
		if err == nil || !strings.Contains(err.Error(), in.want) || !xerr.Input(err) {
			t.Errorf("%s: error %v, want one with %q", in.name, err, in.want)
		}
		if c != nil {
			t.Errorf("%s: a checkpoint beside the error", in.name)
		}
	}
}

func FuzzSplit(f *testing.F) {
	m := whole()
	f.Add(slices.Concat(m[one]), slices.Concat(m[two]))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		m := maps.Clone(m)
		m[one], m[two] = a, b
		c, err := open("m", m, one)
		if err == nil {
			readEverything(t, c)
		} else if !xerr.Input(err) {
			t.Fatalf("%v is of type %T", err, err)
		}
	})
}
