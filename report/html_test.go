package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/measure"
)

func html(t *testing.T, r *Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := WriteHTML(&out, r); err != nil {
		t.Fatal(err)
	}
	if dir := os.Getenv("EIGENHEAD_PAGES"); dir != "" { // to look at them
		if err := os.WriteFile(filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "-")+".html"), out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

// dataOf returns the page's own data.
func dataOf(t *testing.T, page string) map[string]any {
	t.Helper()
	_, data, _ := strings.Cut(page, `<script type="application/json" id="data">`)
	data, _, _ = strings.Cut(data, "</script>")
	var v map[string]any
	if err := json.Unmarshal([]byte(data), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestHTMLSize(t *testing.T) {
	for name, r := range shapes() {
		t.Run(name, func(t *testing.T) {
			page := html(t, r)
			if len(page) > 10<<20 {
				t.Errorf("%d bytes", len(page))
			}
			data := dataOf(t, page)
			if n := len(data["heads"].([]any)); n != len(r.Heads) {
				t.Errorf("%d heads in the data, want %d", n, len(r.Heads))
			}
			if bins := len(data["x"].([]any)); bins > measure.ProfileBins || bins < min(r.Input.Tokens, 16) {
				t.Errorf("profiles of %d bins", bins)
			}
		})
	}
}

// TestHTMLParts is the golden file of what the template writes; scripts, styles and
// data are left out.
func TestHTMLParts(t *testing.T) {
	page := html(t, ill())
	for _, part := range []string{"(?s)<style>.*?</style>", "(?s)<script.*?</script>"} {
		page = regexp.MustCompile(part).ReplaceAllString(page, "")
	}
	golden(t, "ill.html", []byte(page))
}

// TestHTMLHostile checks names from files in every place of the page.
func TestHTMLHostile(t *testing.T) {
	r := ill()
	bad := `"></script><script>alert(1)</script><!--`
	r.Source.Path, r.Model.Name, r.Input.Text, r.Warnings = bad, bad, bad, []string{bad}
	r.Findings[0].Text, r.Findings[0].Where = bad, bad
	r.Omitted = append(r.Omitted, measure.Omission{Measure: bad, Where: bad, Reason: bad})
	page := html(t, r)
	if strings.Contains(page, "<script>alert") || strings.Contains(page, "<!--") {
		t.Error("text of a file became markup")
	}
	if n := strings.Count(page, "</script>"); n != 2 {
		t.Errorf("%d script elements end, want 2", n)
	}
	dataOf(t, page)
}

func TestHTMLIsSelfContained(t *testing.T) {
	page := strings.ReplaceAll(html(t, sample(3, 3, 3, 11)), "http://www.w3.org/2000/svg", "")
	for _, bad := range []string{"http://", "https://", "<link rel=\"stylesheet\"", "<img", "@import", "innerHTML"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
}

func TestHTMLOfLittle(t *testing.T) {
	if data := dataOf(t, html(t, &Report{})); len(data["heads"].([]any)) != 0 {
		t.Error("heads out of nothing")
	}
}

func TestMergedKeepsSums(t *testing.T) {
	p := sample(1, 1, 1, 300).Heads[0].Profile
	for _, bins := range []int{1, 7, 128, 256} {
		m := merged(p, bins)
		if len(m.Start) > bins || len(m.Start) != len(m.Entropy) || len(m.Start) != len(m.Channels[0].Key) {
			t.Fatalf("%d bins: %d starts, %d entropies", bins, len(m.Start), len(m.Entropy))
		}
		sum := 0.0
		for _, w := range m.Channels[0].Query {
			sum += w
		}
		if !(sum > 0.999999 && sum < 1.000001) {
			t.Errorf("%d bins: weights add to %g", bins, sum)
		}
	}
}

func TestThin(t *testing.T) {
	for _, n := range []int{0, 1, 2, 63, 64, 65, 200, 1000} {
		for _, limit := range []int{0, 1, 16, 64} {
			at := thin(n, limit)
			if len(at) > limit && n > limit || n <= limit && len(at) != n {
				t.Errorf("thin(%d, %d) has %d indices", n, limit, len(at))
			}
			for i, v := range at {
				if v < 0 || v >= n || i > 0 && v <= at[i-1] {
					t.Errorf("thin(%d, %d) = %v", n, limit, at)
				}
			}
		}
	}
}
