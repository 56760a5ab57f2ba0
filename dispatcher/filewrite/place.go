package filewrite

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// place is a name in an open directory below the root. Once it is open, nothing
// goes by way of the path any more.
type place struct {
	parent *os.Root
	dir    *os.File // the same directory, for flock and fsync
	name   string
	temp   string // "" when nothing is staged
	staged fs.FileInfo
}

func open(w Write) (*place, error) {
	root, err := os.OpenRoot(w.Root)
	if err != nil {
		return nil, failed("open the root", err)
	}
	defer root.Close()
	parent, err := root.OpenRoot(filepath.Dir(w.Path))
	if err != nil {
		return nil, classed("open the directory", err)
	}
	dir, err := parent.Open(".")
	if err != nil {
		parent.Close()
		return nil, failed("open the directory", err)
	}
	return &place{parent: parent, dir: dir, name: filepath.Base(w.Path)}, nil
}

// classed tells an escape from other failures. The error of os.Root for it is
// not exported, but is no errno.
func classed(what string, err error) error {
	var errno unix.Errno
	if e := unnamed(err); !errors.As(e, &errno) {
		return &notWritten{fault: FaultEscape, what: what, err: e}
	}
	return failed(what, err)
}

func (p *place) close() {
	p.dir.Close()
	p.parent.Close()
}

// vacant refuses when anything has the name, a dangling symbolic link too.
func (p *place) vacant() error {
	_, err := p.parent.Lstat(p.name)
	switch {
	case err == nil:
		return refuse(FaultExists, "a file has the name")
	case errors.Is(err, fs.ErrNotExist):
		return nil
	default:
		return failed("look at the name", err)
	}
}

// expected refuses unless a regular file with the expected content has the name.
func (p *place) expected(ctx context.Context, digest string) (fs.FileInfo, error) {
	seen, err := p.parent.Lstat(p.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, refuse(FaultAbsent, "no file has the name")
	case err != nil:
		return nil, failed("look at the name", err)
	case !seen.Mode().IsRegular():
		return nil, refuse(FaultNotRegular, "what has the name is not a regular file")
	}
	// Without O_NONBLOCK a pipe that took the name meanwhile would block.
	file, err := p.parent.OpenFile(p.name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, failed("open the file", err)
	}
	defer file.Close()
	opened, err := file.Stat()
	if err != nil {
		return nil, failed("look at the file", err)
	}
	if !os.SameFile(seen, opened) {
		return nil, refuse(FaultMismatch, "the file is being replaced by another writer")
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, &cancellable{ctx, file}); err != nil {
		if ctx.Err() != nil {
			return nil, refuse(FaultDeadline, "cancelled while the file was read")
		}
		return nil, failed("read the file", err)
	}
	if hex.EncodeToString(hash.Sum(nil)) != digest {
		return nil, refuse(FaultMismatch, "the content is not the expected one")
	}
	return opened, nil
}

// cancellable ends a long read between two chunks.
type cancellable struct {
	ctx context.Context
	r   io.Reader
}

func (c *cancellable) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}

// stage writes the content, durably, beside the name.
func (p *place) stage(w Write) error {
	temp := leftoverPrefix + rand.Text() + leftoverSuffix
	file, err := p.parent.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return failed("create the temporary file", err)
	}
	p.temp = temp
	if err := errors.Join(p.fill(file, w), file.Close()); err != nil {
		p.unstage()
		return failed("write the temporary file", err)
	}
	return nil
}

func (p *place) fill(file *os.File, w Write) error {
	if _, err := file.Write(w.Content); err != nil {
		return unnamed(err)
	}
	mode := w.Mode
	if mode == 0 {
		mode = 0o600
	}
	if err := file.Chmod(mode); err != nil {
		return unnamed(err)
	}
	if err := file.Sync(); err != nil {
		return unnamed(err)
	}
	var err error
	p.staged, err = file.Stat()
	return err
}

// unstage removes the temporary file, if it is still there. What cannot be
// removed is a leftover (W7).
func (p *place) unstage() {
	if p.temp != "" {
		_ = p.parent.Remove(p.temp)
		p.temp = ""
	}
}

// holds reports whether the name is that of the file staged here.
func (p *place) holds() (bool, error) {
	now, err := p.parent.Lstat(p.name)
	switch {
	case err == nil:
		return os.SameFile(now, p.staged), nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	default:
		return false, fmt.Errorf("look at the result: %w", unnamed(err))
	}
}

// sync makes the name durable.
func (p *place) sync() error {
	if err := p.dir.Sync(); err != nil {
		return fmt.Errorf("fsync of the directory: %w", unnamed(err))
	}
	return nil
}

// lock takes the lock of the directory. It polls, because a blocked flock cannot
// be cancelled; holders keep it for one comparison and one rename.
func (p *place) lock(ctx context.Context) (unlock func(), err error) {
	fd := int(p.dir.Fd())
	for wait := time.Millisecond; ; wait = min(2*wait, 16*time.Millisecond) {
		err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = unix.Flock(fd, unix.LOCK_UN) }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, failed("lock the directory", err)
		}
		select {
		case <-ctx.Done():
			return nil, refuse(FaultDeadline, "cancelled while another writer held the directory")
		case <-time.After(wait):
		}
	}
}
