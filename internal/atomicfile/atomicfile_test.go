package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

func TestNothingIsVisibleBeforeCommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.json")
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("half"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("%s is visible before Commit", path)
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(path); string(data) != "half" {
		t.Fatalf("read back %q", data)
	}
	f.Abort() // must not remove a committed file
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
}

func TestAbortLeavesTheOldFileAndNoOther(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.json")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	f.Abort()
	entries, _ := os.ReadDir(dir)
	if data, _ := os.ReadFile(path); string(data) != "old" || len(entries) != 1 {
		t.Fatalf("left %d files, content %q", len(entries), data)
	}
}

func TestUnwritableIsFoundAtOnce(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Join(dir, "absent", "out.json")} {
		_, err := Create(path)
		var usage *xerr.Usage
		if !errors.As(err, &usage) {
			t.Errorf("Create(%s): %v, want a usage error", path, err)
		}
	}
}
