package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/analyze"
	"github.com/eigenhead/eigenhead/internal/monitor/monitortest"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
)

// server is a real process that can be killed and started again on its port.
type server struct {
	t    *testing.T
	exe  string
	args []string
	cmd  *exec.Cmd
	url  string
	log  *os.File
}

func newServer(t *testing.T, dir string, more ...string) *server {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(t.TempDir(), "eigenhead") // testscript.Main goes by the name
	if err := os.Symlink(self, exe); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, exe: exe, log: log, args: append([]string{"serve", "--data", dir}, more...)}
	t.Cleanup(func() {
		if s.cmd != nil {
			_ = s.cmd.Process.Kill()
			_ = s.cmd.Wait()
		}
		_ = log.Close()
		if data, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("the server's log ends:\n%s", data[max(0, len(data)-4000):])
		}
	})
	return s
}

// start runs the server and returns the token that it prints, if it does.
func (s *server) start() (token string) {
	s.t.Helper()
	listen := "127.0.0.1:0"
	if s.url != "" {
		listen = strings.TrimPrefix(s.url, "http://")
	}
	s.cmd = exec.Command(s.exe, append(s.args, "--listen", listen)...)
	s.cmd.Stderr = s.log
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "token: "); ok {
			token = text
			continue
		}
		s.url = lines.Text()
		return token
	}
	s.t.Fatalf("the server printed no URL: %v", s.cmd.Wait())
	return ""
}

// kill ends the process as a power cut would.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// TestKilledServer sends captures from eight clients while the server is killed five
// times. Every acknowledged snapshot is there once, with the measures of its bytes;
// the database is sound; each alert was delivered. EIGENHEAD_KILL_CAPTURES=5000 is
// the size that we promise; without it the test is smaller.
func TestKilledServer(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills processes")
	}
	if runtime.GOOS == "windows" {
		t.Skip("no symbolic links without privileges")
	}
	total, kills := 240, 5
	if text := os.Getenv("EIGENHEAD_KILL_CAPTURES"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		total = n
	}
	box := newMailbox(t)
	dir := t.TempDir()
	s := newServer(t, dir, "--rate", "0", "--webhook", box.url, "--no-auth")
	s.start()
	load := &load{url: s.url, total: int64(total), acked: map[monitor.Key]string{}}
	var clients sync.WaitGroup
	for c := range 8 {
		clients.Go(func() { load.client(uint64(c)) })
	}
	r := rand.New(rand.NewPCG(1729, 0))
	for k := range kills {
		until := int64(total*(k+1)/(kills+1)) + r.Int64N(5)
		for load.taken.Load() < until {
			time.Sleep(time.Millisecond)
		}
		s.kill()
		s.start()
	}
	clients.Wait()
	load.wait(t)
	s.kill() // once more, with nothing under way
	s.start()
	box.settle(t, s.url)
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("interrupted server: %v", err)
	}
	inspect(t, dir, load, box, kills)
}

// load is what the clients send and what was acknowledged.
type load struct {
	url   string
	total int64
	next  atomic.Int64
	taken atomic.Int64
	given atomic.Int64 // up after the first failure

	mu    sync.Mutex
	acked map[monitor.Key]string // SHA-256 that the server answered
}

// body is the capture of a key: some have a NaN, so that there are alerts.
func body(k monitor.Key) []byte {
	poison := ""
	if k.Step%97 == 50 {
		poison = "NaN"
	}
	return monitortest.Capture(k, monitortest.Small, poison)
}

// client sends captures of two runs until none is left. Nine of ten it sends until
// they are acknowledged; one of ten it gives up after the first failure.
func (l *load) client(seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	for {
		i := l.next.Add(1) - 1
		if i >= l.total {
			return
		}
		k := monitor.Key{Run: []string{"left", "right"}[i%2], Step: i / 2}
		for !l.send(k) {
			if i%10 == 9 {
				l.given.Add(1)
				break
			}
			time.Sleep(time.Duration(5+r.IntN(20)) * time.Millisecond)
		}
	}
}

func (l *load) send(k monitor.Key) bool {
	res, err := http.Post(l.url+"/api/v1/runs/"+k.Run+"/captures", "application/octet-stream", bytes.NewReader(body(k)))
	if err != nil {
		return false
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	var snap monitor.Snapshot
	if err != nil || res.StatusCode > 201 || json.Unmarshal(data, &snap) != nil {
		return false
	}
	l.mu.Lock()
	l.acked[k] = snap.SHA256
	l.mu.Unlock()
	l.taken.Add(1)
	return true
}

// wait returns when everything is measured.
func (l *load) wait(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Minute)
	for time.Now().Before(deadline) {
		waiting := 0
		for _, run := range []string{"left", "right"} {
			res, err := http.Get(l.url + "/api/v1/runs/" + run + "/snapshots")
			if err != nil {
				t.Fatal(err)
			}
			var list struct{ Snapshots []monitor.Snapshot }
			err = json.NewDecoder(res.Body).Decode(&list)
			_ = res.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			for _, snap := range list.Snapshots {
				if snap.State == monitor.Received {
					waiting++
				}
			}
		}
		if waiting == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("captures are still waiting for their measures")
}

// inspect looks into the store that the server left.
func inspect(t *testing.T, dir string, l *load, box *mailbox, kills int) {
	t.Helper()
	ctx := context.Background()
	s, err := store.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	there := map[monitor.Key]bool{}
	for _, run := range []string{"left", "right"} {
		snaps, err := s.Snapshots(ctx, run, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, snap := range snaps {
			if there[snap.Key] {
				t.Errorf("%v is there twice", snap.Key)
			}
			there[snap.Key] = true
			if sum, ok := l.acked[snap.Key]; ok && sum != snap.SHA256 || snap.State != monitor.Analyzed {
				t.Errorf("%v: %s, state %s, acknowledged with %s", snap.Key, snap.SHA256, snap.State, sum)
			}
		}
	}
	for k := range l.acked {
		if !there[k] {
			t.Errorf("%v was acknowledged and is lost", k)
		}
	}
	if got, want := int64(len(l.acked))+l.given.Load(), l.total; got < want {
		t.Errorf("%d acknowledged and %d given up, want %d", len(l.acked), l.given.Load(), want)
	}
	sameMeasures(t, s, there)
	t.Logf("%d captures acknowledged, %d given up by their sender, %d snapshots, %d kills", len(l.acked), l.given.Load(), len(there), kills)
	alerts, err := s.Alerts(ctx, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	box.compare(t, alerts, kills)
	checkStore(t, s, l)
}

// checkStore runs the integrity check. A kill may leave the file of a capture whose
// sender was not answered and gave up: nothing else may be wrong, and repair takes it in.
func checkStore(t *testing.T, s *store.Store, l *load) {
	t.Helper()
	problems, err := s.Check(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		var run string
		k := monitor.Key{}
		_, err := fmt.Sscanf(strings.ReplaceAll(p.Path, "/", " "), "captures %s %d-%d.safetensors", &run, &k.Step, &k.Sample)
		k.Run = run
		if _, acked := l.acked[k]; p.Kind != store.FileUnknown || err != nil || acked {
			t.Errorf("integrity: %v", p)
		}
	}
	if int64(len(problems)) > l.given.Load() {
		t.Errorf("%d files without a snapshot, but %d senders gave up", len(problems), l.given.Load())
	}
	if _, err := s.Repair(context.Background(), problems); err != nil {
		t.Fatal(err)
	}
	if left, err := s.Check(context.Background()); err != nil || len(left) > 0 {
		t.Errorf("after repair: %v, %v", left, err)
	}
}

// sameMeasures measures every capture again and compares with what is kept.
func sameMeasures(t *testing.T, s *store.Store, there map[monitor.Key]bool) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "again.safetensors")
	for k := range there {
		if err := os.WriteFile(path, body(k), 0o600); err != nil {
			t.Fatal(err)
		}
		want, err := analyze.Capture(context.Background(), path, k, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Analysis(context.Background(), k)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got.Values, want.Values) || !reflect.DeepEqual(got.NonFinite, want.NonFinite) {
			t.Fatalf("%v: kept measures are not those of the capture", k)
		}
	}
}

// mailbox is a webhook's receiver that counts.
type mailbox struct {
	url string
	mu  sync.Mutex
	got map[int64]int // by the alert's id
}

func newMailbox(t *testing.T) *mailbox {
	m := &mailbox{got: map[int64]int{}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var message struct{ Alert monitor.Alert }
		if err := json.NewDecoder(r.Body).Decode(&message); err != nil || message.Alert.ID == 0 {
			http.Error(w, fmt.Sprint("no alert: ", err), http.StatusBadRequest)
			return
		}
		m.mu.Lock()
		m.got[message.Alert.ID]++
		m.mu.Unlock()
	}))
	t.Cleanup(s.Close)
	m.url = s.URL
	return m
}

// settle waits until every alert of the server has come.
func (m *mailbox) settle(t *testing.T, url string) {
	t.Helper()
	for range 3000 {
		res, err := http.Get(url + "/api/v1/alerts")
		if err != nil {
			t.Fatal(err)
		}
		var list struct{ Alerts []monitor.Alert }
		err = json.NewDecoder(res.Body).Decode(&list)
		_ = res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		m.mu.Lock()
		missing := len(list.Alerts) - len(m.got)
		m.mu.Unlock()
		if missing == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("not all alerts were delivered")
}

// compare checks that each alert came, and once, but for the one that may have been
// under way at each kill.
func (m *mailbox) compare(t *testing.T, alerts []monitor.Alert, kills int) {
	t.Helper()
	if len(alerts) == 0 {
		t.Error("no alerts: the test proves nothing about them")
	}
	type place struct {
		run, code, where string
		step             int64
	}
	seen, repeated := map[place]bool{}, 0
	for _, a := range alerts {
		p := place{a.Run, a.Code, a.Where, a.Step}
		if seen[p] {
			t.Errorf("%v is kept twice", p)
		}
		seen[p] = true
		if m.got[a.ID] == 0 {
			t.Errorf("%v was not delivered", p)
		}
		repeated += m.got[a.ID] - 1
	}
	if repeated > kills {
		t.Errorf("%d repeated deliveries for %d kills", repeated, kills)
	}
	t.Logf("%d alerts, %d deliveries repeated", len(alerts), repeated)
}
