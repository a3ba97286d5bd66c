//go:build unix

package mmap

import (
	"os"

	"golang.org/x/sys/unix"
)

func open(f *os.File, size int) (*Map, error) {
	if size == 0 {
		return &Map{}, nil
	}
	data, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	return &Map{data: data, mapped: true}, nil
}

func unmap(data []byte) error { return os.NewSyscallError("munmap", unix.Munmap(data)) }

// release is advice: where the system refuses it, memory only stays in use.
func release(data []byte) { _ = unix.Madvise(data, unix.MADV_DONTNEED) }
