package projector

import (
	"fmt"
	"log/slog"
	"runtime"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// fault keeps the first thing that made the store unfit. It is the logger of
// Pebble, which would end the process where it finds no way on, and elsewhere try
// again at once and without end; here its own goroutine ends, and nothing more is
// written.
type fault struct {
	log  *slog.Logger
	dead chan struct{} // closed when the store cannot even be closed any more

	mu    sync.Mutex
	first error
	ended bool // dead is closed
}

func newFault(log *slog.Logger) *fault { return &fault{log: log, dead: make(chan struct{})} }

// set says that the store is damaged. It can be closed, and opened again when it
// is rebuilt.
func (f *fault) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first == nil {
		f.first = fmt.Errorf("the store of the projection failed: %w", err)
		f.log.Error("the projection goes on in memory alone", "error", err)
	}
}

// end leaves the store as it is, open, for as long as the process lives.
func (f *fault) end(err error) {
	f.set(err)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ended {
		f.ended = true
		close(f.dead)
	}
}

func (f *fault) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.first
}

// guard does work on the store, and waits for it while the store lives.
func (f *fault) guard(work func() error) error {
	done := make(chan error, 1)
	go func() { done <- work() }()
	select {
	case err := <-done:
		return err
	case <-f.dead:
		return f.get()
	}
}

// close closes the store, if it lives.
func (f *fault) close(db *pebble.DB) error {
	select {
	case <-f.dead:
		return f.get()
	default:
		return f.guard(db.Close)
	}
}

// Infof implements [pebble.Logger].
func (f *fault) Infof(string, ...any) {}

// Errorf implements [pebble.Logger].
func (f *fault) Errorf(format string, args ...any) {
	f.log.Warn("projection store", "says", fmt.Sprintf(format, args...))
}

// Fatalf implements [pebble.Logger]. What was being written may be lost or half
// there: to write on, as Pebble does when this returns, would damage the store.
func (f *fault) Fatalf(format string, args ...any) {
	f.end(fmt.Errorf(format, args...))
	runtime.Goexit()
}

// failed is called on Pebble's goroutines when a flush or a compaction failed. What
// only read a damaged file may go on.
func (f *fault) failed(err error) {
	if pebble.IsCorruptionError(err) {
		f.set(err)
		return
	}
	f.end(err)
	runtime.Goexit()
}

func (f *fault) corruption(c pebble.DataCorruptionInfo) { f.set(c.Details) }
