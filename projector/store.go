package projector

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// openStore opens Pebble so that nothing it meets ends the process, or keeps it
// waiting for a disk that does not work.
func openStore(dir string, files vfs.FS, f *fault) (*pebble.DB, error) {
	if err := files.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := pebble.LockDirectory(dir, files)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInUse, err)
	}
	opened := make(chan *pebble.DB, 1)
	err = f.guard(func() error {
		db, err := openPebble(dir, files, lock, f)
		opened <- db
		return err
	})
	select {
	case <-f.dead: // and keeps the lock
		return nil, f.get()
	default:
		return <-opened, errors.Join(err, lock.Close()) // an open store has the lock too
	}
}

func openPebble(dir string, files vfs.FS, lock *pebble.Lock, f *fault) (db *pebble.DB, err error) {
	defer func() {
		if r := recover(); r != nil {
			db, err = nil, fmt.Errorf("%w: the store cannot be read: %v", ErrRebuild, r)
		}
	}()
	db, err = pebble.Open(dir, &pebble.Options{
		FS:   files,
		Lock: lock,
		// The log of the ledger is log enough. One more would double what is written,
		// and Pebble ends the process when it cannot write its own.
		DisableWAL:                  true,
		FormatMajorVersion:          pebble.FormatValueSeparation,
		MemTableSize:                32 << 20, // most versions of a record are gone before they are flushed
		MemTableStopWritesThreshold: 4,
		CacheSize:                   32 << 20,
		L0CompactionThreshold:       12, // rows are read rarely, and written once: merging them often gains little
		LBaseMaxBytes:               256 << 20,
		Logger:                      f,
		EventListener:               &pebble.EventListener{BackgroundError: f.failed, DataCorruption: f.corruption},
	})
	switch {
	case err == nil, errors.Is(err, fs.ErrPermission), vfs.IsNoSpaceError(err):
		return db, err
	}
	return nil, fmt.Errorf("%w: %w", ErrRebuild, err)
}

// Reset removes a projection, and refuses while it is in use. The log has
// everything that was in it.
func Reset(dir string, opts Options) error {
	opts = opts.withDefaults()
	if _, err := opts.FS.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	lock, err := pebble.LockDirectory(dir, opts.FS)
	if err != nil {
		return fmt.Errorf("reset projection: %w: %w", ErrInUse, err)
	}
	if err := errors.Join(opts.FS.RemoveAll(dir), lock.Close()); err != nil {
		return fmt.Errorf("reset projection: %w", err)
	}
	return nil
}
