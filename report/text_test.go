package report

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite golden files")

// golden compares with a file of testdata, or rewrites it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; run go test ./report -update and review\n%s", file, got)
	}
}

func text(t *testing.T, r *Report, o TextOptions) string {
	t.Helper()
	var out bytes.Buffer
	if err := WriteText(&out, r, o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

func TestText(t *testing.T) {
	for shape, r := range shapes() {
		for _, width := range []int{40, 60, 80, 120, 200} {
			name := fmt.Sprintf("%s at %d columns", shape, width)
			got := text(t, r, TextOptions{Width: width, Written: []string{"report.json", "report.html"}})
			if width == 80 || width == 120 && shape == "30x9" {
				golden(t, fmt.Sprintf("%s-%d.txt", shape, width), []byte(got))
			}
			lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
			for _, line := range lines {
				if n := cells.StringWidth(line); n > width {
					t.Errorf("%s: %d columns: %s", name, n, line)
				}
			}
			if width >= 80 && len(lines) > screenful+4 {
				t.Errorf("%s: %d lines", name, len(lines))
			}
			if strings.Contains(got, "\x1b") || strings.Contains(got, "NaN") {
				t.Errorf("%s: color or NaN in plain text", name)
			}
			colored := text(t, r, TextOptions{Width: width, Color: true, Written: []string{"report.json", "report.html"}})
			if !strings.Contains(colored, "\x1b[") || trimmed(sgr.ReplaceAllString(colored, "")) != got {
				t.Errorf("%s: color changes more than colors", name)
			}
		}
	}
}

// TestTextProperties: no line is wider than asked for, whatever the model's shape.
func TestTextProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kv := rapid.IntRange(1, 2).Draw(t, "KV heads")
		layers := rapid.SampledFrom([]int{1, 2, 3, 5, 31, 63}).Draw(t, "layers")
		r := sample(layers, kv*rapid.IntRange(1, 7).Draw(t, "heads per KV head"), kv, rapid.IntRange(2, 6).Draw(t, "tokens"))
		r.Source.Path = rapid.StringN(1, 60, 90).Draw(t, "name")
		width := rapid.IntRange(40, 220).Draw(t, "width")
		var out bytes.Buffer
		r.Model.Name, r.Input.Text = r.Source.Path, r.Source.Path
		if err := WriteText(&out, r, TextOptions{Width: width}); err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(out.String(), "\n") {
			if n := cells.StringWidth(line); n > width {
				t.Fatalf("%d columns at width %d: %q", n, width, line)
			}
			if strings.ContainsFunc(line, unicode.IsControl) {
				t.Fatalf("a control character reaches the terminal: %q", line)
			}
		}
	})
}

// trimmed drops blanks at line ends, which styles may enclose.
func trimmed(s string) string { return regexp.MustCompile(` +\n`).ReplaceAllString(s, "\n") }

func TestTextOfIll(t *testing.T) {
	golden(t, "ill.txt", []byte(text(t, ill(), TextOptions{Written: []string{"out.json"}})))
}

// TestTextOfLittle checks a report with next to nothing in it.
func TestTextOfLittle(t *testing.T) {
	got := text(t, &Report{Source: Source{Path: "cut.safetensors", Format: "capture"}, Model: Model{Family: "capture"}}, TextOptions{})
	if !strings.Contains(got, "no warning, 0 notes") {
		t.Errorf("got\n%s", got)
	}
}
