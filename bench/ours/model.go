package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/attention"
	"github.com/eigenhead/eigenhead/capture"
	"github.com/eigenhead/eigenhead/checkpoint"
	"github.com/eigenhead/eigenhead/forward"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/par"
	"github.com/eigenhead/eigenhead/spectrum"
)

// forwardPart times the forward pass of a loaded model, all logits included,
// though the peer gives those of the last position only.
func forwardPart(args []string) error {
	c, err := checkpoint.Open(args[0])
	if err != nil {
		return err
	}
	m, err := arch.Open(c)
	if err != nil {
		return err
	}
	ids, err := readIDs(args[1], number(args, 2))
	if err != nil {
		return err
	}
	seconds, err := timed(number(args, 3), func() error {
		_, err := forward.Run(background, m, ids, nil, nil)
		return err
	})
	line{What: "forward", Seconds: seconds}.print()
	return err
}

func readIDs(file string, n int) ([]int, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var ids []int
	if err := json.Unmarshal(data, &ids); err != nil {
		return nil, err
	}
	if len(ids) < n {
		return nil, fmt.Errorf("%s: %d ids, want %d", file, len(ids), n)
	}
	return ids[:n], nil
}

// pairsOf reads every head of a capture.
func pairsOf(file string) ([]head.Pair, error) {
	c, err := capture.Open(file)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var all []head.Pair
	for _, i := range c.Layers() {
		l, err := c.Layer(i)
		if err != nil {
			return nil, err
		}
		all = append(all, l.Pairs...)
	}
	return all, nil
}

// energyPart times the singular values of every energy field: QR of the queries of
// each head, of the centered keys of each KV head, and the SVD of the core.
func energyPart(args []string) error {
	pairs, err := pairsOf(args[0])
	if err != nil {
		return err
	}
	keys := make([]int, len(pairs)) // of each head, the head whose key factor it uses
	for i, p := range pairs {
		keys[i] = i
		if i > 0 && pairs[keys[i-1]].ID.Layer == p.ID.Layer && pairs[keys[i-1]].KVHead == p.KVHead {
			keys[i] = keys[i-1]
		}
	}
	seconds, err := timed(number(args, 1), func() error {
		right := make([]*spectrum.Factor, len(pairs))
		err := par.DoCtx(background, len(pairs), func(i int) (err error) {
			if keys[i] == i {
				right[i], err = spectrum.NewTriangle(attention.FieldKeys(pairs[i].K, attention.Full))
			}
			return err
		})
		if err != nil {
			return err
		}
		return par.DoCtx(background, len(pairs), func(i int) error {
			left, err := spectrum.NewTriangle(pairs[i].Q)
			if err != nil {
				return err
			}
			_, err = spectrum.OfFactors(left.Times(pairs[i].Scale), right[keys[i]])
			return err
		})
	})
	line{What: "energy", Seconds: seconds, Note: fmt.Sprintf("%d heads", len(pairs))}.print()
	return err
}

// rowsPart times every row statistic of every head, in float64.
func rowsPart(args []string) error {
	pairs, err := pairsOf(args[0])
	if err != nil {
		return err
	}
	seconds, err := timed(number(args, 1), func() error {
		return par.DoCtx(background, len(pairs), func(i int) error {
			_, err := attention.Rows(background, pairs[i], nil)
			return err
		})
	})
	line{What: "rows", Seconds: seconds}.print()
	return err
}

// sigmaPart times σ₁ and σ₂ of every A with their bounds, the making of A included,
// and that without it, as the peer does: what attention.Top takes, over the cores.
func sigmaPart(args []string) error {
	pairs, err := pairsOf(args[0])
	if err != nil {
		return err
	}
	cores := float64(runtime.GOMAXPROCS(0))
	var alone []float64
	seconds, err := timed(number(args, 1), func() error {
		var top atomic.Int64
		err := par.DoCtx(background, len(pairs), func(i int) error {
			a, err := attention.New(background, pairs[i], &attention.Options{Memory: 128 << 20})
			if err != nil {
				return err
			}
			defer a.Release()
			start := time.Now()
			_, err = attention.Top(background, a, uint64(i))
			top.Add(int64(time.Since(start)))
			return err
		})
		alone = append(alone, time.Duration(top.Load()).Seconds()/cores)
		return err
	})
	line{What: "sigma", Seconds: seconds}.print()
	if err == nil {
		line{What: "sigma with A made", Seconds: alone[1:]}.print() // timed counts the first call not
	}
	return err
}
