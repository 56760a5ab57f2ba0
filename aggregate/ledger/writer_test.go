package ledger

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/events/wire"
)

const start = events.Instant(1_800_000_000_000_000_000)

// newWriting is a writer, at rest, on a new ledger with these operators.
func newWriting(t *testing.T, operators ...events.Principal) *writing {
	t.Helper()
	l := New(Config{Writer: "W", Read: func() Reading { return Reading{Wall: start} }, Entropy: rand.Reader},
		eventlog.NewMemory("", time.Unix(0, 0)), aggregate.New())
	w := &writing{Ledger: l}
	users := []events.User{}
	for _, p := range operators {
		users = append(users, events.User{Tenant: "main", Principal: p, Role: events.RoleOperator, PublicKey: "U" + string(p)})
	}
	for _, c := range []aggregate.Command{
		aggregate.OpenLedger{LedgerID: "01LEDGER", Writer: "W", Node: "n", Program: "p", Fingerprint: events.ZeroDigest},
		aggregate.ChangeAccess{Users: users},
	} {
		p := w.put(t, events.SystemActor, c)
		w.launches(t)
		w.lands(t)
		if o := <-p.reply; o.Refusal != nil {
			t.Fatal(o.Refusal)
		}
	}
	return w
}

func (w *writing) put(t *testing.T, who events.Actor, c aggregate.Command) *pending {
	t.Helper()
	p := &pending{who: who, command: c, reply: make(chan Outcome, 1)}
	if !w.queue.put(p) {
		t.Fatal("the queue is closed")
	}
	return p
}

// asks has an operator open a task.
func (w *writing) asks(t *testing.T, who events.Principal, task string) *pending {
	t.Helper()
	c := aggregate.Caller{Tenant: "main", Principal: who}
	return w.put(t, c.Actor(), aggregate.OpenTask{Caller: c, ExpiresAt: start.Add(time.Hour),
		Request: wire.TaskOpenRequest{TaskID: events.TaskID(task), Budgets: events.Amounts{"calls": 1}}})
}

func (w *writing) launches(t *testing.T) {
	t.Helper()
	if w.flying != nil || !w.step(t.Context()) || w.flying == nil {
		t.Fatal("nothing was launched")
	}
}

// holds keeps the next entry in the air until let, which says what becomes of it.
func (w *writing) holds() (let func(error)) {
	landing := make(chan error)
	log := w.log.(*eventlog.Memory)
	log.Before = func(events.Stored) error { return <-landing }
	return func(err error) {
		landing <- err
		log.Before = nil
	}
}

func (w *writing) lands(t *testing.T) {
	t.Helper()
	for flying := w.flying; w.flying == flying; {
		w.step(t.Context())
	}
}

// While an entry is in flight a principal with many requests fills at most half of
// the next one: who comes meanwhile is in it too (SPEC 12).
func TestTurnHasRoomForWhoComesLate(t *testing.T) {
	w := newWriting(t, "flood", "late")
	let := w.holds()
	w.asks(t, "flood", "first")
	w.launches(t)
	for i := range 2 * w.cfg.MaxEvents {
		w.asks(t, "flood", fmt.Sprint(i))
	}
	w.step(t.Context())
	if n := len(w.open.batch); n == 0 || n == w.cfg.MaxEvents {
		t.Fatalf("%d commands are decided while one is in flight", n)
	}
	late := w.asks(t, "late", "late")
	let(nil)
	w.lands(t)
	w.launches(t)
	if !slices.Contains(w.flying.batch, late) {
		t.Fatalf("the next entry has %d commands, the late one not among them", len(w.flying.batch))
	}
}

// What was decided behind an entry that failed is decided again, on what is (W3).
func TestTurnBehindFailure(t *testing.T) {
	for name, fault := range map[string]error{"not stored": eventlog.ErrUnavailable, "conflict": eventlog.ErrConflict} {
		t.Run(name, func(t *testing.T) {
			conflict := errors.Is(fault, eventlog.ErrConflict)
			w := newWriting(t, "o")
			let := w.holds()
			first := w.asks(t, "o", "same")
			w.launches(t)
			second := w.asks(t, "o", "same")
			w.step(t.Context())
			if o := w.open.outcomes; len(o) != 1 || !o[0].Repeat {
				t.Fatalf("it was not decided on what the first leaves: %+v", o)
			}
			let(fault)
			w.lands(t)
			w.launches(t)
			w.lands(t)
			if conflict { // both are decided again
				if o := <-first.reply; o.Refusal != nil || o.Repeat {
					t.Fatalf("%+v", o.Decision)
				}
			} else if o := <-first.reply; o.Refusal == nil || o.Refusal.Code != wire.LedgerUnavailable {
				t.Fatalf("%+v", o.Decision)
			}
			if o := <-second.reply; o.Refusal != nil || o.Repeat != (conflict) {
				t.Fatalf("%+v", o.Decision)
			}
		})
	}
}

// A reply waits for the entry that it was decided on (W1), and who leaves before
// his command is offered to the log is told so, and right (W4).
func TestReplyWaitsAndLeaverIsLeftOut(t *testing.T) {
	w := newWriting(t, "o")
	let := w.holds()
	w.asks(t, "o", "same")
	w.launches(t)
	repeat, leaver := w.asks(t, "o", "same"), w.asks(t, "o", "other")
	w.step(t.Context())
	if len(w.open.batch) != 2 || len(repeat.reply) != 0 {
		t.Fatalf("%d commands are decided, %d replies out", len(w.open.batch), len(repeat.reply))
	}
	if !w.queue.leave(leaver) {
		t.Fatal("a command that is only decided can still be left")
	}
	let(nil)
	w.lands(t)
	if len(repeat.reply) != 0 {
		t.Fatal("the reply went out before its own turn was over")
	}
	for len(repeat.reply) == 0 {
		w.step(t.Context())
	}
	if len(leaver.reply) != 0 || w.State().Task("main", "other") != nil {
		t.Fatal("a command was decided whose caller had left")
	}
}

// What was decided before the clock stepped is not written after it (W5).
func TestTurnBehindClockStep(t *testing.T) {
	w := newWriting(t, "o")
	let := w.holds()
	w.asks(t, "o", "first")
	w.launches(t)
	second := w.asks(t, "o", "second")
	w.step(t.Context())
	if w.open == nil || len(w.open.batch) != 1 {
		t.Fatal("it was not decided meanwhile")
	}
	w.clock.read = func() Reading { return Reading{Wall: start.Add(-2 * MaxClockStep)} }
	let(nil)
	w.lands(t)
	w.step(t.Context())
	if w.flying != nil {
		t.Fatal("it was offered to the log")
	}
	w.fill(w.cfg.MaxEvents)
	if o := <-second.reply; o.Refusal == nil || o.Refusal.Code != wire.ClockUntrusted || w.State().Task("main", "second") != nil {
		t.Fatalf("%+v", o.Decision)
	}
}
