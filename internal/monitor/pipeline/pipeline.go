// Package pipeline takes a capture from its first byte to the alerts that it
// causes: staged, kept, measured, judged in step order, delivered, and told to
// whoever listens. It survives being killed anywhere: what was acknowledged is
// measured after a restart, and judged as if nothing had happened. It knows nothing
// of HTTP, of pages, or of how a measure is made.
package pipeline

import (
	"errors"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

// ErrBusy says that a capture was refused because as many as may wait are waiting.
// The same capture is welcome a little later.
var ErrBusy = errors.New("the queue is full: send it again later")

// Pipeline is one store's intake. It is safe for concurrent use.
type Pipeline struct {
	hub hub
}

// Subscribe returns a channel of what happens from now on and a function that ends
// the subscription and closes the channel; the end of the pipeline closes it too. A
// subscriber that lies 256 events behind misses what comes then.
func (p *Pipeline) Subscribe() (<-chan monitor.Event, func()) { return p.hub.subscribe() }

// Stats returns the pipeline's health now.
func (p *Pipeline) Stats() Stats { return Stats{Dropped: p.hub.lost()} }
