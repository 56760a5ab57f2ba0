package ledger

import (
	"testing"
	"time"

	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/events/wire"
)

// What was decided before trust ended is not offered to the log after it (W6).
func TestTurnBehindDistrust(t *testing.T) {
	w := newWriting(t, "o")
	let := w.holds()
	first := w.asks(t, "o", "first")
	w.launches(t)
	second := w.asks(t, "o", "second")
	w.step(t.Context())
	if w.open == nil {
		t.Fatal("the second is not decided yet")
	}
	w.Distrust("found unfit")
	let(nil)
	w.lands(t)
	if o := <-first.reply; o.Refusal != nil { // it was in the log
		t.Fatal(o.Refusal)
	}
	last := w.State().Seq()
	w.step(t.Context())
	if w.flying != nil {
		t.Fatal("it is offered to the log")
	}
	if o := <-second.reply; o.Refusal == nil || o.Refusal.Code != wire.LedgerUntrusted {
		t.Fatalf("%+v", o.Decision)
	}
	if end, err := w.log.Last(t.Context()); err != nil || end != last {
		t.Fatalf("entry %d was written without trust, %v", end, err)
	}
}

// Time that passed over a decided turn is seen: it is decided again, so that no
// entry comes late enough to admit what has expired (W5).
func TestOldTurnIsDecidedAgain(t *testing.T) {
	w := newWriting(t, "o")
	let := w.holds()
	w.asks(t, "o", "first")
	w.launches(t)
	w.asks(t, "o", "second")
	w.step(t.Context())
	later := start.Add(time.Minute)
	w.clock.read = func() Reading { return Reading{Wall: later, Mono: time.Minute} }
	let(nil)
	w.lands(t)
	for w.flying == nil { // refused, and decided anew
		w.step(t.Context())
	}
	if w.flying.at != later || len(w.flying.batch) != 1 {
		t.Fatalf("an entry of %s is offered at %s", w.flying.at, later)
	}
	w.lands(t)
}

// What became of an entry is what its callers are told: only what is proven not
// stored is unavailable (W4).
func TestFateOfAnEntry(t *testing.T) {
	for fate, code := range map[error]wire.Code{
		eventlog.ErrAppendUnknown: wire.CommitUnknown, eventlog.ErrUnavailable: wire.LedgerUnavailable, eventlog.ErrClosed: wire.LedgerUnavailable,
		eventlog.ErrFull: wire.CapacityExhausted, &eventlog.Distrust{Reason: "test"}: wire.LedgerUntrusted,
	} {
		w := newWriting(t, "o")
		let := w.holds()
		p := w.asks(t, "o", "task")
		before := w.State()
		w.launches(t)
		let(fate)
		w.lands(t)
		if o := <-p.reply; o.Refusal == nil || o.Refusal.Code != code || w.State() != before {
			t.Errorf("%v: %+v", fate, o.Refusal)
		}
	}
}
