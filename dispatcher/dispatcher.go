package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/ledger"
	"github.com/effectd/effectd/dispatcher/spool"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
)

// Config of a dispatcher. Zero values mean the defaults.
type Config struct {
	Self     events.Dispatcher // this node and this life of its process
	Now      func() time.Time
	Entropy  io.Reader // makes nonces: cryptographically random
	Adapters map[string]Adapter
	Secret   func(name string) (string, bool)
	// ShutdownBudget is what running sends get on a stop (30 s).
	ShutdownBudget time.Duration
	// Retry is how long to wait before trying again what the ledger could not
	// take (1 s).
	Retry  time.Duration
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.ShutdownBudget == 0 {
		c.ShutdownBudget = 30 * time.Second
	}
	if c.Retry == 0 {
		c.Retry = time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// decider is the ledger as the dispatcher needs it.
type decider interface {
	Do(ctx context.Context, who events.Actor, c aggregate.Command) (ledger.Outcome, error)
	State() *aggregate.State
	Distrust(reason string)
}

// marker fsyncs the claim's position outside the stream (SPEC 16).
type marker interface {
	Mark(ctx context.Context, seq uint64, sha events.Digest) error
}

// Dispatcher claims and sends.
type Dispatcher struct {
	cfg    Config
	ledger decider
	anchor marker
	spool  *spool.Spool
	work   *work
	nonces sync.Map // effect id → nonce of a claim whose fate was open
	sends  sync.WaitGroup
	active atomic.Bool
	life   context.Context // of the sends: outlives the intake by the shutdown budget
}

// New returns a dispatcher; Run starts it.
func New(cfg Config, l decider, anchor marker, sp *spool.Spool) *Dispatcher {
	d := &Dispatcher{cfg: cfg.withDefaults(), ledger: l, anchor: anchor, spool: sp}
	d.work = newWork(d.begin)
	return d
}

// Active reports whether effects are being claimed.
func (d *Dispatcher) Active() bool { return d.active.Load() }

// Run dispatches until ctx ends and every running send has been reported or
// spooled. The spool must have been replayed.
func (d *Dispatcher) Run(ctx context.Context, deliveries eventlog.Deliveries) error {
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	d.life = life
	d.active.Store(true)
	d.addAdmitted()
	err := d.follow(ctx, deliveries)
	d.active.Store(false)
	d.work.hold()
	d.drain(end)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// addAdmitted starts from the admitted effects of the state: correctness does
// not rest on what the consumer delivers.
func (d *Dispatcher) addAdmitted() {
	state := d.ledger.State()
	state.EachEffect(func(e *aggregate.Effect) bool {
		if e.Admission != nil && e.Claim == nil && !e.State.Terminal() {
			d.work.add(d.task(state, e.ID, e.Operation(), e.Prepared.Binding.OperationVersion))
		}
		return true
	})
}

// follow turns delivered entries into work. An entry is acknowledged once its
// admitted effects are in the work set.
func (d *Dispatcher) follow(ctx context.Context, deliveries eventlog.Deliveries) error {
	for {
		entry, err := deliveries.Next(ctx)
		if err != nil {
			if errors.Is(err, eventlog.ErrUntrusted) {
				d.ledger.Distrust(err.Error())
			}
			return err
		}
		if err := d.await(ctx, entry.Seq); err != nil {
			return err
		}
		state := d.ledger.State()
		for i := range entry.Events {
			if ev := &entry.Events[i]; ev.Type == events.TypeAdmitted {
				if e := state.Effect(ev.EffectID); e != nil && e.Claim == nil && !e.State.Terminal() {
					d.work.add(d.task(state, e.ID, e.Operation(), e.Prepared.Binding.OperationVersion))
				}
			}
		}
		if err := entry.Ack(); err != nil {
			d.cfg.Logger.Debug("lost ack of an entry; it comes again", "seq", entry.Seq, "error", err)
		}
	}
}

// await waits until the ledger's state holds an entry that the log delivered:
// the writer adopts its own entry only with the ack, which may come after the
// delivery, and another node's entry when it catches up.
func (d *Dispatcher) await(ctx context.Context, seq uint64) error {
	for d.ledger.State().Seq() < seq {
		// Any command makes the writer confirm the end of the log.
		if _, err := d.ledger.Do(ctx, events.SystemActor, aggregate.Orphaned{}); err != nil {
			if err := d.pause(ctx, d.cfg.Retry/20); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *Dispatcher) task(s *aggregate.State, id events.EffectID, name events.OperationName, version int64) task {
	slots := 1
	if o := s.Operation(name, version); o != nil {
		slots = max(1, o.Contract.Concurrency)
	}
	return task{id: id, operation: name, slots: slots}
}

// begin dispatches one effect in its slot.
func (d *Dispatcher) begin(t task) {
	d.sends.Add(1)
	go func() {
		defer d.sends.Done()
		defer d.work.done(t)
		for d.dispatch(d.life, t.id) == again && d.active.Load() {
			if d.pause(d.life, d.cfg.Retry) != nil {
				return
			}
		}
	}()
}

// drain gives running sends their time, then ends them.
func (d *Dispatcher) drain(end context.CancelCauseFunc) {
	over := make(chan struct{})
	go func() { d.sends.Wait(); close(over) }()
	timer := time.NewTimer(d.cfg.ShutdownBudget)
	defer timer.Stop()
	select {
	case <-over:
	case <-timer.C:
		end(ErrShutdown)
		<-over
	}
}

func (d *Dispatcher) pause(ctx context.Context, t time.Duration) error {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// nonceFor is the secret of a claim: 256 random bits in hexadecimal. While the
// fate of a claim of ours is open, it is that one's: whichever of both is in the
// log can be proved to be ours.
func (d *Dispatcher) nonceFor(id events.EffectID) (string, error) {
	if open, ok := d.nonces.Load(id); ok {
		return open.(string), nil
	}
	b := make([]byte, 32)
	if _, err := io.ReadFull(d.cfg.Entropy, b); err != nil {
		return "", fmt.Errorf("dispatcher: entropy: %w", err)
	}
	return fmt.Sprintf("%x", b), nil
}
