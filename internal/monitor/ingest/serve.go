package ingest

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// Timeouts and bounds of Serve. Chosen, not derived.
const (
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	answerTimeout  = time.Minute      // for an answer to be taken; streams and uploads extend it
	shutdownGrace  = 15 * time.Second // for answers in progress
	maxHeaderBytes = 64 << 10
	maxConnections = 1024
	maxShare       = maxConnections / 2 // of one address: it cannot shut out the others
)

// Listen opens the address for Serve; with a certificate and its key the connections
// are TLS. At most 1024 connections are open at a time: more wait to be accepted. One
// address has at most half of them: what it opens beyond is closed at once.
//
// Errors: *xerr.Usage.
func Listen(addr, certFile, keyFile string) (net.Listener, error) {
	var config *tls.Config
	if certFile != "" {
		cert, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			return nil, &xerr.Usage{Flag: "--tls-cert " + certFile, Found: err.Error(), Want: "a certificate and its key, both PEM"}
		}
		config = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, &xerr.Usage{Flag: "--listen " + addr, Found: err.Error(), Want: "an address such as 127.0.0.1:7070 that is free"}
	}
	ln = newLimited(ln, maxConnections, maxShare)
	if config != nil {
		ln = tls.NewListener(ln, config)
	}
	return ln, nil
}

// ServeOptions of Serve. Zero values mean the defaults.
type ServeOptions struct {
	Rate     float64       // requests a second from one address, in bursts of twice that; 0: DefaultRate; below 0: any
	Grace    time.Duration // for a body to come whole; a handler that reads a long one extends it. 0: DefaultGrace
	Log      *slog.Logger  // nil: silent
	Stopping func()        // called when ctx ends: streams must end. nil: there are none

	header, answer time.Duration // 0: headerTimeout, answerTimeout; shorter in tests
}

func (o *ServeOptions) fill() {
	if o.Rate == 0 {
		o.Rate = DefaultRate
	}
	if o.Grace <= 0 {
		o.Grace = DefaultGrace
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Stopping == nil {
		o.Stopping = func() {}
	}
	o.header, o.answer = cmp.Or(o.header, headerTimeout), cmp.Or(o.answer, answerTimeout)
}

// Serve answers connections of ln with h until ctx ends; then streams are told to end,
// answers in progress get 15 seconds, and the rest is cut off. Whatever h routes is
// bounded in rate and time: no handler has to ask for it, and none can forget.
//
// Errors: the network's; nil after ctx.
func Serve(ctx context.Context, ln net.Listener, h http.Handler, opts *ServeOptions) error {
	var o ServeOptions
	if opts != nil {
		o = *opts
	}
	o.fill()
	s := &http.Server{
		Handler:           bounded(h, &o),
		ReadHeaderTimeout: o.header,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          errorLog(o.Log),
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	o.Stopping()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	err := s.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		o.Log.Warn("requests were cut off", "after", shutdownGrace.String())
		err = s.Close()
	}
	<-done
	return err
}

// bounded applies to every request what does not depend on its kind: the rate of its
// sender, a deadline for a body, even one that nobody ever reads, and one for the
// answer to be taken. A request without a body gets no deadline to read: it would cut
// off a stream.
func bounded(next http.Handler, o *ServeOptions) http.Handler {
	rates := newRates(o.Rate, 2*o.Rate, time.Now)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control, now := http.NewResponseController(w), time.Now()
		_ = control.SetWriteDeadline(now.Add(o.answer))
		if r.Body != nil && r.Body != http.NoBody {
			_ = control.SetReadDeadline(now.Add(o.Grace))
		}
		if o.Rate > 0 && !rates.allow(addressOf(r)) {
			busy(w, "too many requests a second from this address", 1)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// errorLog turns net/http's own lines, such as failed handshakes, into records.
func errorLog(l *slog.Logger) *log.Logger {
	return slog.NewLogLogger(l.Handler(), slog.LevelDebug)
}
