package ingest

import (
	"context"
	"crypto/tls"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"
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
)

// Listen opens the address for Serve; with a certificate and its key the connections
// are TLS. At most 1024 connections are open at a time: more wait to be accepted.
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
	ln = &limited{Listener: ln, room: make(chan struct{}, maxConnections), closed: make(chan struct{})}
	if config != nil {
		ln = tls.NewListener(ln, config)
	}
	return ln, nil
}

// Serve answers connections of ln with h until ctx ends; then stopping is called, so
// that streams end, answers in progress get 15 seconds, and the rest is cut off.
//
// Errors: the network's; nil after ctx.
func Serve(ctx context.Context, ln net.Listener, h http.Handler, log *slog.Logger, stopping func()) error {
	return serve(ctx, ln, h, log, stopping, headerTimeout, answerTimeout)
}

func serve(ctx context.Context, ln net.Listener, h http.Handler, log *slog.Logger, stopping func(), header, answer time.Duration) error {
	s := &http.Server{
		Handler:           timed(h, answer),
		ReadHeaderTimeout: header,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          errorLog(log),
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	stopping()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	err := s.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		log.Warn("requests were cut off", "after", shutdownGrace.String())
		err = s.Close()
	}
	<-done
	return err
}

// timed lets no client hold an answer for ever by not reading it.
func timed(next http.Handler, answer time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answer))
		next.ServeHTTP(w, r)
	})
}

// errorLog turns net/http's own lines, such as failed handshakes, into records.
func errorLog(l *slog.Logger) *log.Logger {
	return slog.NewLogLogger(l.Handler(), slog.LevelDebug)
}

// limited lets only so many connections be open.
type limited struct {
	net.Listener
	room   chan struct{}
	closed chan struct{}
	once   sync.Once
}

// Accept waits for room, then for a connection.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.room <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.room
		return nil, err
	}
	return &counted{Conn: c, leave: func() { <-l.room }}, nil
}

// Close ends waiting Accepts too.
func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type counted struct {
	net.Conn
	once  sync.Once
	leave func()
}

// Close makes room for another connection.
func (c *counted) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.leave)
	return err
}
