package ingest

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// steady reads a body that must keep coming: at any moment all of it but what
// grace covers must have come at minSpeed. A client that trickles, however evenly,
// holds a place for no longer than grace and what its bytes have earned.
type steady struct {
	body     io.Reader
	control  *http.ResponseController
	start    time.Time
	n        int64
	grace    time.Duration
	minSpeed int
}

func (h *server) steady(w http.ResponseWriter, r *http.Request) *steady {
	return &steady{body: r.Body, control: http.NewResponseController(w), start: time.Now(), grace: h.opts.Grace, minSpeed: h.opts.MinSpeed}
}

func (s *steady) Read(p []byte) (int, error) {
	earned := time.Duration(float64(s.n) / float64(s.minSpeed) * float64(time.Second))
	until := s.start.Add(s.grace + earned)
	_ = s.control.SetReadDeadline(until)
	_ = s.control.SetWriteDeadline(until.Add(answerTimeout))
	n, err := s.body.Read(p)
	s.n += int64(n)
	if err == io.EOF {
		s.end()
	}
	return n, err
}

// end lifts the deadline: without a body to read it would cut off the answer.
func (s *steady) end() { _ = s.control.SetReadDeadline(time.Time{}) }

// digested checks at the end of a body that it is what its sender hashed.
type digested struct {
	body io.Reader
	hash hash.Hash
	want string
}

// digest wraps body if the request has a Content-Digest (RFC 9530) by SHA-256; other
// algorithms are left alone, as the RFC has it.
func digest(r *http.Request, body io.Reader) (io.Reader, error) {
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Content-Digest"), ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if !strings.EqualFold(name, "sha-256") {
			continue
		}
		sum, err := base64.StdEncoding.DecodeString(strings.Trim(value, ":"))
		if err != nil || len(sum) != sha256.Size {
			return nil, &xerr.Format{File: "Content-Digest", What: "sha-256", Found: fmt.Sprintf("%.80q", value), Want: "44 characters of base64 between colons"}
		}
		return &digested{body, sha256.New(), string(sum)}, nil
	}
	return body, nil
}

func (d *digested) Read(p []byte) (int, error) {
	n, err := d.body.Read(p)
	d.hash.Write(p[:n])
	if err == io.EOF {
		if got := d.hash.Sum(nil); string(got) != d.want {
			return n, &xerr.Format{File: "capture", What: "sha256", Found: fmt.Sprintf("%x", got), Want: fmt.Sprintf("%x, as Content-Digest says", d.want),
				Hint: "the body changed on its way: send it again"}
		}
	}
	return n, err
}

// rates is a bucket of requests for each address.
type rates struct {
	mu      sync.Mutex
	rate    float64
	burst   float64
	now     func() time.Time
	buckets map[netip.Addr]*bucket
}

type bucket struct {
	left float64
	at   time.Time
}

// maxBuckets bounds the memory for addresses.
const maxBuckets = 10000

func newRates(rate, burst float64, now func() time.Time) *rates {
	return &rates{rate: rate, burst: burst, now: now, buckets: map[netip.Addr]*bucket{}}
}

func (r *rates) allow(a netip.Addr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	b := r.buckets[a]
	if b == nil {
		if len(r.buckets) >= maxBuckets {
			r.drop(now)
		}
		b = &bucket{left: r.burst, at: now}
		r.buckets[a] = b
	}
	b.left = min(r.burst, b.left+max(0, now.Sub(b.at).Seconds())*r.rate)
	b.at = now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// drop forgets who has a full bucket again, or everyone if nobody has.
func (r *rates) drop(now time.Time) {
	for a, b := range r.buckets {
		if b.left+now.Sub(b.at).Seconds()*r.rate >= r.burst {
			delete(r.buckets, a)
		}
	}
	if len(r.buckets) >= maxBuckets {
		clear(r.buckets)
	}
}

// addressOf is the sender's address; of IPv6 the part that one customer has.
func addressOf(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{} // not a network: all of these share one bucket
	}
	a := ap.Addr().Unmap().WithZone("")
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return a
}

var errTooSlow = errors.New("the body came too slowly")
