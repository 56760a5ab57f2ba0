package anchor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The decisions that an error leaves to the caller.
var (
	// ErrMissing: there is no anchor.
	ErrMissing = errors.New("the anchor is missing")
	// ErrDamaged: there is an anchor, and no slot of it is intact.
	ErrDamaged = errors.New("the anchor is damaged")
	// ErrExists: there is an anchor already.
	ErrExists = errors.New("there is an anchor already")
	// ErrOther: the mark is of another log than the anchor's.
	ErrOther = errors.New("not the log of the anchor")
)

const fileName = "anchor"

// Anchor is the open file. It is safe for concurrent use. One process at a time
// opens it: the lock of the data directory sees to that.
type Anchor struct {
	file vfs.File

	mu      sync.Mutex
	durable record
	slot    int    // of the durable record
	next    *round // of who comes now
}

// Create makes the anchor of a new ledger, durably. It refuses an existing one,
// damaged or not.
func Create(fs vfs.FS, dir string, first Mark) error {
	path := fs.PathJoin(dir, fileName)
	if _, err := fs.Stat(path); err == nil {
		return fmt.Errorf("create %s: %w", path, ErrExists)
	} else if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("create anchor: %w", err)
	}
	var content []byte
	for count := range uint64(2) {
		slot, err := record{Count: count + 1, Mark: first}.encode()
		if err != nil {
			return fmt.Errorf("create anchor: %w", err)
		}
		content = append(content, slot...)
	}
	if err := replaceFile(fs, dir, path, content); err != nil {
		return fmt.Errorf("create anchor: %w", err)
	}
	return nil
}

// replaceFile makes a file appear whole or not at all.
func replaceFile(fs vfs.FS, dir, path string, content []byte) error {
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	temporary := path + ".tmp"
	f, err := fs.Create(temporary, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fs.Rename(temporary, path); err != nil {
		return err
	}
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Read reads the last mark without opening the anchor, while another process may
// have it open: [ErrMissing], [ErrDamaged], or what the file system says.
func Read(fs vfs.FS, dir string) (Mark, error) {
	f, err := fs.Open(fs.PathJoin(dir, fileName))
	if errors.Is(err, os.ErrNotExist) {
		return Mark{}, ErrMissing
	}
	if err != nil {
		return Mark{}, fmt.Errorf("read anchor: %w", err)
	}
	last, _, err := newest(f)
	return last.Mark, errors.Join(err, f.Close())
}

// Open opens the anchor to keep it: [ErrMissing], [ErrDamaged], or what the file
// system says.
//
// It writes what it found once more, in place. After a failed sync a file system
// may show content that is not on the disk; built on that, the next write would
// overwrite the only durable slot (K2).
func Open(fs vfs.FS, dir string) (*Anchor, error) {
	path := fs.PathJoin(dir, fileName)
	if _, err := fs.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil, ErrMissing
	} else if err != nil {
		return nil, fmt.Errorf("open anchor: %w", err)
	}
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("open anchor: %w", err)
	}
	a := &Anchor{file: f, next: newRound()}
	a.next.turn <- struct{}{}
	if a.durable, a.slot, err = newest(f); err == nil {
		err = a.write(a.slot, a.durable)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open anchor: %w", err), f.Close())
	}
	return a, nil
}

// newest is the later of the intact slots. A short file has fewer slots.
func newest(f io.ReaderAt) (last record, at int, err error) {
	at = -1
	for i := range 2 {
		slot := make([]byte, slotSize)
		n, err := f.ReadAt(slot, int64(i)*slotSize)
		if err != nil && !errors.Is(err, io.EOF) {
			return record{}, 0, fmt.Errorf("read slot %d: %w", i, err)
		}
		if n < slotSize {
			continue
		}
		if r, intact := decode(slot); intact && (at < 0 || r.Count > last.Count) {
			last, at = r, i
		}
	}
	if at < 0 {
		return record{}, 0, ErrDamaged
	}
	return last, at, nil
}

// Load is the last durable mark.
func (a *Anchor) Load() Mark {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.durable.Mark
}

// Close closes the file. Nobody may be waiting.
func (a *Anchor) Close() error { return a.file.Close() }
