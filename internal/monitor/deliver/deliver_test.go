package deliver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/pipeline"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

var (
	_ pipeline.Deliverer = Log{}
	_ pipeline.Deliverer = (*Webhook)(nil)
	_ pipeline.Deliverer = (*Command)(nil)
)

var sample = monitor.Alert{ID: 7, Run: "a", Code: "max-logit", Severity: finding.Critical, Step: 1200, Where: "L3H5",
	Text: "L3H5 has a very large logit", Evidence: map[string]any{"value": 1200.0}, At: time.Unix(1e9, 0).UTC()}

func TestLog(t *testing.T) {
	var out bytes.Buffer
	l := Log{slog.New(slog.NewJSONHandler(&out, nil))}
	if err := l.Deliver(t.Context(), sample); err != nil {
		t.Fatal(err)
	}
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	for k, want := range map[string]any{"level": "ERROR", "msg": sample.Text, "run": "a", "code": "max-logit", "where": "L3H5", "step": 1200.0, "severity": "critical", "alert": 7.0} {
		if line[k] != want {
			t.Errorf("%s is %v, want %v", k, line[k], want)
		}
	}
}

// receiver answers with the statuses in turn, the last one forever.
func receiver(t *testing.T, each func(r *http.Request, body []byte), statuses ...int) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := int(n.Add(1)) - 1
		body, _ := io.ReadAll(r.Body)
		if each != nil {
			each(r, body)
		}
		status := statuses[min(i, len(statuses)-1)]
		if status == http.StatusFound || status == http.StatusTemporaryRedirect {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	return s, &n
}

func webhook(t *testing.T, address, secret string, opts WebhookOptions) *Webhook {
	t.Helper()
	opts.Pause = time.Millisecond
	w, err := NewWebhook(address, secret, &opts)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestWebhookIsSigned(t *testing.T) {
	now := time.Unix(1700000000, 0)
	check := func(r *http.Request, body []byte) {
		stamp := r.Header.Get(HeaderTimestamp)
		if got, want := r.Header.Get(HeaderSignature), Sign([]byte("s3cret"), stamp, body); got != want || stamp != "1700000000" {
			t.Errorf("signature %q at %q, want %q", got, stamp, want)
		}
		var m message
		if err := json.Unmarshal(body, &m); err != nil || m.Schema != Schema || m.Alert.ID != 7 || m.Alert.Evidence["value"] != 1200.0 {
			t.Errorf("body %s: %v", body, err)
		}
		if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" || len(r.Header.Get(HeaderDelivery)) != 32 {
			t.Errorf("%s with %v", r.Method, r.Header)
		}
	}
	s, n := receiver(t, check, http.StatusNoContent)
	w := webhook(t, s.URL+"/hook?token=abc", "s3cret", WebhookOptions{Now: func() time.Time { return now }})
	if err := w.Deliver(t.Context(), sample); err != nil || n.Load() != 1 {
		t.Errorf("%d requests, %v", n.Load(), err)
	}
	if name := w.Name(); strings.Contains(name, "abc") || name != webhook(t, s.URL+"/hook?token=abc", "", WebhookOptions{}).Name() || name == webhook(t, s.URL, "", WebhookOptions{}).Name() {
		t.Errorf("name %q must depend on the address and not show it", name)
	}
}

// TestSignature is a vector that any implementation of HMAC-SHA256 gives:
// printf '1.{}' | openssl dgst -sha256 -hmac key
func TestSignature(t *testing.T) {
	const want = "sha256=1ba6b8171186efc613e8bcc0cbdab2748f24984d7c5a84faa2637afa0e40d224"
	if got := Sign([]byte("key"), "1", []byte("{}")); got != want {
		t.Errorf("signature %s, want %s", got, want)
	}
}

func TestWebhookTriesAgain(t *testing.T) {
	for _, c := range []struct {
		name     string
		statuses []int
		requests int64
		fails    string
	}{
		{"at once", []int{200}, 1, ""},
		{"after two failures", []int{500, 503, 202}, 3, ""},
		{"too many requests", []int{429, 200}, 2, ""},
		{"never", []int{500}, 4, "attempt 4: answered 500"},
		{"refused for good", []int{403}, 1, "attempt 1: answered 403"},
		{"gone", []int{404, 200}, 1, "answered 404"},
		{"redirect", []int{302, 200}, 1, "a redirect, which is not followed"},
		{"redirect that keeps the method", []int{307, 200}, 1, "a redirect, which is not followed"},
	} {
		delivery := map[string]bool{}
		s, n := receiver(t, func(r *http.Request, _ []byte) {
			delivery[r.Header.Get(HeaderDelivery)] = true
			if r.URL.Path == "/elsewhere" {
				t.Errorf("%s: the redirect was followed", c.name)
			}
		}, c.statuses...)
		err := webhook(t, s.URL+"/secret-path", "", WebhookOptions{}).Deliver(t.Context(), sample)
		if n.Load() != c.requests || (err == nil) != (c.fails == "") || err != nil && (!strings.Contains(err.Error(), c.fails) || strings.Contains(err.Error(), "secret-path")) {
			t.Errorf("%s: %d requests, error %v; want %d, %q", c.name, n.Load(), err, c.requests, c.fails)
		}
		if len(delivery) != 1 {
			t.Errorf("%s: attempts with %d delivery ids, want one", c.name, len(delivery))
		}
	}
}

func TestWebhookHonorsRetryAfter(t *testing.T) {
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n.Add(1)
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer s.Close()
	if err := webhook(t, s.URL, "", WebhookOptions{}).Deliver(t.Context(), sample); err == nil || n.Load() != 1 {
		t.Errorf("%d requests, %v: an hour is for the caller to wait", n.Load(), err)
	}
	now := time.Unix(1700000000, 0).UTC()
	for text, want := range map[string]time.Duration{"7": 7 * time.Second, now.Add(5 * time.Second).Format(http.TimeFormat): 5 * time.Second, "-1": 0, "x": 0, "": 0, "99999999999999999999": 0} {
		if got := retryAfter(text, now); got != want {
			t.Errorf("Retry-After %q: %v, want %v", text, got, want)
		}
	}
}

func TestWebhookTimesOutAndStops(t *testing.T) {
	hang := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}))
	defer s.Close()
	defer close(hang)
	start := time.Now()
	if err := webhook(t, s.URL, "", WebhookOptions{Timeout: 20 * time.Millisecond, Attempts: 2}).Deliver(t.Context(), sample); err == nil || time.Since(start) > 30*time.Second {
		t.Errorf("a receiver that hangs: %v after %v", err, time.Since(start))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := webhook(t, s.URL, "", WebhookOptions{}).Deliver(ctx, sample); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the context's", err)
	}
}

func TestWebhookUnreachable(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	address := s.URL
	s.Close()
	if err := webhook(t, address+"/token", "", WebhookOptions{Attempts: 2}).Deliver(t.Context(), sample); err == nil || strings.Contains(err.Error(), "/token") {
		t.Errorf("error %v, want one without the path", err)
	}
}

func TestWebhookAddress(t *testing.T) {
	for _, address := range []string{"", "host", "ftp://host/", "http://", "file:///etc/passwd", "http://a b/", "://"} {
		_, err := NewWebhook(address, "", nil)
		var usage *xerr.Usage
		if !errors.As(err, &usage) {
			t.Errorf("%q: error %v, want a usage error", address, err)
		}
	}
	if _, err := NewWebhook("http://user:pass@/", "", nil); err == nil || strings.Contains(err.Error(), "pass") {
		t.Errorf("error %v shows the password", err)
	}
}

// TestCommandHelper is not a test: it is the program that TestCommand runs.
func TestCommandHelper(t *testing.T) {
	mode, file := os.Getenv("DELIVER_MODE"), os.Getenv("DELIVER_FILE")
	switch mode {
	case "":
		t.Skip("run by TestCommand")
	case "hang":
		time.Sleep(time.Minute)
	case "fail":
		os.Stderr.WriteString(strings.Repeat("x", 10000) + "the end")
		os.Exit(3)
	}
	body, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = os.WriteFile(file, body, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestCommand(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewCommand("'"+self+"' -test.run=TestCommandHelper", 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "alert.json")
	t.Setenv("DELIVER_FILE", file)
	t.Setenv("DELIVER_MODE", "write")
	if err := c.Deliver(t.Context(), sample); err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(file)
	var m message
	if err == nil {
		err = json.Unmarshal(body, &m)
	}
	if err != nil || m.Alert.Code != "max-logit" || !bytes.HasSuffix(body, []byte("\n")) {
		t.Errorf("standard input %q: %v", body, err)
	}
	t.Setenv("DELIVER_MODE", "fail")
	if err := c.Deliver(t.Context(), sample); err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "the end") || len(err.Error()) > 3000 {
		t.Errorf("error %v, want the exit status and the end of the output", err)
	}
	t.Setenv("DELIVER_MODE", "hang")
	c.timeout = 50 * time.Millisecond
	if err := c.Deliver(t.Context(), sample); err == nil || !strings.Contains(err.Error(), "still running after 50ms") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Deliver(ctx, sample); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}

func TestCommandLine(t *testing.T) {
	for line, want := range map[string][]string{
		"a b  c":             {"a", "b", "c"},
		`a "b c" 'd "e'`:     {"a", "b c", `d "e`},
		`a x"y z"w ''`:       {"a", "xy zw", ""},
		"a $(rm) ; | > `x`":  {"a", "$(rm)", ";", "|", ">", "`x`"},
		"\ta\n":              {"a"},
		`C:\dir\prog.exe -x`: {`C:\dir\prog.exe`, "-x"},
	} {
		if got, err := split(line); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v, want %q", line, got, err, want)
		}
	}
	for _, line := range []string{"", "  ", `a "b`, "''", "no-such-program-here x"} {
		_, err := NewCommand(line, 0)
		var usage *xerr.Usage
		if !errors.As(err, &usage) {
			t.Errorf("%q: error %v, want a usage error", line, err)
		}
	}
	if runtime.GOOS != "windows" {
		if _, err := NewCommand("true", 0); err != nil {
			t.Errorf("true: %v", err)
		}
	}
}
