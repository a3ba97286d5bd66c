package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor/auth"
	"github.com/eigenhead/eigenhead/internal/monitor/ingest"
	"github.com/eigenhead/eigenhead/internal/monitor/pipeline"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
)

// serveHere serves every route of c in this process, with a short grace for bodies,
// and returns the address.
func serveHere(t *testing.T, c *serveCmd, guard *auth.Guard, grace time.Duration) string {
	t.Helper()
	s, err := store.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	p := pipeline.New(s, &pipeline.Options{Log: log})
	if err := p.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	ln, err := ingest.Listen("127.0.0.1:0", "", "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	metrics, endMetrics := c.telemetry(ctx, s, p, log)
	opts := c.bounds(p, log)
	opts.Grace = grace
	done := make(chan error, 1)
	go func() { done <- ingest.Serve(ctx, ln, c.routes(p, s, guard, metrics, log), opts) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		endMetrics()
		p.Close()
		_ = s.Close()
	})
	return ln.Addr().String()
}

// slowRequest sends a request's head and then a byte of its body now and then, and
// returns the answer's status once the server has hung up.
func slowRequest(addr, line string) (string, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	head := line + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 4000\r\n\r\ntoken="
	if _, err := io.WriteString(c, head); err != nil {
		return "", err
	}
	go func() {
		for range 3000 {
			time.Sleep(20 * time.Millisecond)
			if _, err := c.Write([]byte("x")); err != nil {
				return
			}
		}
	}()
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	in := bufio.NewReader(c)
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		return "", err
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return "", err
	}
	if _, err := in.ReadByte(); errors.Is(err, os.ErrDeadlineExceeded) || err == nil {
		return "", fmt.Errorf("%s, and the connection stays", res.Status)
	}
	return res.Status, nil
}

// TestSlowBodiesAreLetGo trickles a body into every part of the server, without a
// token: none holds its connection for longer than the grace.
func TestSlowBodiesAreLetGo(t *testing.T) {
	guard, _, err := auth.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	addr := serveHere(t, &serveCmd{}, guard, 300*time.Millisecond)
	for line, want := range map[string]string{
		"POST /login": "408", "POST /logout": "303", "GET /login": "200", "GET /": "303", "POST /nothing": "303", "POST /data/events": "401",
		"GET /metrics": "401", "POST /metrics": "405", "POST /healthz": "405", "GET /readyz": "", "POST /api/v1/runs/a/captures": "401", "PUT /api/": "401",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			if got, err := slowRequest(addr, line); err != nil || !strings.HasPrefix(got, want) {
				t.Errorf("%q, %v, want %s", got, err, want)
			}
		})
	}
}

// TestStreamsOutliveTheGrace: what bounds bodies does not end a stream of events.
func TestStreamsOutliveTheGrace(t *testing.T) {
	addr := serveHere(t, &serveCmd{}, auth.Everyone(), 100*time.Millisecond)
	for _, path := range []string{"/data/events", "/api/v1/events"} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		got, err := io.ReadAll(c)
		if !errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(string(got), "retry: 2000") || strings.Contains(string(got), "\r\n0\r\n") { // the last chunk
			t.Errorf("%s ended: %v after %q", path, err, got)
		}
	}
}

// TestRateIsForAllRoutes: --rate holds for pages as it does for the API.
func TestRateIsForAllRoutes(t *testing.T) {
	for _, path := range []string{"/login", "/data/runs", "/metrics", "/api/v1/runs"} {
		for rate, least := range map[float64]int{2: 10, 0: 0} {
			addr := serveHere(t, &serveCmd{Rate: rate}, auth.Everyone(), time.Second)
			refused := 0
			for range 30 {
				res, err := http.Get("http://" + addr + path)
				if err != nil {
					t.Fatal(err)
				}
				_ = res.Body.Close()
				if res.StatusCode == http.StatusTooManyRequests && res.Header.Get("Retry-After") != "" {
					refused++
				}
			}
			if refused < least || rate == 0 && refused > 0 {
				t.Errorf("%s at --rate %v: %d of 30 refused", path, rate, refused)
			}
		}
	}
}
