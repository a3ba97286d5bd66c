package store

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// lock is held by the one process that may change the store. The system drops it
// when the process dies, however it dies, so that no stale lock needs breaking.
type lock struct{ file *os.File }

const maxLockText = 200

// takeLock locks path and writes who holds it into it.
func takeLock(path, name string) (*lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if held, err := tryLock(f); err != nil || held {
		holder, _ := io.ReadAll(io.LimitReader(f, maxLockText))
		_ = f.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: cannot be locked: %w", path, err)
		}
		return nil, inUse(path, string(holder))
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = fmt.Fprintf(f, "%s, process %d\n", name, os.Getpid())
	}
	if err != nil {
		_ = f.Close()
		return nil, named(path, err)
	}
	return &lock{f}, nil
}

func inUse(path, holder string) error {
	holder = strings.TrimSpace(strings.ToValidUTF8(holder, ""))
	if holder == "" {
		holder = "another process"
	}
	return &xerr.Usage{Flag: path, Found: "the store is in use by " + holder, Want: "a store that no other process changes",
		Hint: "stop that process, or choose another folder"}
}

func (l *lock) release() error { return l.file.Close() }

// lockHeld reports whether a process holds the store now. It cannot tell, and says
// no, where there is no lock file.
func lockHeld(path string) bool {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close() // gives a lock that was taken back at once
	held, err := tryLock(f)
	return held || err != nil
}
