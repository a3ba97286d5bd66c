package store

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// childEnv makes the test binary a writer of its own, to be killed.
const childEnv = "EIGENHEAD_STORE_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		if err := writeUntilKilled(dir); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// capture is the bytes of a step: different lengths, above and below a page.
func capture(step int64) string {
	return strings.Repeat(fmt.Sprintf("step %d ", step), 1+int(step%3)*2000)
}

// writeUntilKilled commits from 8 goroutines, saves analyses and scalars, and says
// on stdout what it was told is durable.
func writeUntilKilled(dir string) error {
	s, err := Open(dir, &Options{Name: "child"})
	if err != nil {
		return err
	}
	pending, err := s.Pending(context.Background())
	if err != nil {
		return err
	}
	for _, snap := range pending {
		if err := s.SaveAnalysis(context.Background(), sampleAnalysis(snap.Key, 8)); err != nil {
			return err
		}
	}
	first, err := strconv.ParseInt(os.Getenv(childEnv+"_FIRST"), 10, 64)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	var mu sync.Mutex
	errs := make(chan error)
	for c := range int64(8) {
		go func() {
			for step := first + c; ; step += 8 {
				snap, _, err := commit(s, key(step), capture(step))
				if err == nil {
					mu.Lock()
					fmt.Println("kept", step, snap.SHA256)
					mu.Unlock()
					err = s.SaveAnalysis(context.Background(), sampleAnalysis(key(step), 8))
				}
				if err == nil {
					err = s.SaveScalars(context.Background(), "a", []monitor.Scalars{{Step: step, Values: map[string]float64{"loss": float64(step)}}})
				}
				if err != nil {
					errs <- err
				}
			}
		}()
	}
	return <-errs
}

// startChild runs this test binary as a writer on dir; kept gets its lines.
func startChild(t *testing.T, dir string, first int64) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+dir, childEnv+"_FIRST="+strconv.FormatInt(first, 10))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("child said %q", lines.Text())
	}
	return cmd, lines
}

func TestAcknowledgedSnapshotsSurviveKill(t *testing.T) {
	dir := t.TempDir()
	kept := map[int64]string{}
	next := int64(0)
	for round := range 5 {
		cmd, lines := startChild(t, dir, next)
		before, quota := len(kept), 20+rand.IntN(60)
		for lines.Scan() {
			if len(kept) == before+quota { // in the middle of its work, whatever it is at
				_ = cmd.Process.Kill()
			}
			var step int64
			var sum string
			if n, _ := fmt.Sscanf(lines.Text(), "kept %d %64s", &step, &sum); n != 2 || len(sum) != 64 {
				if strings.HasPrefix(lines.Text(), "error") {
					t.Fatal(lines.Text())
				}
				continue // cut by the kill: not acknowledged
			}
			kept[step], next = sum, max(next, step+1)
		}
		_ = cmd.Wait()
		t.Logf("round %d: %d acknowledged", round, len(kept)-before)
	}
	s := open(t, dir, nil)
	for step, sum := range kept {
		data, err := os.ReadFile(s.CapturePath(key(step)))
		want := sha256.Sum256([]byte(capture(step)))
		snap, serr := s.Snapshot(context.Background(), key(step))
		if err != nil || serr != nil || string(data) != capture(step) || snap.SHA256 != sum || sum != hex.EncodeToString(want[:]) {
			t.Errorf("step %d: %v, %v; file of %d bytes", step, err, serr, len(data))
		}
	}
	problems, err := s.Check(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if p.Kind != FileUnknown { // moved into place, never acknowledged
			t.Error(p)
		}
	}
	if _, err := s.Repair(context.Background(), problems); err != nil {
		t.Fatal(err)
	}
	clean(t, s)
}

func TestASecondServerIsRefusedByName(t *testing.T) {
	dir := t.TempDir()
	cmd, lines := startChild(t, dir, 0)
	if !lines.Scan() { // until a run is there
		t.Fatal("the child ended")
	}
	_, err := Open(dir, nil)
	usage, ok := err.(*xerr.Usage)
	if want := fmt.Sprintf("in use by child, process %d", cmd.Process.Pid); !ok || !strings.Contains(fmt.Sprint(usage.Found), want) {
		t.Fatalf("second server: %v, want %q", err, want)
	}
	ro, err := Open(dir, &Options{ReadOnly: true})
	if err != nil {
		t.Fatalf("read-only beside the server: %v", err)
	}
	clean(t, ro)
	// What was put into place a moment ago may be about to get its row.
	must(t, os.WriteFile(ro.CapturePath(key(1<<40)), []byte("x"), 0o600))
	clean(t, ro)
	must(t, os.Chtimes(ro.CapturePath(key(1<<40)), time.Time{}, time.Now().Add(-2*settle)))
	if problems, err := ro.Check(context.Background()); err != nil || len(problems) != 1 || problems[0].Kind != FileUnknown {
		t.Errorf("an old file without a row: %v, %v", problems, err)
	}
	if err := ro.SaveFailure(context.Background(), key(1), "x"); err != ErrReadOnly {
		t.Errorf("a write to a read-only store: %v", err)
	}
	if err := ro.Close(); err != nil {
		t.Error(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	open(t, dir, nil) // the dead process's lock is gone
}
