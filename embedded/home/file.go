package home

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const (
	dirMode    = 0o700
	fileMode   = 0o644
	secretMode = 0o600
)

// writeFile replaces a file whole (H4).
func writeFile(path string, content []byte, mode os.FileMode) (err error) {
	tmp := path + ".tmp"
	// What a crash left there may be readable by others.
	if err := os.Remove(tmp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return syncDir(filepath.Dir(path))
}

// makeDir makes a directory whose parent exists.
func makeDir(path string) error {
	if err := os.Mkdir(path, dirMode); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if info, err := os.Stat(path); err != nil {
		return err
	} else if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", path)
	}
	return syncDir(filepath.Dir(path))
}

// removeFile removes a file durably; a missing one is removed already.
func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
