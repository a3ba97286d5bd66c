package report

import (
	"bytes"
	"strings"
	"testing"
)

func TestStudySetsModelsSideBySide(t *testing.T) {
	a, b := sample(2, 2, 1, 64), sample(3, 4, 2, 64)
	a.Source.Path, b.Source.Path = "first", strings.Repeat("long-name-", 5)
	for i := range a.KVHeads {
		v := a.KVHeads[i].Measures["key.incoherence"]
		v.Value, v.Null.Mean = float64(1+2*i), 1.5
		a.KVHeads[i].Measures["key.incoherence"] = v
	}
	delete(b.Heads[0].Measures, "energy.k90")
	var out bytes.Buffer
	if err := WriteStudy(&out, []*Report{a, b}, TextOptions{Width: 120}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 4 || !strings.Contains(lines[1], "2 (1.5)") || !strings.Contains(lines[2], "…") || !strings.Contains(lines[3], "about 1.5") {
		t.Errorf("got\n%s", out.String())
	}
}
