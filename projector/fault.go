package projector

import (
	"fmt"
	"log/slog"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// fault keeps the first thing that made the store unfit. It is the logger of
// Pebble, whose own would end the process where it finds no way on.
type fault struct {
	log    *slog.Logger
	raised chan struct{} // closed with the first

	mu    sync.Mutex
	first error
}

func newFault(log *slog.Logger) *fault { return &fault{log: log, raised: make(chan struct{})} }

func (f *fault) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first == nil {
		f.first = fmt.Errorf("the store of the projection failed: %w", err)
		close(f.raised)
		f.log.Error("the projection goes on in memory alone", "error", err)
	}
}

func (f *fault) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.first
}

// Infof implements [pebble.Logger].
func (f *fault) Infof(string, ...any) {}

// Errorf implements [pebble.Logger].
func (f *fault) Errorf(format string, args ...any) {
	f.log.Warn("projection store", "says", fmt.Sprintf(format, args...))
}

// Fatalf implements [pebble.Logger]: what was being written may be lost.
func (f *fault) Fatalf(format string, args ...any) { f.set(fmt.Errorf(format, args...)) }

// background is called when a flush or a compaction failed. Pebble tries again
// at once, and without end.
func (f *fault) background(err error) { f.set(err) }

func (f *fault) corruption(c pebble.DataCorruptionInfo) { f.set(c.Details) }
