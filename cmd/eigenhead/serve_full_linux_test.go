package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/monitortest"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
)

// TestServeOnAFullDisk fills a real file system under a running server. Captures are
// refused by name, nothing that was acknowledged is lost, and with space they are
// taken again.
func TestServeOnAFullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("mounting a small file system needs root: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	s := newServer(t, filepath.Join(disk, "monitor"), "--no-auth")
	s.start()
	send := func(step int64) (int, string) {
		return s.call("POST", "/api/v1/runs/mine/captures", "", monitortest.Capture(monitor.Key{Run: "mine", Step: step}, monitortest.Usual, ""))
	}
	var taken []int64
	refused := false
	for step := int64(0); step < 100 && !refused; step++ {
		switch status, out := send(step); status {
		case 201:
			taken = append(taken, step)
		case 507:
			refused = true
			if !strings.Contains(out, "no space left") || strings.Contains(out, disk) {
				t.Errorf("answer %s", out)
			}
		default:
			t.Fatalf("%d %s", status, out)
		}
	}
	if !refused || len(taken) == 0 {
		t.Fatalf("%d captures fit on 2 MiB, refused: %v", len(taken), refused)
	}
	if status, out := s.call("GET", "/api/v1/runs/mine/snapshots", "", nil); status != 200 {
		t.Errorf("reading on a full disk: %d %s", status, out)
	}
	if err := syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	if status, out := send(1000); status != 201 {
		t.Errorf("with space again: %d %s", status, out)
	}
	taken = append(taken, 1000)
	waitMeasured(t, s, "mine", len(taken))
	s.interrupt()
	left, err := store.Open(filepath.Join(disk, "monitor"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer left.Close()
	if problems, err := left.Check(context.Background()); err != nil || len(problems) > 0 {
		t.Errorf("integrity: %v, %v", problems, err)
	}
	for _, step := range taken {
		if snap, err := left.Snapshot(context.Background(), monitor.Key{Run: "mine", Step: step}); err != nil || snap.State != monitor.Analyzed {
			t.Errorf("step %d: %+v, %v", step, snap, err)
		}
	}
	if files, _ := os.ReadDir(filepath.Join(disk, "monitor", "staging")); len(files) > 0 {
		t.Errorf("%d files of refused captures", len(files))
	}
}

// waitMeasured waits until n snapshots of a run have their measures.
func waitMeasured(t *testing.T, s *server, run string, n int) {
	t.Helper()
	for range 3000 {
		if _, text := s.call("GET", "/api/v1/runs/"+run+"/snapshots", "", nil); strings.Count(text, `"analyzed"`) == n {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("measures do not come")
}
