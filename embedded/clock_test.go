package embedded_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/ledger"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/events/wire"
)

// tick has something written, or says why it cannot be.
func tick(t testing.TB, l *ledger.Ledger, log eventlog.Log) error {
	t.Helper()
	before, err := log.Last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at, _ := l.Now()
	_, refused := l.Do(t.Context(), operator.Actor(), aggregate.OpenTask{Caller: operator, ExpiresAt: at.Add(time.Hour),
		Request: wire.TaskOpenRequest{TaskID: events.TaskID(newIncarnation()), Budgets: events.Amounts{}}})
	after, err := log.Last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if (refused == nil) != (after == before+1) {
		t.Fatalf("%v, and the log went from entry %d to %d", refused, before, after)
	}
	return refused
}

// A step of the wall clock stops writes until it passes, or an operator confirms
// it; ledger time never goes back (SPEC 4).
func TestClockSteps(t *testing.T) {
	t.Parallel()
	h := newHands()
	log := eventlog.NewMemory("", time.Now())
	l := write(t, ledger.Config{Read: h.read}, log)
	found(t, l, "producer")
	write := func(want wire.Code) {
		t.Helper()
		if err := tick(t, l, log); codeOf(err) != want {
			t.Fatalf("%v, want %q", err, want)
		}
	}
	for range 100 { // drift is no step
		h.move(10*time.Second, 10*time.Second+40*time.Millisecond)
		write("")
	}
	h.step(5 * time.Second)
	write("")
	h.step(-5 * time.Second)
	write("")
	for _, step := range []time.Duration{5001 * time.Millisecond, -5001 * time.Millisecond, 24 * time.Hour, -24 * time.Hour} {
		h.step(step)
		write(wire.ClockUntrusted)
		h.pass(time.Minute) // time alone does not make it right
		write(wire.ClockUntrusted)
		h.step(-step) // the right time does
		write("")
		h.step(step)
		write(wire.ClockUntrusted)
		l.ConfirmClock()
		write("")
		h.pass(time.Second)
		write("")
	}
	var last events.Instant
	for _, entry := range readAll(t, log) {
		if entry.Time < last {
			t.Fatalf("entry %d is of %s, the one before of %s", entry.Seq, entry.Time, last)
		}
		last = entry.Time
	}
}

// A last entry in the future stops writes at start, until the wall clock is there
// or an operator confirms it.
func TestLastEntryInFuture(t *testing.T) {
	t.Parallel()
	h := newHands()
	log := eventlog.NewMemory("", time.Now())
	h.step(time.Minute)
	l, stop := writeUntil(t, ledger.Config{Read: h.read}, log)
	found(t, l, "producer")
	stop()
	h.step(-time.Minute)
	for _, confirmed := range []bool{true, false} {
		l, stop := writeUntil(t, ledger.Config{Read: h.read}, log)
		if err := tick(t, l, log); codeOf(err) != wire.ClockUntrusted {
			t.Fatal(err)
		}
		if confirmed {
			l.ConfirmClock()
		} else {
			h.pass(54 * time.Second)
			if err := tick(t, l, log); codeOf(err) != wire.ClockUntrusted {
				t.Fatal(err)
			}
			h.pass(2 * time.Second)
		}
		if err := tick(t, l, log); err != nil {
			t.Fatal(err)
		}
		stop()
	}
	folded(t, readAll(t, log))
}

// A node whose log ends in the future serves reads and writes nothing, not even
// that it is there, until an operator confirms the clock.
func TestNodeWithUntrustedClock(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := running(t, s)
	e := r.submit("r", "c")
	r.stop()
	r.store(func(js jetstream.JetStream) {
		log, err := eventlog.Attach(t.Context(), js, eventlog.Config{LedgerID: r.home().LedgerID()})
		if err != nil {
			t.Fatal(err)
		}
		h := newHands()
		h.step(time.Hour)
		l, stop := writeUntil(t, ledger.Config{Read: h.read}, log)
		defer stop()
		if err := tick(t, l, log); err != nil {
			t.Fatal(err)
		}
	})
	r.start()
	before := r.last()
	if status := r.status(); !status.Trusted || status.ClockTrusted || status.Dispatching {
		t.Fatalf("%+v", status)
	}
	settledAs(t, r.get(e.EffectID), events.OutcomeSucceeded)
	_, err := r.as("producer").Submit(t.Context(), wire.SubmitRequest{PrepareRequest: charge("r", "later", 5)})
	refusedWith(t, err, wire.ClockUntrusted)
	refusedWith(t, r.node.Reload(t.Context()), wire.ClockUntrusted)
	if last := r.last(); last != before {
		t.Fatalf("the log went from entry %d to %d", before, last)
	}
	confirm := func(who string) (wire.ClockReply, error) {
		return client.Call[wire.EmptyRequest, wire.ClockReply](t.Context(), r.as(who), wire.LedgerConfirm, wire.EmptyRequest{})
	}
	if _, err := confirm("producer"); err == nil {
		t.Fatal("a producer confirms the clock")
	}
	if reply, err := confirm("operator"); err != nil || !reply.ClockTrusted {
		t.Fatal(reply, err)
	}
	// Whoever asks at once comes after the take-over all the same.
	var after wire.Effect
	p := r.as("producer")
	eventually(t, "the node takes over", func() bool {
		after, err = p.Submit(t.Context(), wire.SubmitRequest{PrepareRequest: charge("r", "later", 5), Wait: wire.WaitTerminal})
		return codeOf(err) != wire.ClockUntrusted
	})
	if err != nil {
		t.Fatal(err)
	}
	settledAs(t, after, events.OutcomeSucceeded)
	if !after.CreatedAt.Time().After(time.Now().Add(50 * time.Minute)) {
		t.Fatalf("ledger time went back: %s", show(after))
	}
	s.served(t, 2)
	entries := readAll(t, r.log())
	if opened := entries[before].Events[0].Type; opened != events.TypeLedgerOpened {
		t.Fatalf("the first thing written is %s", opened)
	}
}
