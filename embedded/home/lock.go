package home

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrLocked is in the chain of the error of [Acquire] when another process runs
// on the directory.
var ErrLocked = errors.New("another effectd process runs on this directory")

// Lock is the right to run on a directory (H3). The kernel releases it when the
// process ends, however it ends; child processes do not inherit it.
type Lock struct{ file *os.File }

// Acquire takes the lock of a directory or fails at once.
func Acquire(dir string) (*Lock, error) {
	f, err := tryLock(dir, unix.LOCK_EX)
	if err != nil {
		return nil, err
	}
	// The number is for people; the kernel's lock alone decides.
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, errors.Join(err, f.Close()))
	}
	return &Lock{file: f}, nil
}

// Release gives the lock back. It says so to the kernel: a child process that is
// being started has the file open too, until it becomes another program.
func (l *Lock) Release() error {
	return errors.Join(unix.Flock(int(l.file.Fd()), unix.LOCK_UN), l.file.Close())
}

// Unlocked is nil if no process runs on the directory. It asks the kernel: a killed
// process may be there as a zombie for long, and its number may be another's.
func Unlocked(dir string) error {
	f, err := tryLock(dir, unix.LOCK_SH)
	if err != nil {
		return err
	}
	return f.Close()
}

func tryLock(dir string, how int) (*os.File, error) {
	f, err := flock(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("lock %s: %w%s", dir, ErrLocked, holder(dir))
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return f, nil
}

func holder(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, "lock"))
	if pid := strings.TrimSpace(string(b)); err == nil && pid != "" {
		return " (process " + pid + ")"
	}
	return ""
}

// flock opens a file or directory and locks it. Closing it unlocks.
func flock(path string, flag, how int) (*os.File, error) {
	f, err := os.OpenFile(path, flag, secretMode)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
