package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

func at(run string, step int64) job { return job{key: monitor.Key{Run: run, Step: step}, bytes: 1} }

func TestQueueTakesTurnsAndLowestStepsFirst(t *testing.T) {
	q := newQueue(100, 100, 1<<30)
	for _, j := range []job{at("a", 3), at("a", 1), at("b", 9), at("a", 2), at("b", 8)} {
		q.put(j)
	}
	var got string
	for range 5 {
		j, _ := q.take()
		got += fmt.Sprintf("%s%d ", j.key.Run, j.key.Step)
	}
	if want := "a1 b8 a2 b9 a3 "; got != want {
		t.Errorf("taken %q, want %q", got, want)
	}
}

// TestOutcomesComeInOrder lets many workers finish in any order: each run is judged
// by one worker at a time, in step order, each snapshot once.
func TestOutcomesComeInOrder(t *testing.T) {
	const n, workers = 300, 8
	q := newQueue(1000, 2*workers, 1<<30)
	runs := []string{"a", "b", "c"}
	for i := range n {
		q.put(at(runs[i%3], int64(i)))
	}
	var mu sync.Mutex
	judged := map[string][]int64{}
	inside := map[string]bool{}
	var work sync.WaitGroup
	for w := range workers {
		work.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			for {
				j, ok := q.take()
				if !ok {
					return
				}
				time.Sleep(time.Duration(r.IntN(300)) * time.Microsecond)
				for ready := q.finish(outcome{job: j}); len(ready) > 0; ready = q.more(j.key.Run, len(ready)) {
					mu.Lock()
					if inside[j.key.Run] {
						t.Error("two workers judge one run")
					}
					inside[j.key.Run] = true
					mu.Unlock()
					for _, o := range ready {
						mu.Lock()
						judged[o.key.Run] = append(judged[o.key.Run], o.key.Step)
						mu.Unlock()
					}
					mu.Lock()
					inside[j.key.Run] = false
					mu.Unlock()
				}
			}
		})
	}
	for size, _ := q.state(); size > 0; size, _ = q.state() {
		time.Sleep(time.Millisecond)
	}
	q.close()
	work.Wait()
	total := 0
	for run, steps := range judged {
		total += len(steps)
		for i := 1; i < len(steps); i++ {
			if steps[i] <= steps[i-1] {
				t.Fatalf("run %s was judged at %d after %d", run, steps[i], steps[i-1])
			}
		}
	}
	if total != n || len(q.lanes) != 0 {
		t.Errorf("%d judged, want %d; %d lanes left", total, n, len(q.lanes))
	}
}

func TestQueueIsBounded(t *testing.T) {
	q := newQueue(2, 4, 1<<30)
	if !q.reserve() {
		t.Fatal("no place in an empty queue")
	}
	q.put(at("a", 1))
	q.release()
	if !q.reserve() || q.reserve() {
		t.Fatal("want one place left, with one snapshot waiting")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := q.reserveSoon(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for a place: %v", err)
	}
	q.release()
	if err := q.reserveSoon(context.Background()); err != nil {
		t.Errorf("a place that came free: %v", err)
	}
	q.close()
	if err := q.reserveSoon(context.Background()); !errors.Is(err, errClosed) {
		t.Errorf("closed queue: %v", err)
	}
}

func TestHeldOutcomesAreBounded(t *testing.T) {
	q := newQueue(100, 3, 1<<30)
	for i := range 10 {
		q.put(at("a", int64(i)))
	}
	for range 3 {
		q.take()
	}
	if len(q.turns) != 0 {
		t.Fatal("a fourth snapshot of a run may be taken while three are not judged")
	}
	if got := q.finish(outcome{job: at("a", 1)}); len(got) != 0 {
		t.Fatalf("step 1 is judged before step 0: %v", got)
	}
	if len(q.turns) != 0 {
		t.Fatal("a held outcome does not count")
	}
	got := q.finish(outcome{job: at("a", 0)})
	if len(got) != 2 || got[0].key.Step != 0 || got[1].key.Step != 1 {
		t.Fatalf("ready %v, want steps 0 and 1", got)
	}
	q.more("a", 2)
	if len(q.turns) != 1 {
		t.Error("judged outcomes still count")
	}
}

func TestBudgetOfBytes(t *testing.T) {
	q := newQueue(100, 100, 10)
	for i, bytes := range []int64{50, 6, 6} {
		q.put(job{key: monitor.Key{Run: "a", Step: int64(i)}, bytes: bytes})
	}
	big, _ := q.take() // alone it may be larger than the budget
	next := make(chan job)
	go func() {
		for range 2 {
			j, _ := q.take()
			next <- j
		}
	}()
	quiet := func(while string) {
		t.Helper()
		select {
		case j := <-next:
			t.Fatalf("step %d is taken %s", j.key.Step, while)
		case <-time.After(20 * time.Millisecond):
		}
	}
	quiet("beside 50 bytes")
	q.finish(outcome{job: big})
	first := <-next
	quiet("beside 6 of 10 bytes")
	q.finish(outcome{job: first})
	<-next
}

// TestQueueProperties: whatever is put, taken and finished, the size is right and
// nothing is lost.
func TestQueueProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := newQueue(1000, rapid.IntRange(1, 5).Draw(t, "ahead"), 1<<30)
		var taken []job
		put, judged := 0, 0
		settle := func(i int) {
			j := taken[i]
			taken = append(taken[:i:i], taken[i+1:]...)
			for ready := q.finish(outcome{job: j}); len(ready) > 0; ready = q.more(j.key.Run, len(ready)) {
				judged += len(ready)
			}
		}
		for range rapid.IntRange(0, 60).Draw(t, "moves") {
			switch rapid.IntRange(0, 2).Draw(t, "move") {
			case 0:
				q.put(at(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "run"), int64(1000*rapid.IntRange(0, 9).Draw(t, "step")+put)))
				put++
			case 1:
				if len(q.turns) > 0 {
					j, _ := q.take()
					taken = append(taken, j)
				}
			default:
				if len(taken) > 0 {
					settle(rapid.IntRange(0, len(taken)-1).Draw(t, "which"))
				}
			}
			if size, _ := q.state(); size != put-judged {
				t.Fatalf("size %d, want %d", size, put-judged)
			}
		}
		for len(taken) > 0 || len(q.turns) > 0 {
			for len(q.turns) > 0 {
				j, _ := q.take()
				taken = append(taken, j)
			}
			settle(0)
		}
		if judged != put || len(q.lanes) != 0 {
			t.Fatalf("%d of %d judged, %d lanes left", judged, put, len(q.lanes))
		}
	})
}
