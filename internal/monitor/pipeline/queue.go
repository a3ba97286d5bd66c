package pipeline

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

// queue orders snapshots for the workers: runs take turns, and within a run the
// lowest step comes first. What workers finish out of order is given back in
// order, so that a run is judged step by step, by one worker at a time. The number
// of snapshots in it is bounded, and so is the number of finished ones that are held.
type queue struct {
	mu       sync.Mutex
	changed  *sync.Cond
	capacity int
	ahead    int // how many snapshots of one run may be taken and not yet judged
	lanes    map[string]*lane
	turns    []*lane // those with something that may be taken, in the order of their turns
	reserved int     // places promised to uploads
	size     int     // snapshots waiting, taken, held, or being judged
	budget   int64   // bytes of captures that may be measured at the same time
	inWork   int64   // bytes of those that are
	closed   bool
}

// lane is one run's part of the queue.
type lane struct {
	run     string
	waiting jobs
	taken   []job     // being measured
	held    []outcome // measured, by step
	judging bool      // a worker is at this run's outcomes
	inTurn  bool
}

// job is one snapshot to be measured.
type job struct {
	key   monitor.Key
	bytes int64
	since time.Time
}

// outcome is a job's measures, or why there are none.
type outcome struct {
	job
	analysis *monitor.Analysis
	err      error
}

var errClosed = errors.New("the pipeline is closed")

func newQueue(capacity, ahead int, budget int64) *queue {
	q := &queue{capacity: capacity, ahead: ahead, budget: budget, lanes: map[string]*lane{}}
	q.changed = sync.NewCond(&q.mu)
	return q
}

// reserve promises a place, or returns false when none is left.
func (q *queue) reserve() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.size+q.reserved >= q.capacity || q.closed {
		return false
	}
	q.reserved++
	return true
}

// reserveSoon is reserve that waits.
func (q *queue) reserveSoon(ctx context.Context) error {
	defer context.AfterFunc(ctx, q.wake)()
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.size+q.reserved >= q.capacity && !q.closed && ctx.Err() == nil {
		q.changed.Wait()
	}
	if q.closed {
		return errClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	q.reserved++
	return nil
}

func (q *queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.changed.Broadcast()
}

// release gives a promised place back.
func (q *queue) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.reserved--
	q.changed.Broadcast()
}

// put adds a snapshot; the caller's promised place, if there is one, it releases.
func (q *queue) put(j job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lanes[j.key.Run]
	if l == nil {
		l = &lane{run: j.key.Run}
		q.lanes[j.key.Run] = l
	}
	heap.Push(&l.waiting, j)
	q.size++
	q.offer(l)
	q.changed.Broadcast()
}

// offer gives a lane its turn if there is something to take.
func (q *queue) offer(l *lane) {
	if !l.inTurn && len(l.waiting) > 0 && len(l.taken)+len(l.held) < q.ahead {
		l.inTurn = true
		q.turns = append(q.turns, l)
	}
}

// take waits for the next job; ok is false when the queue is closed.
func (q *queue) take() (j job, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed && (len(q.turns) == 0 || q.inWork > 0 && q.inWork+q.turns[0].waiting[0].bytes > q.budget) {
		q.changed.Wait()
	}
	if q.closed {
		return job{}, false
	}
	l := q.turns[0]
	q.turns = q.turns[1:]
	l.inTurn = false
	j = heap.Pop(&l.waiting).(job)
	l.taken = append(l.taken, j)
	q.inWork += j.bytes
	q.offer(l)
	return j, true
}

// finish hands in an outcome. It returns what may be judged now, in step order:
// nothing while an earlier step is being measured or another worker is at this run.
// Who gets something judges it and calls more until that returns nothing.
func (q *queue) finish(o outcome) []outcome {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inWork -= o.bytes
	q.changed.Broadcast()
	l := q.lanes[o.key.Run]
	l.taken = slices.DeleteFunc(l.taken, func(j job) bool { return j.key == o.key })
	at, _ := slices.BinarySearchFunc(l.held, o, func(a, b outcome) int { return order(a.key, b.key) })
	l.held = slices.Insert(l.held, at, o)
	if l.judging {
		return nil
	}
	return q.ready(l)
}

// more says that n outcomes of run are judged, and returns the next ones.
func (q *queue) more(run string, n int) []outcome {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lanes[run]
	q.size -= n
	ready := q.ready(l)
	q.offer(l)
	if len(ready) == 0 && len(l.waiting)+len(l.taken)+len(l.held) == 0 {
		delete(q.lanes, run)
	}
	q.changed.Broadcast()
	return ready
}

// ready takes from held what no unfinished job precedes.
func (q *queue) ready(l *lane) []outcome {
	n := 0
	for n < len(l.held) && !slices.ContainsFunc(l.taken, func(j job) bool { return order(j.key, l.held[n].key) < 0 }) {
		n++
	}
	ready := slices.Clone(l.held[:n])
	l.held = slices.Delete(l.held, 0, n)
	l.judging = n > 0
	return ready
}

// idle reports whether nothing of run waits or is in work.
func (q *queue) idle(run string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lanes[run] == nil
}

// state returns the number of snapshots and since when the oldest has waited.
func (q *queue) state() (size int, oldest time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	older := func(j job) {
		if oldest.IsZero() || j.since.Before(oldest) {
			oldest = j.since
		}
	}
	for _, l := range q.lanes {
		for _, j := range l.waiting {
			older(j)
		}
		for _, j := range l.taken {
			older(j)
		}
		for _, o := range l.held {
			older(o.job)
		}
	}
	return q.size, oldest
}

// close wakes and turns away everyone who waits.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.changed.Broadcast()
}

// order sorts a run's snapshots.
func order(a, b monitor.Key) int {
	return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Sample, b.Sample))
}

// jobs is a heap by step and sample.
type jobs []job

func (h jobs) Len() int           { return len(h) }
func (h jobs) Less(i, j int) bool { return order(h[i].key, h[j].key) < 0 }
func (h jobs) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *jobs) Push(x any)        { *h = append(*h, x.(job)) }
func (h *jobs) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
