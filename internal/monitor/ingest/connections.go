package ingest

import (
	"net"
	"sync"
)

// limited lets only so many connections be open, and only a share of them to one
// address.
type limited struct {
	net.Listener
	share  int
	room   chan struct{}
	closed chan struct{}
	once   sync.Once

	mu   sync.Mutex
	open map[string]int // connections of each address
}

func newLimited(ln net.Listener, most, share int) *limited {
	return &limited{Listener: ln, share: share, room: make(chan struct{}, most), closed: make(chan struct{}), open: make(map[string]int)}
}

// Accept waits for room, then for a connection of an address that has not used up
// its share.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.room <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			<-l.room
			return nil, err
		}
		from := c.RemoteAddr().String()
		if host, _, err := net.SplitHostPort(from); err == nil {
			from = host
		}
		if l.enter(from) {
			return &counted{Conn: c, leave: func() { l.leave(from) }}, nil
		}
		_ = c.Close()
	}
}

func (l *limited) enter(from string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[from] >= l.share {
		return false
	}
	l.open[from]++
	return true
}

func (l *limited) leave(from string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[from]--; l.open[from] == 0 {
		delete(l.open, from)
	}
	<-l.room
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
