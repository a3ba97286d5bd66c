package store

import "golang.org/x/sys/unix"

// mountSmall puts a file system of 2 MiB on a folder.
func mountSmall(dir string) error { return unix.Mount("tmpfs", dir, "tmpfs", 0, "size=2m") }

func unmount(dir string) error { return unix.Unmount(dir, unix.MNT_DETACH) }
