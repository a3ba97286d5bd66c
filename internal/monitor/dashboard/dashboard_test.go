package dashboard

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

var pagePaths = []string{"/", "/runs/a", "/runs/b", "/runs/a?measure=attention.entropy&step=300&where=L0H1&show=peers", "/runs/a/alerts", "/runs/a/alerts?severity=critical&state=open",
	"/compare", "/compare?a=a", "/compare?a=a&b=b"}

var dataPaths = []string{"/data/runs", "/data/runs/a/head", "/data/runs/a/scalars", "/data/runs/a/alerts", "/data/runs/a/alerts?page=1",
	"/data/runs/a/place?where=L1H2&step=500&sample=0", "/data/runs/a/grid?measure=attention.max_logit&sample=0"}

func TestNothingWithoutLogin(t *testing.T) {
	s := newSite(t)
	for _, path := range pagePaths {
		answer, body := s.get(t, path)
		if to := answer.Header.Get("Location"); answer.StatusCode != http.StatusSeeOther || to != "/login?next="+url.QueryEscape(path) || strings.Contains(body, "max-logit") {
			t.Errorf("%s: status %d to %q", path, answer.StatusCode, to)
		}
	}
	for _, path := range append(dataPaths, "/data/events") {
		if answer, _ := s.get(t, path); answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: status %d, want 401", path, answer.StatusCode)
		}
	}
}

func TestLogin(t *testing.T) {
	s := newSite(t)
	answer, err := s.client.PostForm(s.URL+"/login", url.Values{"token": {"wrong"}, "next": {"/runs/a"}})
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized || len(answer.Cookies()) != 0 {
		t.Errorf("a wrong token: status %d, cookies %v", answer.StatusCode, answer.Cookies())
	}
	s.login(t)
	if answer, _ := s.get(t, "/login?next=/compare"); answer.Header.Get("Location") != "/compare" {
		t.Errorf("a reader who is logged in goes to %q, want /compare", answer.Header.Get("Location"))
	}
	foreign, _ := http.NewRequest("POST", s.URL+"/logout", nil)
	foreign.Header.Set("Sec-Fetch-Site", "cross-site")
	if answer, err := s.client.Do(foreign); err != nil || answer.StatusCode != http.StatusForbidden {
		t.Errorf("another site logs the reader out: %v, %v", answer, err)
	}
	if answer, err := s.client.Post(s.URL+"/logout", "", nil); err != nil || answer.StatusCode != http.StatusSeeOther {
		t.Fatalf("logout: %v, %v", answer, err)
	}
	if answer, _ := s.get(t, "/"); answer.StatusCode != http.StatusSeeOther {
		t.Errorf("after logout: status %d", answer.StatusCode)
	}
}

func TestLoginGoesNowhereElse(t *testing.T) {
	for next, want := range map[string]string{"": "/", "/runs/a?step=1": "/runs/a?step=1", "//evil.example": "/", "https://evil.example": "/", `/\evil.example`: "/",
		"/\tx": "/", "javascript:alert(1)": "/", "runs": "/", "/data/events": "/", "/%2f/evil": "/%2f/evil"} {
		if got := local(next); got != want {
			t.Errorf("local(%q) = %q, want %q", next, got, want)
		}
	}
}

// TestPagesAreSafe checks every page: a policy without inline anything, nothing in
// the page that the policy would refuse, and no text of a client that became markup.
func TestPagesAreSafe(t *testing.T) {
	s := newSite(t).login(t)
	inline := regexp.MustCompile(`(?i)<script(?:>| [^>]*>)|<[a-z][^<>]*\s(?:on\w+|style)=|javascript:|<img|<style|<iframe`)
	for _, path := range pagePaths {
		answer, body := s.get(t, path)
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d\n%s", path, answer.StatusCode, body)
		}
		p := answer.Header.Get("Content-Security-Policy")
		if !strings.Contains(p, "default-src 'none'; script-src 'self'; style-src 'self'") || strings.Contains(p, "unsafe") || strings.Contains(p, "http") {
			t.Errorf("%s: policy %q", path, p)
		}
		for _, found := range inline.FindAllString(body, -1) {
			if !strings.HasPrefix(found, `<script src="/static/`) && found != `<script type="application/json" id="data">` {
				t.Errorf("%s: holds %q", path, found)
			}
		}
		if strings.Contains(body, "<script>alert") {
			t.Errorf("%s: a client's text is markup", path)
		}
	}
}

func TestDataIsSafe(t *testing.T) {
	s := newSite(t).login(t)
	for _, path := range dataPaths[:len(dataPaths)-1] {
		answer, body := s.get(t, path)
		if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "application/json" || answer.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: status %d, %v", path, answer.StatusCode, answer.Header)
		}
		var v map[string]any
		if err := json.Unmarshal([]byte(body), &v); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if html, _ := v["html"].(string); strings.Contains(html, "<script") || strings.Contains(html, "<img") {
			t.Errorf("%s: a client's text is markup: %s", path, html)
		}
	}
}

func TestWrongAddresses(t *testing.T) {
	s := newSite(t).login(t)
	for path, want := range map[string]int{"/runs/none": 404, "/runs/..%2f..%2fetc": 404, "/runs/A": 404, "/nothing": 404, "/data/runs/none/grid?measure=x": 404,
		"/data/runs/a/grid": 400, "/data/runs/a/grid?measure=attention.entropy&sample=x": 400, "/data/runs/a/grid?measure=none": 200,
		"/data/runs/a/place?where=L1H2&step=501&sample=0": 404, "/data/runs/a/place?where=<b>&step=500&sample=0": 400, "/compare?a=none&b=a": 200} {
		if answer, _ := s.get(t, path); answer.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, answer.StatusCode, want)
		}
	}
}

func TestStaticFilesAreKept(t *testing.T) {
	s := newSite(t) // the login page needs them, so no session does
	_, body := s.get(t, "/login")
	files := regexp.MustCompile(`/static/[\w.-]+`).FindAllString(body, -1)
	if len(files) != 4 {
		t.Fatalf("the login page names %q", files)
	}
	for _, f := range files {
		if answer, text := s.get(t, f); answer.StatusCode != 200 || !strings.Contains(answer.Header.Get("Cache-Control"), "immutable") || len(text) < 100 {
			t.Errorf("%s: status %d, %v", f, answer.StatusCode, answer.Header)
		}
	}
}

// TestColorsAreShared keeps every color where internal/page tests its contrast.
func TestColorsAreShared(t *testing.T) {
	if found := regexp.MustCompile(`#[0-9a-fA-F]{3,8}\b|rgb\(|hsl\(`).FindString(mustRead("dashboard.css")); found != "" {
		t.Errorf("dashboard.css has a color of its own: %s", found)
	}
}

func TestScriptsUseNoMarkup(t *testing.T) {
	for _, name := range scripts {
		for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "http://", "https://"} {
			if strings.Contains(mustRead(name), bad) {
				t.Errorf("%s uses %s", name, bad)
			}
		}
	}
}

func TestEvents(t *testing.T) {
	s := newSite(t).login(t)
	answer, err := s.client.Get(s.URL + "/data/events?run=a")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if got := answer.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("content type %q", got)
	}
	s.source.events <- monitor.Event{Kind: monitor.AlertRaised, Run: "b", Step: 1}
	s.source.events <- monitor.Event{Kind: monitor.AlertRaised, Run: "a", Step: 2, Alert: &monitor.Alert{Code: "x", Text: "two\nlines", Evidence: map[string]any{"secret": 1}}}
	close(s.source.events)
	var lines []string
	read := make(chan bool)
	go func() {
		for scan := bufio.NewScanner(answer.Body); scan.Scan(); {
			if strings.HasPrefix(scan.Text(), "data: ") {
				lines = append(lines, scan.Text())
			}
		}
		close(read)
	}()
	select {
	case <-read: // the end of events ends the answer
	case <-time.After(10 * time.Second):
		t.Fatal("the answer does not end")
	}
	if len(lines) != 1 || !strings.Contains(lines[0], `"step":2`) || !strings.Contains(lines[0], `two\nlines`) || strings.Contains(lines[0], "secret") {
		t.Errorf("got %q", lines)
	}
}
