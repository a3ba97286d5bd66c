package page

import (
	"bytes"
	"html/template"
	"regexp"
	"strings"
	"testing"
)

func write(t *testing.T, p *Page) string {
	t.Helper()
	var out bytes.Buffer
	if err := p.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestHostileText checks that data cannot leave its script element, nor a title its own.
func TestHostileText(t *testing.T) {
	got := write(t, &Page{Title: `</title><script>alert(1)</script>`, Data: []byte(`{"a":"</script><!--<script>"}`)})
	if strings.Contains(got, "alert(1)</script>") || strings.Contains(got, "<!--") || strings.Count(got, "</script>") != 2 {
		t.Errorf("markup left its place:\n%s", got)
	}
	if !strings.Contains(got, `\u003c/script\u003e\u003c!--`) {
		t.Error("data is not escaped as JSON")
	}
}

// TestSelfContained checks that nothing is loaded from elsewhere.
func TestSelfContained(t *testing.T) {
	got := write(t, &Page{Title: "t", Body: template.HTML("<main id=main></main>")})
	for _, bad := range []string{"http:", "https:", "//cdn", "@import", "url(", "<img", "<iframe", "eval(", "innerHTML", "new Function"} {
		if strings.Contains(strings.ReplaceAll(got, "http://www.w3.org/2000/svg", ""), bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	if !strings.Contains(got, `default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:`) {
		t.Error("the content security policy is missing")
	}
}

func TestDataMustBeJSON(t *testing.T) {
	if err := (&Page{Data: []byte("{")}).Write(&bytes.Buffer{}); err == nil {
		t.Error("broken JSON was written")
	}
}

// TestContrast checks text colors against their ground in both themes: 4.5 is the
// least ratio that WCAG 2.1 AA allows.
func TestContrast(t *testing.T) {
	for _, block := range []string{":root {", ":root[data-theme=dark] {"} {
		_, css, _ := strings.Cut(pageCSS, block)
		css, _, _ = strings.Cut(css, "}")
		colors := map[string]float64{}
		for _, m := range regexp.MustCompile(`--([\w-]+): #([0-9a-f]{6})`).FindAllStringSubmatch(css, -1) {
			colors[m[1]] = luminance(m[2])
		}
		for _, name := range []string{"ink", "faint", "accent", "critical", "warn", "info"} {
			for _, ground := range []string{"bg", "panel"} {
				a, b := colors[name]+0.05, colors[ground]+0.05
				if r := max(a/b, b/a); !(r >= 4.5) {
					t.Errorf("%s --%s on --%s: contrast %.2f", block, name, ground, r)
				}
			}
		}
	}
}
