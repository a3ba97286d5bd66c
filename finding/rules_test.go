package finding

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/measure"
)

// TestRules runs the cases of testdata. Each file holds a table and, after a line
// "want", the findings in order:
//
//	model tokens=512 qk_norm causal
//	L0H1 attention.sink=0.7/0.011~0.002   value / null mean ~ null spread
//	overlap L0H1 2 -0.95                  closest head of the layer, cosine
//	nonfinite L0H1 q 5 3 NaN              tensor, token, column, value
//	want
//	info sink-head L0H1: part of the text
func TestRules(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < len(All) {
		t.Fatalf("found %d rule tests, want one for each of the %d rules (%v)", len(files), len(All), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			in, want := readCase(t, file)
			got := Run(in)
			for i := 0; i < max(len(got), len(want)); i++ {
				if i >= len(got) {
					t.Errorf("missing: %s", want[i])
					continue
				}
				f := got[i]
				line := fmt.Sprintf("%s %s %s", f.Severity, f.Code, f.Where)
				if i >= len(want) {
					t.Errorf("unexpected: %s: %s", line, f.Text)
					continue
				}
				place, part, _ := strings.Cut(want[i], ": ")
				if line != place || !strings.Contains(f.Text, part) {
					t.Errorf("finding %d: got  %s: %s\nwant %s", i, line, f.Text, want[i])
				}
			}
		})
	}
}

func readCase(t *testing.T, file string) (*Input, []string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	in := &Input{Table: &measure.Table{}, Model: Model{Tokens: 512, Causal: true}}
	var want []string
	inWant := false
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		switch {
		case line == "" || line[0] == '#':
		case line == "want":
			inWant = true
		case inWant:
			want = append(want, line)
		default:
			if err := in.read(strings.Fields(line)); err != nil {
				t.Fatalf("%s:%d: %v", file, n, err)
			}
		}
	}
	if !inWant {
		t.Fatalf("%s: has no line \"want\"", file)
	}
	return in, want
}

func (in *Input) read(words []string) error {
	table := in.Table
	switch words[0] {
	case "model":
		for _, w := range words[1:] {
			name, value, _ := strings.Cut(w, "=")
			switch name {
			case "qk_norm":
				in.Model.QKNorm = true
			case "tokens":
				n, err := strconv.Atoi(value)
				if err != nil {
					return err
				}
				in.Model.Tokens = n
			default:
				return fmt.Errorf("unknown model word %q", w)
			}
		}
	case "overlap":
		layer, index := Place(words[1])
		for i := range table.Heads {
			if h := &table.Heads[i]; h.Layer == layer && h.Head == index {
				other, _ := strconv.Atoi(words[2])
				cosine, err := strconv.ParseFloat(words[3], 64)
				h.Overlap = &measure.Overlap{Head: other, Cosine: cosine}
				return err
			}
		}
		return fmt.Errorf("no head %s", words[1])
	case "nonfinite":
		token, _ := strconv.Atoi(words[3])
		column, _ := strconv.Atoi(words[4])
		table.NonFinite = append(table.NonFinite, measure.NonFinite{
			Where: words[1], Tensor: words[2], Token: token, Column: column, Value: words[5]})
	default:
		return in.readMeasures(words)
	}
	return nil
}

func (in *Input) readMeasures(words []string) error {
	values := make(map[string]measure.Value)
	for _, w := range words[1:] {
		name, text, ok := strings.Cut(w, "=")
		if !ok {
			return fmt.Errorf("%q is not name=value", w)
		}
		number, null, hasNull := strings.Cut(text, "/")
		v := measure.Value{}
		var err error
		if v.Value, err = strconv.ParseFloat(number, 64); err != nil {
			return err
		}
		if hasNull {
			mean, sd, _ := strings.Cut(null, "~")
			v.Null = &measure.Null{Kind: "table"}
			if v.Null.Mean, err = strconv.ParseFloat(mean, 64); err != nil {
				return err
			}
			if v.Null.SD, _ = strconv.ParseFloat(sd, 64); v.Null.SD > 0 {
				z := (v.Value - v.Null.Mean) / v.Null.SD
				v.Z = &z
			}
		}
		values[name] = v
	}
	layer, index := Place(words[0])
	switch {
	case layer < 0:
		return fmt.Errorf("%q is no place", words[0])
	case index < 0:
		in.Table.Layers = append(in.Table.Layers, measure.LayerResult{Layer: layer, Measures: values})
	case strings.Contains(words[0], "KV"):
		in.Table.KVHeads = append(in.Table.KVHeads, measure.KVResult{Layer: layer, KVHead: index, Measures: values})
	default:
		in.Table.Heads = append(in.Table.Heads, measure.HeadResult{ID: head.ID{Layer: layer, Head: index}, Measures: values})
	}
	return nil
}
