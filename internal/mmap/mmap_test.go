package mmap

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	want := bytes.Repeat([]byte("0123456789"), 50_000)
	if err := os.WriteFile(path, want, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(m.Bytes(), want) {
		t.Fatal("other bytes")
	}
	m.Release(1, len(want)-1)
	if !bytes.Equal(m.Bytes(), want) {
		t.Fatal("other bytes after Release")
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatalf("second Close: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir); err == nil {
		t.Error("a folder was mapped")
	}
	_, err := Open(filepath.Join(dir, "none"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := Open(empty)
	if err != nil || len(m.Bytes()) != 0 {
		t.Errorf("empty file: %v", err)
	}
}

func TestGuardTurnsAFaultIntoAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(path, make([]byte, 1<<18), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if !m.mapped {
		t.Skip("no memory mapping on this system")
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	sum := 0
	err = Guard(func() {
		for _, b := range m.Bytes() {
			sum += int(b)
		}
	})
	if !errors.Is(err, ErrShrunk) {
		t.Errorf("reading a cut file: %v, want %v", err, ErrShrunk)
	}
}

func TestGuardPassesOtherPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an index panic was swallowed")
		}
	}()
	var none []int
	_ = Guard(func() { _ = none[len(t.Name())] })
}
