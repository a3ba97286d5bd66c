package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/monitortest"
)

var nan = math.NaN()

// heads of a capture.
const heads = 16

// load is a number of clients that post captures of one run, each a step of its own.
type load struct {
	url     string
	clients int
	pace    int // captures a second that are offered; 0: as fast as answers come

	step  atomic.Int64
	mu    sync.Mutex
	sent  int
	busy  int // 429
	lost  int // no answer
	other int

	latencies []time.Duration // of those that were acknowledged
}

// run posts for a while.
func (l *load) run(length time.Duration) {
	tickets := make(chan struct{}, l.clients)
	end := time.Now().Add(length)
	go func() {
		defer close(tickets)
		start := time.Now()
		for n := 0; time.Now().Before(end); n++ {
			if l.pace > 0 {
				time.Sleep(time.Until(start.Add(time.Duration(n) * time.Second / time.Duration(l.pace))))
			}
			tickets <- struct{}{}
		}
	}()
	transport := &http.Transport{MaxIdleConnsPerHost: l.clients}
	client := &http.Client{Transport: transport, Timeout: time.Minute}
	var all sync.WaitGroup
	for range l.clients {
		all.Go(func() {
			for range tickets {
				l.post(client)
			}
		})
	}
	all.Wait()
	transport.CloseIdleConnections()
}

// numbers are made once: a client's own work should not be what is measured.
var numbers = monitortest.Capture(monitor.Key{Run: "bench", Step: 1<<53 - 1}, monitortest.Usual, "")

// capture is a file of its own for a step, of the same length for every step.
func capture(step int64) []byte {
	return bytes.Replace(numbers, []byte("9007199254740991"), fmt.Appendf(nil, "%016d", step), 1)
}

func (l *load) post(client *http.Client) {
	body := capture(l.step.Add(1))
	start := time.Now()
	res, err := client.Post(l.url+"/api/v1/runs/bench/captures", "application/octet-stream", bytes.NewReader(body))
	status := 0
	if err == nil {
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		status = res.StatusCode
	}
	took := time.Since(start)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent++
	switch status {
	case http.StatusCreated:
		l.latencies = append(l.latencies, took)
	case http.StatusTooManyRequests:
		l.busy++
	case 0:
		l.lost++
	default:
		l.other++
	}
}

// rate is what was acknowledged a second.
func (l *load) rate(length time.Duration) float64 {
	return float64(len(l.latencies)) / length.Seconds()
}

// quantile of the time to an acknowledgment, in milliseconds.
func (l *load) quantile(q float64) float64 {
	if len(l.latencies) == 0 {
		return nan
	}
	slices.Sort(l.latencies)
	return l.latencies[int(q*float64(len(l.latencies)-1))].Seconds() * 1000
}

func middle(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

// metric reads one number of /metrics.
func metric(url, name string) (float64, error) {
	res, err := http.Get(url + "/metrics")
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(text, 64)
		}
	}
	return 0, fmt.Errorf("%s/metrics has no %s", url, name)
}
