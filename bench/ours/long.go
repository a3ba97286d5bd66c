package main

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/eigenhead/eigenhead/attention"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/spectrum"
)

// longPart times one head at growing lengths, and fits how the cost grows.
func longPart([]string) error {
	grow("spectrum with channels, d=128", []int{8192, 32768, 131072}, func(T int) error {
		q, k := gaussian(T, 128, 1), gaussian(T, 128, 2)
		seconds, err := timed(2, func() error {
			fa, err := spectrum.NewFactor(q)
			if err != nil {
				return err
			}
			fb, err := spectrum.NewFactor(attention.FieldKeys(k, attention.Full))
			if err != nil {
				return err
			}
			_, err = spectrum.ChannelsOfFactors(fa, fb, 8)
			return err
		})
		record(T, seconds)
		return err
	})
	grow("row statistics, causal, d=64", []int{8192, 16384, 32768}, func(T int) error {
		p := head.Pair{Q: gaussian(T, 64, 1), K: gaussian(T, 64, 2), Scale: .125, Mask: head.Causal}
		seconds, err := timed(1, func() error {
			_, err := attention.Rows(background, p, nil)
			return err
		})
		record(T, seconds)
		return err
	})
	grow("row statistics, σ₁ and σ₂, causal, d=64", []int{8192, 16384, 32768}, func(T int) error {
		p := head.Pair{Q: gaussian(T, 64, 1), K: gaussian(T, 64, 2), Scale: .125, Mask: head.Causal}
		start := time.Now() // once: half a minute at the longest
		a, err := attention.New(background, p, &attention.Options{Memory: -1})
		if err != nil {
			return err
		}
		defer a.Release()
		_, err = attention.Top(background, a, 1)
		record(T, []float64{time.Since(start).Seconds()})
		return err
	})
	return nil
}

var (
	lengths []int
	bests   []float64
	peaks   []float64 // bytes of the heap
)

func record(T int, seconds []float64) {
	best := math.Inf(1)
	for _, s := range seconds {
		best = min(best, s)
	}
	lengths, bests = append(lengths, T), append(bests, best)
}

// grow runs f at each length and prints the timings and the exponent between the
// first and the last.
func grow(what string, at []int, f func(T int) error) {
	lengths, bests, peaks = nil, nil, nil
	for _, T := range at {
		if err := watched(func() error { return f(T) }); err != nil {
			line{What: what, Note: err.Error()}.print()
			return
		}
		line{What: fmt.Sprintf("%s, T=%d", what, T), Seconds: bests[len(bests)-1:],
			Note: fmt.Sprintf("heap up to %.0f MB", peaks[len(peaks)-1]/1e6)}.print()
	}
	line{What: what + ": exponent of T", Seconds: []float64{exponent(bests)}}.print()
	line{What: what + ": exponent of T, heap", Seconds: []float64{exponent(peaks)}}.print()
}

// exponent is that of T between the first length and the last.
func exponent(y []float64) float64 {
	last := len(lengths) - 1
	return math.Log(y[last]/y[0]) / math.Log(float64(lengths[last])/float64(lengths[0]))
}

// watched runs f and records how large the heap grew, garbage being collected at a
// twentieth of it: what lives, to five percent.
func watched(f func() error) error {
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	runtime.GC()
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	stop, done := make(chan struct{}), make(chan float64)
	go func() {
		peak := 0.0
		for {
			metrics.Read(sample)
			peak = max(peak, float64(sample[0].Value.Uint64()))
			select {
			case <-stop:
				done <- peak
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	err := f()
	close(stop)
	peaks = append(peaks, <-done)
	return err
}
