package store

import (
	"errors"
	"io/fs"
	"os"
)

// private makes the database at path where there is none, and takes it and its log
// from all but the owner: prompts are in it as token ids and activations. SQLite
// gives a log that it makes later the database's own mode.
func private(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	for _, p := range []string{path, path + "-wal", path + "-shm"} {
		if err := narrow(p, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// narrow takes away what mode does not allow. A file that is absent needs nothing;
// one that is somebody else's, or on a disk that knows no modes, stays as it is.
// On Windows, where folders pass on who may read, it does nothing.
func narrow(path string, mode fs.FileMode) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || info.Mode().Perm()&^mode == 0 {
		return err
	}
	if err := os.Chmod(path, info.Mode().Perm()&mode); err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}
