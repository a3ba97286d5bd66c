package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

// TestServeMetrics asks a real server for /metrics, with and without its token, and
// lets it push: the last numbers come when it is interrupted.
func TestServeMetrics(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process")
	}
	var pushed atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil && r.URL.Path == "/v1/metrics" && len(body) > 100 {
			pushed.Add(1)
		}
	}))
	defer receiver.Close()
	s := newServer(t, t.TempDir(), "--otlp", receiver.URL, "--otlp-every", "1h")
	token := s.start()
	for _, c := range []struct {
		token string
		code  int
		holds string
	}{
		{"", http.StatusUnauthorized, ""},
		{"eh_wrong", http.StatusUnauthorized, ""},
		{token, http.StatusOK, "\neigenhead_queue_length 0\n"},
	} {
		req, err := http.NewRequest("GET", s.url+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.token != "" {
			req.Header.Set("Authorization", "Bearer "+c.token)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != c.code || !strings.Contains(string(body), c.holds) {
			t.Errorf("token %q: %s, %v, want %d with %q in it", c.token, res.Status, err, c.code, c.holds)
		}
	}
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Skip("no interrupts here:", err)
	}
	_ = s.cmd.Wait()
	if n := pushed.Load(); n != 1 {
		t.Errorf("%d pushes, want the one at the end", n)
	}
}
