package ingest

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// One address gets its share and no more; another still comes in, and a place that is
// given back is taken again.
func TestConnectionsAreShared(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln := newLimited(inner, 4, 2)
	defer ln.Close()
	accepted := make(chan net.Conn, 8)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	dial := func(from string) net.Conn {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 5 * time.Second}
		c, err := d.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Skipf("no connection from %s: %v", from, err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	served := func() net.Conn {
		select {
		case c := <-accepted:
			return c
		case <-time.After(5 * time.Second):
			t.Fatal("not accepted")
			return nil
		}
	}
	dial("127.0.0.1")
	first := served()
	dial("127.0.0.1")
	served()
	third := dial("127.0.0.1")
	_ = third.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := third.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !isReset(err) {
		t.Fatalf("a third connection of one address: %v, want it closed", err)
	}
	dial("127.0.0.2")
	served()
	first.Close()
	dial("127.0.0.1")
	served()
}

func isReset(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && !op.Timeout()
}
