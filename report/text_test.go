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
			if width >= 80 && len(lines) > screenful+6 {
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
