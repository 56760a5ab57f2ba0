package embedded_test

import (
	"context"
	"crypto/rand"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/ledger"
	"github.com/effectd/effectd/dispatcher"
	"github.com/effectd/effectd/dispatcher/spool"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/events/wire"
)

// bench is a writer with a dispatcher on a log in memory, where a test decides
// what becomes of each append.
type bench struct {
	testing.TB
	log   *eventlog.Memory
	spool *spool.Spool
	dir   string
	fault atomic.Pointer[func(events.Stored) error] // what becomes of an entry before it is stored
	ahead atomic.Int64                              // of the wall clock, in nanoseconds

	*ledger.Ledger
	stop func()
}

func newBench(t testing.TB, s *service) *bench {
	b := &bench{TB: t, log: eventlog.NewMemory("", time.Now()), dir: filepath.Join(t.TempDir(), "spool")}
	b.log.Before = func(e events.Stored) error {
		if f := b.fault.Load(); f != nil {
			return (*f)(e)
		}
		return nil
	}
	l, stop := writeUntil(t, ledger.Config{Read: systemClock}, b.log)
	foundFor(t, l, s.URL, "producer")
	stop()
	b.start()
	return b
}

// start begins a life of the node: its writer, its spool and its dispatcher.
func (b *bench) start() {
	b.Helper()
	clock := func() ledger.Reading {
		r := systemClock()
		r.Wall = r.Wall.Add(time.Duration(b.ahead.Load()))
		return r
	}
	l, stopWriting := writeUntil(b, ledger.Config{Read: clock, CommitTimeout: 50 * time.Millisecond}, b.log)
	b.Ledger = l
	self := events.Dispatcher{Node: "test", Incarnation: newIncarnation()}
	b.do(events.SystemActor, aggregate.OpenLedger{LedgerID: l.State().Head().LedgerID, Writer: self.Incarnation, Node: self.Node, Fingerprint: events.ZeroDigest})
	var err error
	if b.spool, err = spool.Open(vfs.Default, b.dir, 1<<20); err != nil {
		b.Fatal(err)
	}
	d := dispatcher.New(dispatcher.Config{Self: self, Now: time.Now, Entropy: rand.Reader, Retry: 10 * time.Millisecond, Logger: logger(),
		Adapters: map[string]dispatcher.Adapter{"http": dispatcher.HTTP{Now: time.Now}}}, l, unmarked{}, b.spool)
	eventually(b, "the spool is replayed", func() bool { return d.Replay(b.Context()) == nil })
	for _, id := range l.State().Orphans() {
		b.do(events.SystemActor, aggregate.Orphaned{EffectID: id})
	}
	deliveries, err := b.log.Deliveries(b.Context(), "dispatch", 1)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- d.Run(ctx, deliveries) }()
	b.stop = func() {
		cancel()
		if err := <-over; err != nil {
			b.Error(err)
		}
		deliveries.Stop()
		stopWriting()
		b.stop = func() {}
	}
	b.Cleanup(func() { b.stop() })
}

// fails sets what becomes of entries with an event of a type; nil: nothing.
func (b *bench) fails(typ events.Type, f func() error) {
	if f == nil {
		b.fault.Store(nil)
		return
	}
	g := func(e events.Stored) error {
		if slices.ContainsFunc(e.Events, func(ev events.Event) bool { return ev.Type == typ }) {
			return f()
		}
		return nil
	}
	b.fault.Store(&g)
}

func (b *bench) submit(causal string) events.EffectID {
	b.Helper()
	return b.do(producer.Actor(), prepare(b, producer, charge("r", causal, 5), true)).EffectID
}

// do decides a command, which must be accepted; on a slow machine the writer may
// not take it up within its short time at once.
func (b *bench) do(who events.Actor, c aggregate.Command) (o ledger.Outcome) {
	b.Helper()
	eventually(b, "the writer answers", func() bool {
		var err error
		o, err = b.Do(b.Context(), who, c)
		if code := codeOf(err); err != nil && code != wire.LedgerUnavailable && code != wire.CommitUnknown {
			b.Fatal(err)
		}
		return err == nil
	})
	if o.Refusal != nil {
		b.Fatal(o.Refusal)
	}
	return o
}

// settles waits for the end of an effect.
func (b *bench) settles(id events.EffectID) *aggregate.Effect {
	b.Helper()
	eventually(b, "it settles", func() bool { return b.State().Effect(id).State.Terminal() })
	return b.State().Effect(id)
}

// A result that the log does not take waits in the spool, and is appended, marked,
// when it does; the send is never repeated (SPEC 8).
func TestResultIsSpooled(t *testing.T) {
	t.Parallel()
	s := newService(t)
	b := newBench(t, s)
	b.fails(events.TypeSettled, func() error { return eventlog.ErrUnavailable })
	id := b.submit("c")
	eventually(t, "the result is spooled", func() bool { return b.spool.Len() == 1 })
	b.fails("", nil)
	e := b.settles(id)
	if e.Settled.Outcome != events.OutcomeSucceeded || !e.Settled.AuditIncomplete || e.Settled.Late {
		t.Fatalf("%+v", e.Settled)
	}
	eventually(t, "the spool is empty", func() bool { return b.spool.Len() == 0 })
	s.served(t, 1)
	folded(t, readAll(t, b.log))
}

// The same, when the process ends before the log is back.
func TestResultIsReplayed(t *testing.T) {
	t.Parallel()
	s := newService(t)
	b := newBench(t, s)
	b.fails(events.TypeSettled, func() error { return eventlog.ErrUnavailable })
	id := b.submit("c")
	eventually(t, "the result is spooled", func() bool { return b.spool.Len() == 1 })
	b.stop()
	b.fails("", nil)
	b.start()
	e := b.settles(id)
	if e.Settled.Outcome != events.OutcomeSucceeded || !e.Settled.AuditIncomplete {
		t.Fatalf("%+v", e.Settled)
	}
	if b.spool.Len() != 0 {
		t.Fatal("the spool is not empty")
	}
	s.served(t, 1)
	folded(t, readAll(t, b.log))
}

// A result whose append is merely not answered is spooled too; it is recorded
// once all the same.
func TestResultIsRecordedOnce(t *testing.T) {
	t.Parallel()
	s := newService(t)
	b := newBench(t, s)
	let := make(chan struct{})
	b.fails(events.TypeSettled, func() error { <-let; return nil })
	id := b.submit("c")
	eventually(t, "the result is spooled", func() bool { return b.spool.Len() == 1 })
	b.fails("", nil)
	close(let)
	b.settles(id)
	eventually(t, "the spool is empty", func() bool { return b.spool.Len() == 0 })
	entries := readAll(t, b.log)
	if n := count(entries, events.TypeSettled, id); n != 1 || count(entries, events.TypeContradicted, id) != 0 {
		t.Fatal(n)
	}
	s.served(t, 1)
	folded(t, entries)
}

// A claim that is not answered in time is never fired, and that is proven even
// when it was asked for again meanwhile.
func TestClaimNotAnswered(t *testing.T) {
	t.Parallel()
	s := newService(t)
	b := newBench(t, s)
	let, held := make(chan struct{}), make(chan struct{}, 64)
	b.fails(events.TypeDispatched, func() error { held <- struct{}{}; <-let; return nil })
	id := b.submit("c")
	take(t, "the claim is on its way", held)
	// Both the claim and at least one more request for it time out: the writer is busy.
	for range 3 {
		if _, err := b.Do(t.Context(), events.SystemActor, aggregate.Orphaned{}); codeOf(err) != wire.LedgerUnavailable {
			t.Fatal(err)
		}
	}
	close(let)
	e := b.settles(id)
	if e.Settled.Outcome != events.OutcomeNoEffect || e.Settled.Reason != events.ReasonNotSent {
		t.Fatalf("%+v", e.Settled)
	}
	s.served(t, 0)
	if a := b.State().Task("main", "shop").Accounts["usd_cents"]; a.Reserved != 0 || a.Spent != 0 {
		t.Fatalf("%+v", a)
	}
	if n := count(readAll(t, b.log), events.TypeDispatched, id); n != 1 {
		t.Fatalf("%d claims", n)
	}
}

// A result that comes while the clock is not trusted is kept until it is.
func TestResultOutlastsClockStep(t *testing.T) {
	t.Parallel()
	s := newService(t)
	b := newBench(t, s)
	arrived, let := s.holds()
	id := b.submit("c")
	take(t, "the send arrives", arrived)
	b.ahead.Store(int64(time.Hour))
	close(let)
	eventually(t, "the result is spooled", func() bool { return b.spool.Len() == 1 })
	b.ahead.Store(0)
	if e := b.settles(id); e.Settled.Outcome != events.OutcomeSucceeded || !e.Settled.AuditIncomplete {
		t.Fatalf("%+v", e.Settled)
	}
	eventually(t, "the spool is empty", func() bool { return b.spool.Len() == 0 })
	s.served(t, 1)
}

// A spooled result whose claim the log does not have is evidence all the same: its
// file is kept, and holds up no other.
func TestResultOfNoClaim(t *testing.T) {
	t.Parallel()
	s := newService(t)
	b := newBench(t, s)
	b.fails(events.TypeSettled, func() error { return eventlog.ErrUnavailable })
	id := b.submit("c")
	eventually(t, "the result is spooled", func() bool { return b.spool.Len() == 1 })
	records, _, err := b.spool.All()
	if err != nil || len(records) != 1 {
		t.Fatal(records, err)
	}
	b.stop()
	for i, change := range []func(*spool.Record){
		func(r *spool.Record) { r.EffectID = "00000000000000000000000000" }, // before the other in any order
		func(r *spool.Record) { r.EffectID = "7ZZZZZZZZZZZZZZZZZZZZZZZZZ" },
	} {
		r := records[0]
		change(&r)
		if err := b.spool.Put(r); err != nil {
			t.Fatal(i, err)
		}
	}
	b.fails("", nil)
	for range 2 { // also a second time
		b.start()
		if e := b.settles(id); e.Settled.Outcome != events.OutcomeSucceeded {
			t.Fatalf("%+v", e.Settled)
		}
		if n := b.spool.Len(); n != 2 {
			t.Fatalf("%d results are left, not the 2 without a claim", n)
		}
		b.stop()
	}
	s.served(t, 1)
}

// A whole node whose log goes away between claim and result.
func TestLogAwayDuringSend(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until the writer gives up")
	}
	t.Parallel()
	s := newService(t)
	r := running(t, s, "timeout: 10s", "timeout: 60s")
	r.stop()
	x := r.external()
	r.opts.ShutdownBudget = 50 * time.Millisecond
	r.start()
	arrived, let := s.holds()
	e := r.submitAndGo("r", "c")
	take(t, "the send arrives", arrived)
	x.stop()
	close(let)
	spooled := func() int {
		names, err := filepath.Glob(filepath.Join(r.dir, "spool", "*.result"))
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	eventually(t, "the result is spooled", func() bool { return spooled() == 1 })
	r.stop()
	if spooled() != 1 {
		t.Fatal("the stop lost the result")
	}
	x.start()
	r.start()
	settled := r.ended(e.EffectID)
	settledAs(t, settled, events.OutcomeSucceeded)
	if !settled.AuditIncomplete || settled.Late {
		t.Fatal(show(settled))
	}
	if spooled() != 0 {
		t.Fatal("the spool is not empty")
	}
	r.account(0, 5, 0)
	s.served(t, 1)
	folded(t, readAll(t, r.log()))
}
