package projector

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
)

var (
	// ErrRebuild: what is stored cannot be used: another format, or damaged. Call
	// [Reset], open again and catch up from the log.
	ErrRebuild = errors.New("the projection must be rebuilt")
	// ErrInUse: another process, or projection, has the directory open.
	ErrInUse = errors.New("the projection is in use")
	// ErrClosed: the projection was closed.
	ErrClosed = errors.New("the projection is closed")
)

// Options of a projection. Zero values mean the defaults.
type Options struct {
	FS vfs.FS // default: the operating system's
	// Now is ledger time, which views are shown at. Default: the time of the last
	// entry applied.
	Now    func() events.Instant
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Projection is the live state with its indexes, on disk and in memory. Apply is
// called by one goroutine at a time; everything else is safe for concurrent use.
type Projection struct {
	opts  Options
	fault *fault
	done  chan struct{} // closed by Close

	applying sync.Mutex
	base     *aggregate.State // private: what the next entry is folded on; touched since it was stored
	backlog  backlog
	behind   chan struct{} // the backlog is due
	state    atomic.Pointer[aggregate.State]
	waiting  waiting
	stopped  atomic.Bool // the log is not to be trusted: nothing more is applied

	storing   sync.Mutex       // comes before applying
	stored    *aggregate.State // what the rows are of
	batch     *pebble.Batch    // used again; after a failure nothing is stored any more
	unflushed int              // events in the store that a crash would take

	reading sync.RWMutex // held while the store is used; comes before storing
	db      *pebble.DB
	closing sync.Once
	closed  bool
}

// Open loads the projection in dir, an empty one if there is none. The error is
// [ErrRebuild], [ErrInUse], or what the file system says.
func Open(dir string, opts Options) (*Projection, error) {
	opts = opts.withDefaults()
	f := newFault(opts.Logger)
	db, err := openStore(dir, opts.FS, f)
	if err != nil {
		return nil, fmt.Errorf("open projection: %w", err)
	}
	state, err := load(db)
	if err != nil {
		return nil, fmt.Errorf("open projection: %w", errors.Join(err, f.close(db)))
	}
	p := &Projection{opts: opts, db: db, fault: f, base: state, stored: state.Branch(), behind: make(chan struct{}, 1), done: make(chan struct{}),
		batch: db.NewBatch(pebble.WithMaxRetainedSizeBytes(2 * storeBytes))}
	p.state.Store(p.stored)
	return p, nil
}

// State is the state at the position of the projection. Read only; it does not
// change any more.
func (p *Projection) State() *aggregate.State { return p.state.Load() }

// Fault is what made the store fail while it was in use; nil if nothing. From
// then on the projection goes on in memory: lists and reads of the state are
// served, what only the rows know is not. Opened again, it resumes where the
// store stands; but a store that could not be written stays in use until the
// process ends.
func (p *Projection) Fault() error { return p.fault.get() }

// now is the ledger time at which a state is shown.
func (p *Projection) now(s *aggregate.State) events.Instant {
	if p.opts.Now == nil {
		return s.Head().Time
	}
	return p.opts.Now()
}

// read runs f on the store, unless that failed before (P6).
func (p *Projection) read(f func(*pebble.DB) error) error {
	p.reading.RLock()
	defer p.reading.RUnlock()
	if p.closed {
		return ErrClosed
	}
	if err := p.fault.get(); err != nil {
		return err
	}
	err := f(p.db)
	if pebble.IsCorruptionError(err) {
		p.fault.set(err)
	}
	return err
}

// flush makes durable what was applied.
func (p *Projection) flush() error {
	return p.read(func(db *pebble.DB) error {
		if err := p.store(db); err != nil {
			return err
		}
		return p.fault.guard(db.Flush)
	})
}

// Close ends every wait, makes durable what was applied, and closes the store. It
// may be called again.
func (p *Projection) Close() (err error) {
	p.closing.Do(func() { err = p.close() })
	if err != nil {
		return fmt.Errorf("close projection: %w", err)
	}
	return nil
}

func (p *Projection) close() error {
	p.applying.Lock()
	close(p.done) // nothing is applied any more
	p.applying.Unlock()
	err := p.flush()
	p.reading.Lock()
	defer p.reading.Unlock()
	p.closed = true
	return errors.Join(err, p.fault.close(p.db))
}
