package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

// smallDisk is a staging file on a disk with room for n bytes, or that fails when
// it is synced.
type smallDisk struct {
	stagingFile
	room int
	sync error
}

func (d *smallDisk) Write(p []byte) (int, error) {
	n := min(len(p), d.room)
	d.room -= n
	n, err := d.stagingFile.Write(p[:n])
	if err == nil && n < len(p) {
		err = &os.PathError{Op: "write", Path: "file", Err: syscall.ENOSPC}
	}
	return n, err
}

func (d *smallDisk) Sync() error { return errors.Join(d.stagingFile.Sync(), d.sync) }

func TestFullDiskWhileStaging(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	s.createFile = func(path string) (stagingFile, error) {
		f, err := createStaging(path)
		return &smallDisk{stagingFile: f, room: 1000}, err
	}
	_, _, err := commit(s, key(1), strings.Repeat("x", 5000))
	if !errors.Is(err, ErrNoSpace) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), s.path(stagingFolder)) {
		t.Errorf("%v, want ErrNoSpace that names the file", err)
	}
	clean(t, s)
	put(t, s, key(1), strings.Repeat("x", 1000)) // the store goes on
}

func TestFullDiskAtSync(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	s.createFile = func(path string) (stagingFile, error) {
		f, err := createStaging(path)
		return &smallDisk{stagingFile: f, room: 1000, sync: syscall.ENOSPC}, err
	}
	if _, _, err := commit(s, key(1), "x"); !errors.Is(err, ErrNoSpace) {
		t.Errorf("%v, want ErrNoSpace", err)
	}
	clean(t, s)
	if pending, err := s.Pending(context.Background()); err != nil || len(pending) > 0 {
		t.Errorf("pending %v (%v)", pending, err)
	}
}

// TestFullDiskInTheDatabase fills the database itself: uploads that had been moved
// into place go back out, and once there is room the same call works.
func TestFullDiskInTheDatabase(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	ctx := context.Background()
	put(t, s, key(0), "zero")
	pages := func(n int) {
		err := s.write(ctx, func(g *group) error { return g.exec(fmt.Sprintf("PRAGMA max_page_count = %d", n)) })
		if err != nil {
			t.Fatal(err)
		}
	}
	pages(1) // SQLite takes the present size where that is more
	var err error
	var n int64
	for n = 1; err == nil && n < 2000; n++ {
		_, _, err = commit(s, key(n), fmt.Sprint(n))
	}
	if !errors.Is(err, ErrNoSpace) || !strings.Contains(err.Error(), databaseName) {
		t.Fatalf("after %d: %v, want ErrNoSpace that names the database", n, err)
	}
	clean(t, s)
	if err := s.SaveAnalysis(ctx, sampleAnalysis(key(0), 2000)); !errors.Is(err, ErrNoSpace) {
		t.Errorf("SaveAnalysis: %v, want ErrNoSpace", err)
	}
	if snap, err := s.Snapshot(ctx, key(0)); err != nil || snap.State != monitor.Received {
		t.Errorf("half an analysis: %+v, %v", snap, err)
	}
	pages(1 << 30)
	put(t, s, key(n), "room again")
	clean(t, s)
}

// TestFullFileSystem does the same on a real one, where the system lets us make it.
func TestFullFileSystem(t *testing.T) {
	dir := t.TempDir()
	if err := mountSmall(dir); err != nil {
		t.Skipf("needs the right to mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := unmount(dir); err != nil {
			t.Error(err)
		}
	})
	s := open(t, dir, nil)
	kept := int64(0)
	var err error
	for ; kept < 1000; kept++ {
		if _, _, err = commit(s, key(kept), strings.Repeat(fmt.Sprint(kept%10), 64<<10)); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrNoSpace) || kept == 0 {
		t.Fatalf("after %d: %v, want ErrNoSpace", kept, err)
	}
	clean(t, s)
	snaps, err := s.Snapshots(context.Background(), "a", nil)
	if err != nil || int64(len(snaps)) != kept {
		t.Errorf("%d snapshots, want %d (%v)", len(snaps), kept, err)
	}
}

func TestUploadsAboveTheLimit(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	for _, n := range []int{0, 99, 100} {
		st, err := s.Stage(bytes.NewReader(make([]byte, n)), 100)
		if err != nil || st.Bytes() != int64(n) {
			t.Errorf("%d bytes of at most 100: %v", n, err)
		} else {
			st.Discard()
		}
	}
	endless := io.MultiReader(bytesOf("x"), zeros{})
	if _, err := s.Stage(endless, 1<<20); !errors.Is(err, ErrTooLarge) {
		t.Errorf("an endless body: %v", err)
	}
	cut := io.MultiReader(bytesOf("half"), failing{io.ErrUnexpectedEOF})
	if _, err := s.Stage(cut, 1<<20); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a cut body: %v", err)
	}
	clean(t, s)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
