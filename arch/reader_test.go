package arch_test

import (
	"testing"

	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/arch/archtest"
	"github.com/eigenhead/eigenhead/linalg"
)

// A weight read part by part is the weight, whether the file holds its rows in order
// or as llama.cpp turns them.
func TestReaderReadsWhatLoadDoes(t *testing.T) {
	hf := archtest.Llama(5, archtest.Small)
	for name, file := range map[string]opener{"llama": hf, "gguf": archtest.LlamaGGUF(archtest.Llama(5, archtest.Small), archtest.Small)} {
		m := mustOpen(t, file)
		for _, b := range m.Blocks {
			for _, l := range append(append([]arch.Linear{}, b.QKV...), b.Out, b.Up, b.Down) {
				whole := linalg.New32(l.Out, l.In)
				if err := l.Load(whole); err != nil {
					t.Fatal(err)
				}
				read := l.Reader()
				for _, rows := range []int{1, 3, l.Out} {
					for from := 0; from+rows <= l.Out; from += rows {
						for _, col := range []int{0, l.In / 2} {
							part := linalg.New32(rows, l.In-col)
							if err := read(part, from, col); err != nil {
								t.Fatal(err)
							}
							for i := range rows {
								for j, v := range part.Row(i) {
									if want := whole.Row(from + i)[col+j]; v != want {
										t.Fatalf("%s, %s: (%d, %d) is %g, want %g", name, l.Name(), from+i, col+j, v, want)
									}
								}
							}
						}
					}
				}
			}
		}
	}
}
