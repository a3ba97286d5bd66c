package measure

import "context"

// await returns what f returns, or ctx's error once ctx is done: f is then left
// behind and ends by itself. It is for factorizations of one large matrix, seconds
// long at tens of thousands of tokens, that do not look at ctx; what f reads must be
// memory of its own, which files may be closed under. A panic in f is the caller's.
func await[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value  T
		err    error
		raised any
	}
	if ctx.Done() == nil {
		return f()
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			r.raised = recover()
			done <- r
		}()
		r.value, r.err = f()
	}()
	select {
	case r := <-done:
		if r.raised != nil {
			panic(r.raised)
		}
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
