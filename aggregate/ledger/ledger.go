package ledger

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// Config of a writer. Zero values mean the defaults.
type Config struct {
	Writer events.Incarnation // this life of the node's process
	Read   func() Reading     // the clocks of the machine
	// Entropy makes fresh ids: cryptographically random.
	Entropy io.Reader
	// Shared: other processes may write to the log. A refusal is then decided only
	// on a state that was the log's end after the request came.
	Shared bool
	// Full says why no new effect is taken; empty while there is room. Nil: always.
	Full func() string
	// Room is what the log still takes, as last measured. Nil: whatever comes.
	Room func() Room
	// MaxEvents and MaxBytes bound an entry (256 and 512 KiB).
	MaxEvents, MaxBytes int
	// CommitTimeout is how long a caller waits for its commit (10 s).
	CommitTimeout time.Duration
	Logger        *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.MaxEvents == 0 {
		c.MaxEvents = 256
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = 512 << 10
	}
	if c.CommitTimeout == 0 {
		c.CommitTimeout = 10 * time.Second
	}
	if c.Full == nil {
		c.Full = func() string { return "" }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// appendLog is the log as the writer needs it.
type appendLog interface {
	Append(ctx context.Context, s events.Stored) error
	Read(ctx context.Context, from uint64, most int) ([]events.Stored, error)
	Last(ctx context.Context) (uint64, error)
}

// Ledger is the writer. Do and the state are safe for concurrent use; Run is
// called once.
type Ledger struct {
	cfg   Config
	log   appendLog
	queue *queue
	clock *clock
	state atomic.Pointer[aggregate.State] // adopted; never changed after it is stored
	fault atomic.Pointer[wire.Error]      // why nothing is written any more

	appended atomic.Int64 // bytes
}

// New returns a writer that starts from a state folded from the log. Run brings
// it to the log's end.
func New(cfg Config, log appendLog, state *aggregate.State) *Ledger {
	l := &Ledger{cfg: cfg.withDefaults(), log: log, queue: newQueue(), clock: newClock(cfg.Read, state.Head().Time)}
	l.state.Store(state)
	return l
}

// Outcome is what became of a command.
type Outcome struct {
	aggregate.Decision
	// State holds what the decision left, durably; it may be later. Read only.
	State *aggregate.State
	// At is the ledger time of the decision.
	At events.Instant
}

// State is the state of the last acknowledged entry. Read only.
func (l *Ledger) State() *aggregate.State { return l.state.Load() }

// Now is ledger time, and whether the clock is trusted.
func (l *Ledger) Now() (events.Instant, bool) { return l.clock.now() }

// ConfirmClock trusts the wall clock as it stands: the operator looked.
func (l *Ledger) ConfirmClock() { l.clock.confirm() }

// Distrust stops all writing for good; the first reason stays.
func (l *Ledger) Distrust(reason string) {
	if l.fault.CompareAndSwap(nil, wire.Errorf(wire.LedgerUntrusted, reason)) {
		l.cfg.Logger.Error("the ledger is not trusted: writes and dispatch stop", "reason", reason)
	}
}

// Distrusted is the reason for which nothing is written; empty while trusted.
func (l *Ledger) Distrusted() string {
	if f := l.fault.Load(); f != nil {
		return f.Message
	}
	return ""
}

// Do has a command decided and made durable. It fails with commit_unknown if the
// fate of the command is open, and with ledger_unavailable, ledger_untrusted or
// clock_untrusted if it was provably not written. A refusal by the law is in the
// outcome, not an error.
func (l *Ledger) Do(ctx context.Context, who events.Actor, c aggregate.Command) (Outcome, error) {
	if f := l.fault.Load(); f != nil {
		return Outcome{}, f
	}
	p := &pending{who: who, command: c, reply: make(chan Outcome, 1)}
	if !l.queue.put(p) {
		return Outcome{}, unavailable("the node is stopping")
	}
	timeout := time.NewTimer(l.cfg.CommitTimeout)
	defer timeout.Stop()
	select {
	case o := <-p.reply:
		return o.split()
	case <-timeout.C:
	case <-ctx.Done():
	}
	if l.queue.leave(p) {
		return Outcome{}, unavailable("the writer did not take the command up in time; nothing was written")
	}
	select {
	case o := <-p.reply:
		return o.split()
	default:
		return Outcome{}, wire.Errorf(wire.CommitUnknown, "the log has not answered; ask again with the same request")
	}
}

// split separates what the law refused from what the writer could not do.
func (o Outcome) split() (Outcome, error) {
	if o.State == nil {
		return Outcome{}, o.Refusal
	}
	return o, nil
}

func unavailable(why string) *wire.Error { return wire.Errorf(wire.LedgerUnavailable, why) }
