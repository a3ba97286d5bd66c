package ingest

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/monitortest"
	"github.com/eigenhead/eigenhead/internal/monitor/pipeline"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
)

// dial opens a bare connection and writes text.
func (r *rig) dial(text string) net.Conn {
	r.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		r.t.Fatal(err)
	}
	return c
}

// head is the start of an upload of n bytes.
func (r *rig) head(n int) string {
	return fmt.Sprintf("POST /api/v1/runs/toy/captures HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", r.token, n)
}

func status(t *testing.T, c net.Conn) int {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(60 * time.Second))
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// TestSlowHeaders: a client that never ends its headers is hung up on.
func TestSlowHeaders(t *testing.T) {
	noLeaks(t)
	r := newRig(t, settings{serve: ServeOptions{header: 50 * time.Millisecond}})
	c := r.dial("POST /api/v1/runs/toy/captures HTTP/1.1\r\nHost: x\r\nX-Slow: ")
	_ = c.SetReadDeadline(time.Now().Add(60 * time.Second))
	if _, err := io.ReadAll(c); err != nil {
		t.Errorf("not hung up on: %v", err)
	}
	r.stop()
}

// TestSlowBody: a body that trickles in evenly is given up once it lies behind the
// least speed by more than the grace, and its place is free for others.
func TestSlowBody(t *testing.T) {
	noLeaks(t)
	r := newRig(t, settings{pipeline: pipeline.Options{Uploads: 1}, ingest: Options{Grace: 200 * time.Millisecond, MinSpeed: 1000}})
	c := r.dial(r.head(100000))
	stop := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				if _, err := c.Write([]byte("x")); err != nil {
					return
				}
			}
		}
	}()
	for r.pipe.Stats().Uploads == 0 {
		time.Sleep(time.Millisecond)
	}
	if got, _ := r.capture("toy", 1, ""); got != 429 {
		t.Errorf("the one place is taken twice: %d", got)
	}
	if got := status(t, c); got != 408 {
		t.Errorf("slow body: %d, want 408", got)
	}
	close(stop)
	<-stopped
	for r.pipe.Stats().Uploads > 0 {
		time.Sleep(time.Millisecond)
	}
	if got, out := r.capture("toy", 1, ""); got != 201 {
		t.Errorf("after it: %d %v", got, out)
	}
	r.stop()
}

// TestSteadyBodyMayTakeLong: a body above the least speed outlives the grace.
func TestSteadyBodyMayTakeLong(t *testing.T) {
	r := newRig(t, settings{ingest: Options{Grace: 150 * time.Millisecond, MinSpeed: 100}})
	data := monitortest.Capture(monitor.Key{Run: "toy", Step: 1}, monitortest.Small, "")
	c := r.dial(r.head(len(data)))
	for part := range 5 {
		from, to := part*len(data)/5, (part+1)*len(data)/5
		if _, err := c.Write(data[from:to]); err != nil {
			t.Fatal(err)
		}
		time.Sleep(60 * time.Millisecond)
	}
	if got := status(t, c); got != 201 {
		t.Errorf("%d, want 201", got)
	}
}

// TestTruncatedBody: the client goes away in the middle.
func TestTruncatedBody(t *testing.T) {
	noLeaks(t)
	r := newRig(t, settings{})
	data := monitortest.Capture(monitor.Key{Run: "toy", Step: 1}, monitortest.Small, "")
	c := r.dial(r.head(len(data)))
	if _, err := c.Write(data[:len(data)-1]); err != nil {
		t.Fatal(err)
	}
	_ = c.(*net.TCPConn).CloseWrite()
	if got := status(t, c); got != 400 {
		t.Errorf("%d, want 400", got)
	}
	gone := r.dial(r.head(len(data)) + string(data[:100]))
	_ = gone.Close()
	for r.pipe.Stats().Uploads > 0 {
		time.Sleep(time.Millisecond)
	}
	if n, _ := r.get("/api/v1/runs/toy/snapshots"); n != 404 {
		t.Errorf("half a capture made a run: %d", n)
	}
	if got, _ := r.capture("toy", 1, ""); got != 201 {
		t.Errorf("whole: %d", got)
	}
	r.stop()
}

// TestUnreadBodyDoesNotHold: a refused sender that goes on sending slowly is let go.
func TestUnreadBodyDoesNotHold(t *testing.T) {
	noLeaks(t)
	r := newRig(t, settings{serve: ServeOptions{Grace: 100 * time.Millisecond}})
	r.token = "wrong"
	c := r.dial(r.head(100))
	if got := status(t, c); got != 401 {
		t.Errorf("%d, want 401", got)
	}
	_ = c.SetReadDeadline(time.Now().Add(60 * time.Second))
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection stays")
	}
	r.stop()
}

// TestAnswersThatNobodyReads: a client that asks and does not take the answer is let
// go of, and holds nothing.
func TestAnswersThatNobodyReads(t *testing.T) {
	noLeaks(t)
	r := newRig(t, settings{serve: ServeOptions{answer: 200 * time.Millisecond}})
	list := make([]monitor.Scalars, 9000)
	for i := range list {
		list[i] = monitor.Scalars{Step: int64(i), Values: map[string]float64{strings.Repeat("long", 15): float64(i)}}
	}
	if err := r.pipe.Scalars(t.Context(), "toy", list); err != nil {
		t.Fatal(err)
	}
	ask := fmt.Sprintf("GET /api/v1/runs/toy/scalars HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", r.token)
	const asked = 40 // more than the buffers of both ends hold
	c := r.dial(strings.Repeat(ask, asked))
	time.Sleep(time.Second)
	_ = c.SetReadDeadline(time.Now().Add(60 * time.Second))
	got, err := io.Copy(io.Discard, c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection was kept")
	}
	if least := int64(asked * len(list) * 60); got >= least {
		t.Errorf("all of the answers came, %d bytes", got)
	}
	r.stop()
}

// TestMemoryDoesNotGrowWithTheBody streams 128 MiB into a limit above that.
func TestMemoryDoesNotGrowWithTheBody(t *testing.T) {
	r := newRig(t, settings{})
	var before, during runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	peak := uint64(0)
	body := &observed{left: 128 << 20, each: func() {
		runtime.ReadMemStats(&during)
		peak = max(peak, during.HeapAlloc)
	}}
	if status, _, out := r.do(r.request("POST", "/api/v1/runs/toy/captures", body)); status != 400 {
		t.Errorf("%d %v", status, out)
	}
	if grown := int64(peak) - int64(before.HeapAlloc); grown > 16<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
}

// observed is a body of zeros that calls each now and then.
type observed struct {
	left, reads int
	each        func()
}

func (o *observed) Read(p []byte) (int, error) {
	if o.left == 0 {
		return 0, io.EOF
	}
	if o.reads++; o.reads%500 == 0 {
		o.each()
	}
	n := min(len(p), o.left)
	clear(p[:n])
	o.left -= n
	return n, nil
}

// TestClockGoingBack: captures are ordered by step, and each gets a time.
func TestClockGoingBack(t *testing.T) {
	now := make(chan time.Time, 100)
	for i := range 100 {
		now <- time.Unix(1_800_000_000-int64(i)*3600, 0)
	}
	clock := func() time.Time {
		select {
		case t := <-now:
			return t
		default:
			return time.Unix(1_700_000_000, 0)
		}
	}
	r := newRig(t, settings{store: store.Options{Now: clock}, pipeline: pipeline.Options{Now: clock}})
	for step := range int64(3) {
		if got, out := r.capture("toy", step, ""); got != 201 {
			t.Fatalf("%d %v", got, out)
		}
	}
	r.drain()
	_, out := r.get("/api/v1/runs/toy/snapshots")
	for i, s := range out["snapshots"].([]any) {
		if s := s.(map[string]any); s["step"] != float64(i) || s["state"] != "analyzed" {
			t.Errorf("snapshot %d: %v", i, s)
		}
	}
	if s := r.pipe.Stats(); s.Lag < 0 || s.Alerts > 0 {
		t.Errorf("stats %+v", s)
	}
}

// TestShutdownWaitsForUploads: a capture in flight is acknowledged, new connections
// are refused.
func TestShutdownWaitsForUploads(t *testing.T) {
	noLeaks(t)
	r := newRig(t, settings{})
	data := monitortest.Capture(monitor.Key{Run: "toy", Step: 1}, monitortest.Small, "")
	c := r.dial(r.head(len(data)) + string(data[:500]))
	for r.pipe.Stats().Uploads == 0 {
		time.Sleep(time.Millisecond)
	}
	done := make(chan struct{})
	go func() { defer close(done); r.stop() }()
	for { // until the port is closed
		probe, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if err != nil {
			break
		}
		_ = probe.Close()
		time.Sleep(time.Millisecond)
	}
	if _, err := c.Write(data[500:]); err != nil {
		t.Fatal(err)
	}
	if got := status(t, c); got != 201 {
		t.Errorf("%d, want 201", got)
	}
	<-done
}

func TestConnectionsAreBounded(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln := newLimited(inner, 1, 1)
	accepted := make(chan net.Conn)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- c
		}
	}()
	for range 2 {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	first := <-accepted
	select {
	case <-accepted:
		t.Fatal("two connections where one has room")
	case <-time.After(30 * time.Millisecond):
	}
	_ = first.Close()
	_ = first.Close() // makes room once
	second := <-accepted
	if len(ln.room) != 1 {
		t.Errorf("%d places taken, want 1", len(ln.room))
	}
	_ = second
	_ = ln.Close()
	if _, open := <-accepted; open {
		t.Error("a closed listener accepts")
	}
}

func TestTLS(t *testing.T) {
	cert, key := selfSigned(t)
	for _, bad := range [][2]string{{"absent.pem", key}, {key, cert}} {
		if _, err := Listen("127.0.0.1:0", bad[0], bad[1]); err == nil || !strings.Contains(err.Error(), "--tls-cert") {
			t.Errorf("%v: %v", bad, err)
		}
	}
	ln, err := Listen("127.0.0.1:0", cert, key)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.TLS != nil, r.ProtoMajor) })
	go func() { done <- Serve(ctx, ln, h, nil) }()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}}
	res, err := client.Get("https://" + ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if string(body) != "true 2" {
		t.Errorf("answer %q, want TLS and HTTP/2", body)
	}
	old := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11}}}
	if _, err := old.Get("https://" + ln.Addr().String()); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
	client.CloseIdleConnections()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// selfSigned writes a certificate for 127.0.0.1 and its key.
func selfSigned(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", secret)
}

func TestListenNamesTheAddress(t *testing.T) {
	if _, err := Listen("127.0.0.1:notaport", "", ""); err == nil || !strings.Contains(err.Error(), "--listen 127.0.0.1:notaport") {
		t.Error(err)
	}
}
