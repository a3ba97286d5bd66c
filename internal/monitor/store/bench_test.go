package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

// BenchmarkCommit measures durable acknowledgements of 64 KiB captures from 8
// clients; commits/s is what counts. benchmarkFsync is what the disk alone takes.
func BenchmarkCommit(b *testing.B) {
	s := open(b, b.TempDir(), nil)
	var step atomic.Int64
	b.SetParallelism(4) // × GOMAXPROCS 2: 8 clients
	b.RunParallel(func(pb *testing.PB) {
		data := make([]byte, 64<<10)
		for pb.Next() {
			_, _ = rand.Read(data[:64])
			st, err := s.Stage(bytes.NewReader(data), 1<<20)
			if err == nil {
				_, _, err = s.Commit(context.Background(), st, key(step.Add(1)))
			}
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
}

// BenchmarkFsync writes and syncs 64 KiB files one after another: the disk alone.
func BenchmarkFsync(b *testing.B) {
	dir, data := b.TempDir(), make([]byte, 64<<10)
	for i := range b.N {
		f, err := os.Create(filepath.Join(dir, fmt.Sprint(i)))
		if err == nil {
			_, err = f.Write(data)
		}
		if err == nil {
			err = f.Sync()
		}
		if err != nil {
			b.Fatal(err)
		}
		_ = f.Close()
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "files/s")
}

// manyHeads fills a run with snapshots of one measure (and more, that Grid must pass over).
func manyHeads(tb testing.TB, s *Store, heads, steps, measures int) {
	ctx := context.Background()
	a := &monitor.Analysis{}
	for h := range heads {
		for m := range measures {
			a.Values = append(a.Values, monitor.Value{Where: fmt.Sprintf("L%dH%d", h/32, h%32), Measure: fmt.Sprintf("m%d", m), Value: float64(h*1000 + m)})
		}
	}
	for step := range steps {
		a.Key = key(int64(step))
		for i := range a.Values {
			a.Values[i].Value++
		}
		put(tb, s, a.Key, fmt.Sprint(step))
		if err := s.SaveAnalysis(ctx, a); err != nil {
			tb.Fatal(err)
		}
	}
}

// BenchmarkGrid reads 1,000 heads × 1,000 snapshots of one measure among five.
func BenchmarkGrid(b *testing.B) {
	s := open(b, b.TempDir(), nil)
	manyHeads(b, s, 1000, 1000, 5)
	b.ResetTimer()
	for range b.N {
		g, err := s.Grid(context.Background(), "a", "m3", 0)
		if err != nil || len(g.Steps) != 1000 || len(g.Where) != 1000 {
			b.Fatal(err)
		}
	}
}

// BenchmarkAnalyses replays 100 analyses of 1,000 heads × 40 measures, as a
// restarted server does.
func BenchmarkAnalyses(b *testing.B) {
	s := open(b, b.TempDir(), nil)
	manyHeads(b, s, 1000, 100, 40)
	b.ResetTimer()
	for range b.N {
		n := 0
		for _, err := range s.Analyses(context.Background(), "a") {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != 100 {
			b.Fatal(n)
		}
	}
}
