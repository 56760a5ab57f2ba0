package dispatcher

import (
	"context"
	"crypto/rand"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/ledger"
	"github.com/effectd/effectd/aggregate/rehearsal"
	"github.com/effectd/effectd/dispatcher/spool"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
)

// patience is what any wait may take before it is a failure.
const patience = 60 * time.Second

// bench is a dispatcher with its writer, on a log in memory. The test is anchor and
// adapter, and has the clock.
type bench struct {
	testing.TB
	world  *rehearsal.World
	log    *eventlog.Memory
	ledger *ledger.Ledger
	taken  atomic.Uint64 // the last entry that the dispatcher asked for more behind
	spool  *spool.Spool
	cfg    Config

	decider decider  // what the dispatcher is given: the ledger
	gates   []func() // of the test
	anchor  func(context.Context, uint64, events.Digest) error
	fire    func(context.Context, Send, time.Time) aggregate.Result

	mu    sync.Mutex
	now   time.Time
	trace []string
}

// newBench is a bench whose ledger has these operations beside those of the
// rehearsal.
func newBench(t testing.TB, contracts ...string) *bench {
	b := &bench{TB: t, world: rehearsal.New(), now: rehearsal.Start.Time().Add(time.Second)}
	for _, text := range contracts {
		if d := b.world.Do(aggregate.RegisterOperation{Contract: rehearsal.Contract(text)}); d.Refusal != nil {
			t.Fatal(d.Refusal)
		}
	}
	b.log = eventlog.NewMemory(rehearsal.LedgerID, rehearsal.Start.Time())
	for _, e := range b.world.Entries {
		if err := b.log.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	b.ledger = b.writes("W")
	b.decider = b.ledger
	var err error
	if b.spool, err = spool.Open(vfs.Default, filepath.Join(t.TempDir(), "spool"), 1<<20); err != nil {
		t.Fatal(err)
	}
	b.anchor = func(context.Context, uint64, events.Digest) error { return nil }
	b.fire = func(context.Context, Send, time.Time) aggregate.Result { return proven() }
	b.cfg = Config{Self: events.Dispatcher{Node: rehearsal.Node, Incarnation: b.world.Life}, Now: b.time, Entropy: rand.Reader,
		Adapters: map[string]Adapter{"http": b}, Retry: time.Millisecond, ShutdownBudget: patience,
		Secret: func(string) (string, bool) { return "", false }}
	return b
}

// writes runs a writer on the log until the test ends.
func (b *bench) writes(life events.Incarnation) *ledger.Ledger {
	read := func() ledger.Reading {
		now := b.time()
		return ledger.Reading{Wall: events.InstantOf(now), Mono: now.Sub(rehearsal.Start.Time())}
	}
	l := ledger.New(ledger.Config{Writer: life, Read: read, Entropy: rand.Reader, Shared: true}, b.log, b.world.State.Branch())
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- l.Run(ctx) }()
	b.atEnd(func() { cancel(); <-over })
	return l
}

// dispatches runs the dispatcher until stop, or until the test ends.
func (b *bench) dispatches() (d *Dispatcher, stop func() error) {
	b.Helper()
	deliveries, err := b.log.Deliveries(b.Context(), "dispatch", 1)
	if err != nil {
		b.Fatal(err)
	}
	d = New(b.cfg, b.decider, b, b.spool)
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- d.Run(ctx, &noted{Deliveries: deliveries, taken: &b.taken}) }()
	stop = sync.OnceValue(func() error { cancel(); return take(b, "the dispatcher ends", over) })
	b.atEnd(func() { _ = stop() })
	return d, stop
}

// noted notes which entry was taken up: who asks for the next one has done with it.
type noted struct {
	eventlog.Deliveries
	last  uint64
	taken *atomic.Uint64
}

func (n *noted) Next(ctx context.Context) (eventlog.Delivery, error) {
	n.taken.Store(n.last)
	d, err := n.Deliveries.Next(ctx)
	n.last = d.Seq
	return d, err
}

// Mark is the anchor.
func (b *bench) Mark(ctx context.Context, seq uint64, sha events.Digest) error {
	return b.anchor(ctx, seq, sha)
}

// Render is the adapter.
func (b *bench) Render(s Send) (Shot, error) { return shot{b, s}, nil }

type shot struct {
	b    *bench
	send Send
}

func (s shot) Fire(ctx context.Context, deadline time.Time) aggregate.Result {
	s.b.says("fired " + string(s.send.Binding.Operation))
	return s.b.fire(ctx, s.send, deadline)
}

func (b *bench) time() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

// pass lets time pass.
func (b *bench) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

// gate is closed by let, and before anything is stopped when the test ends: what
// waits at it never outlasts a failure.
func (b *bench) gate() (closed <-chan struct{}, let func()) {
	c := make(chan struct{})
	let = sync.OnceFunc(func() { close(c) })
	b.gates = append(b.gates, let)
	return c, let
}

// atEnd has something stopped when the test ends.
func (b *bench) atEnd(stop func()) {
	b.Cleanup(func() {
		for _, let := range b.gates {
			let()
		}
		stop()
	})
}

func (b *bench) says(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trace = append(b.trace, what)
}

// said checks what happened, in order.
func (b *bench) said(want ...string) {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Equal(b.trace, want) {
		b.Fatalf("%q, want %q", b.trace, want)
	}
}

// submits has an effect admitted.
func (b *bench) submits(operation events.OperationName, causal events.CausalID) events.EffectID {
	b.Helper()
	return b.does(rehearsal.Producer.Actor(), rehearsal.Submit(rehearsal.Producer, operation, `{"account":"a","amount":100}`, "run", causal)).EffectID
}

func (b *bench) does(who events.Actor, c aggregate.Command) ledger.Outcome {
	b.Helper()
	o, err := b.ledger.Do(b.Context(), who, c)
	if err = errors.Join(err, asError(o)); err != nil {
		b.Fatal(err)
	}
	return o
}

func asError(o ledger.Outcome) error {
	if o.Refusal == nil {
		return nil
	}
	return o.Refusal
}

// settles waits for the end of an effect.
func (b *bench) settles(id events.EffectID) *events.Settled {
	b.Helper()
	b.eventually("it settles", func() bool { return b.effect(id).State.Terminal() })
	return b.effect(id).Settled
}

func (b *bench) effect(id events.EffectID) *aggregate.Effect { return b.ledger.State().Effect(id) }

func (b *bench) eventually(what string, holds func() bool) {
	b.Helper()
	tick, over := time.NewTicker(time.Millisecond), time.NewTimer(patience)
	defer tick.Stop()
	defer over.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-over.C:
			b.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// take waits for a value.
func take[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("not within %s: %s", patience, what)
		panic("unreachable")
	}
}

// proven is the result of a send that was done.
func proven() aggregate.Result {
	return aggregate.Result{Outcome: events.OutcomeSucceeded, Reason: events.ReasonClassified, Evidence: events.Evidence{Source: "adapter"}}
}
