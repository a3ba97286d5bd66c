package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/monitortest"
)

// call sends a request and returns the status and the answer.
func (s *server) call(method, path, token string, body []byte) (int, string) {
	s.t.Helper()
	req, err := http.NewRequest(method, s.url+path, bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(data)
}

// interrupt stops the server as Ctrl-C does.
func (s *server) interrupt() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("an interrupted server: %v", err)
	}
	s.cmd = nil
}

func needsSymlinks(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no symbolic links without privileges, and no interrupts")
	}
}

// TestServe is what a person does on the first day, and on the second.
func TestServe(t *testing.T) {
	needsSymlinks(t)
	dir := filepath.Join(t.TempDir(), "monitor")
	s := newServer(t, dir)
	token := s.start()
	if len(token) < 40 {
		t.Fatalf("token %q", token)
	}
	k := monitor.Key{Run: "mine", Step: 200}
	data := monitortest.Capture(k, monitortest.Small, "NaN")
	if status, out := s.call("POST", "/api/v1/runs/mine/captures", token, data); status != 201 {
		t.Fatalf("%d %s", status, out)
	}
	if status, _ := s.call("POST", "/api/v1/runs/mine/captures", "", data); status != 401 {
		t.Errorf("without a token: %d", status)
	}
	if status, page := s.call("GET", "/login", "", nil); status != 200 || !strings.Contains(page, "<form") {
		t.Errorf("login page: %d", status)
	}
	if status, _ := s.call("GET", "/healthz", "", nil); status != 200 {
		t.Errorf("healthz: %d", status)
	}
	second := exec.Command(s.exe, "serve", "--data", dir, "--listen", "127.0.0.1:0")
	out, err := second.CombinedOutput()
	if coded, ok := err.(*exec.ExitError); !ok || coded.ExitCode() != exitUsage || !strings.Contains(string(out), "in use by eigenhead serve, process") {
		t.Errorf("a second server: %v, %s", err, out)
	}
	s.interrupt()

	if shown := s.start(); shown != "" {
		t.Errorf("the token is shown again: %q", shown)
	}
	var list struct{ Alerts []monitor.Alert }
	for range 500 {
		_, text := s.call("GET", "/api/v1/runs/mine/alerts", token, nil)
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if len(list.Alerts) > 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if len(list.Alerts) != 1 || list.Alerts[0].Code != "non-finite" {
		t.Errorf("alerts %+v", list.Alerts)
	}
	s.interrupt()

	s.args = append(s.args, "--new-token")
	fresh := s.start()
	if status, _ := s.call("GET", "/api/v1/runs", token, nil); status != 401 || fresh == "" || fresh == token {
		t.Errorf("after --new-token the old one gives %d; the new one is %q", status, fresh)
	}
	if status, _ := s.call("GET", "/api/v1/runs", fresh, nil); status != 200 {
		t.Errorf("the new token gives %d", status)
	}
	s.interrupt()
}
