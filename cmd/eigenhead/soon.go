package main

import (
	"context"
	"time"
)

// grace is how long work may take to notice an interrupt before it is left
// behind: together with clearing up it stays below a second.
const grace = 500 * time.Millisecond

// soon returns what work returns, or ctx's error if work has not come back a
// while after ctx ended: the factorization of one large matrix does not look at
// ctx. Work that is left behind ends with the process.
func soon[T any](ctx context.Context, work func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		v, err := work()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-done:
		return r.value, r.err
	case <-time.After(grace):
		var none T
		return none, ctx.Err()
	}
}
