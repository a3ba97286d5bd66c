// Package par runs independent tasks on all cores. It decides only when a task
// runs, never how work is split: callers cut work into fixed blocks, so results
// do not depend on the number of cores.
package par

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// Do calls f(0), …, f(n−1), at most GOMAXPROCS at a time, and returns when all
// have. A panic in f is raised again in the caller.
func Do(n int, f func(i int)) {
	_ = DoCtx(context.Background(), n, func(i int) error { f(i); return nil })
}

// DoCtx is Do for tasks that can fail or be interrupted. After the first error,
// or once ctx is done, no further task starts; it waits for those running and
// returns the error of the lowest index, or ctx's.
func DoCtx(ctx context.Context, n int, f func(i int) error) error {
	workers := min(runtime.GOMAXPROCS(0), n)
	if workers <= 1 {
		return serial(ctx, n, f)
	}
	var (
		next   atomic.Int64
		failed atomic.Bool
		wait   sync.WaitGroup
		mu     sync.Mutex
		first  = n
		err    error
		raised any
	)
	work := func() {
		defer wait.Done()
		defer func() {
			if p := recover(); p != nil {
				failed.Store(true)
				mu.Lock()
				raised = p
				mu.Unlock()
			}
		}()
		for !failed.Load() && ctx.Err() == nil {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			if e := f(i); e != nil {
				failed.Store(true)
				mu.Lock()
				if i < first {
					first, err = i, e
				}
				mu.Unlock()
			}
		}
	}
	wait.Add(workers)
	for range workers {
		go work()
	}
	wait.Wait()
	if raised != nil {
		panic(raised)
	}
	if err != nil {
		return err
	}
	return ctx.Err()
}

func serial(ctx context.Context, n int, f func(i int) error) error {
	for i := range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f(i); err != nil {
			return err
		}
	}
	return ctx.Err()
}
