package measure

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestAwaitLeavesWorkBehind(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	if v, err := await(ctx, func() (int, error) { return 7, nil }); v != 7 || err != nil {
		t.Errorf("got %d, %v", v, err)
	}
	release := make(chan struct{})
	defer close(release)
	time.AfterFunc(10*time.Millisecond, cancel)
	start := time.Now()
	_, err := await(ctx, func() (int, error) { <-release; return 7, nil })
	if !errors.Is(err, context.Canceled) || time.Since(start) > 10*time.Second {
		t.Errorf("got %v after %v", err, time.Since(start))
	}
}
