package pipeline

import (
	"sync"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

// eventBuffer is how many events a subscriber may lie behind. It then misses some:
// events say where to look in the store, so the next one mends the picture.
const eventBuffer = 256

// hub hands events to those who listen now. It never waits for a listener.
type hub struct {
	mu      sync.Mutex
	subs    map[chan monitor.Event]struct{}
	closed  bool
	dropped uint64
}

// subscribe returns a channel of what happens from now on, closed by cancel or by
// the end of the hub. cancel may be called more than once.
func (h *hub) subscribe() (<-chan monitor.Event, func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := make(chan monitor.Event, eventBuffer)
	if h.closed {
		close(c)
		return c, func() {}
	}
	if h.subs == nil {
		h.subs = map[chan monitor.Event]struct{}{}
	}
	h.subs[c] = struct{}{}
	return c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if _, there := h.subs[c]; there {
			delete(h.subs, c)
			close(c)
		}
	}
}

func (h *hub) publish(e monitor.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.subs {
		select {
		case c <- e:
		default:
			h.dropped++
		}
	}
}

// close ends every subscription.
func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for c := range h.subs {
		close(c)
	}
	h.subs = nil
}

func (h *hub) lost() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dropped
}
