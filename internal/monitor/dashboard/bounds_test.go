package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/auth"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
)

// TestListenersAreBounded: one page too many is told to come back; a place that is
// left is free again.
func TestListenersAreBounded(t *testing.T) {
	s := newSite(t).login(t)
	listen := func() *http.Response {
		t.Helper()
		answer, err := s.client.Get(s.URL + "/data/events")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = answer.Body.Close() })
		return answer
	}
	var last *http.Response
	for i := range maxListeners {
		if last = listen(); last.StatusCode != http.StatusOK {
			t.Fatalf("listener %d: status %d", i, last.StatusCode)
		}
	}
	over := listen()
	var said struct{ Error string }
	if err := json.NewDecoder(over.Body).Decode(&said); err != nil || over.StatusCode != http.StatusTooManyRequests ||
		over.Header.Get("Retry-After") == "" || !strings.Contains(said.Error, fmt.Sprint(maxListeners)) {
		t.Errorf("one too many: status %d, %v, %q, %v", over.StatusCode, over.Header, said.Error, err)
	}
	_ = last.Body.Close()
	for range 500 {
		if listen().StatusCode == http.StatusOK {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("a place that was left stays taken")
}

// TestTroubleGoesToTheLog: a store that cannot be read is one JSON line of the log
// that was given, and nothing of it is on the page.
func TestTroubleGoesToTheLog(t *testing.T) {
	st, err := store.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	h := Handler(st, &source{events: make(chan monitor.Event)}, auth.Everyone(), slog.New(slog.NewJSONHandler(&out, nil)))
	_ = st.Close()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/data/runs", nil))
	var line struct{ Level, Path, Error string }
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || line.Level != "ERROR" || line.Path != "/data/runs" || line.Error == "" {
		t.Errorf("log %q: %v", out.String(), err)
	}
	if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), line.Error) {
		t.Errorf("answer %d %s", w.Code, w.Body)
	}
}

func TestWrongMethods(t *testing.T) {
	s := newSite(t).login(t)
	for line, want := range map[string]string{"POST /": "405 GET, HEAD", "PUT /login": "405 GET, HEAD, POST", "GET /logout": "405 POST", "DELETE /data/runs/a/grid": "405 GET, HEAD",
		"POST /nothing": "404 "} {
		method, path, _ := strings.Cut(line, " ")
		req, err := http.NewRequest(method, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Sec-Fetch-Site", "same-origin")
		answer, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if got := fmt.Sprint(answer.StatusCode, " ", answer.Header.Get("Allow")); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

func TestLargeForm(t *testing.T) {
	s := newSite(t)
	answer, err := s.client.PostForm(s.URL+"/login", url.Values{"token": {strings.Repeat("x", maxForm)}})
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d, want 413", answer.StatusCode)
	}
}
