package main

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestSoonLeavesWorkThatDoesNotNoticeAnInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	release := make(chan struct{})
	defer close(release)
	start := time.Now()
	time.AfterFunc(10*time.Millisecond, cancel)
	_, err := soon(ctx, func() (int, error) { <-release; return 1, nil })
	if took := time.Since(start); !errors.Is(err, context.Canceled) || took > grace+400*time.Millisecond {
		t.Errorf("got %v after %v, want context.Canceled soon after %v", err, took, grace)
	}
}

func TestSoonReturnsWhatTheWorkReturns(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ours := errors.New("ours")
	if v, err := soon(ctx, func() (int, error) { return 7, nil }); v != 7 || err != nil {
		t.Errorf("got %d, %v", v, err)
	}
	// Also after an interrupt, if it comes back in time.
	if _, err := soon(ctx, func() (int, error) { cancel(); time.Sleep(time.Millisecond); return 0, ours }); err != ours {
		t.Errorf("got %v, want the work's own error", err)
	}
}
