//go:build unix

package store

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestPrivate has a folder that anybody may enter, as one made by hand is: nothing
// in the store may be for others to read, new or left wide by somebody else.
func TestPrivate(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o022))
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o755))
	look := func() {
		t.Helper()
		seen := 0
		must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || path == dir {
				return err
			}
			info, err := d.Info()
			if seen++; err == nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: mode %v, want nothing for others", path, info.Mode())
			}
			return err
		}))
		if seen < 7 {
			t.Errorf("%d files and folders, want the database, its log and index, lock, captures, a run, staging", seen)
		}
	}
	for _, again := range []bool{false, true} {
		s, err := Open(dir, nil)
		must(t, err)
		if !again {
			put(t, s, key(1), "one")
		}
		_, err = s.Runs(t.Context())
		must(t, err)
		look()
		must(t, s.Close())
		for _, name := range []string{databaseName, capturesFolder, stagingFolder} {
			must(t, os.Chmod(filepath.Join(dir, name), 0o755))
		}
		for _, name := range []string{databaseName + "-wal", databaseName + "-shm"} { // as after a crash
			if again {
				break
			}
			must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
			must(t, os.Chmod(filepath.Join(dir, name), 0o644))
		}
	}
}
