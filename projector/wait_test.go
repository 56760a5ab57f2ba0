package projector

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// awaited starts a wait and gives what becomes of it.
func awaited(ctx context.Context, p *Projection, seen *wire.Effect, done func(*wire.Effect) bool) <-chan *wire.Effect {
	out := make(chan *wire.Effect, 1)
	go func() {
		v, _ := p.Await(ctx, seen, done)
		out <- v
	}()
	return out
}

func terminal(v *wire.Effect) bool { return v.State.Terminal() }

// seenAt is an effect as the writer showed it when an entry was acknowledged.
func seenAt(id events.EffectID, seq int) *wire.Effect {
	return &wire.Effect{EffectID: id, State: wire.StatePrepared, Position: events.Position{Seq: uint64(seq)}}
}

// A wait may begin before the effect is known, passes every state by that does not
// satisfy it, and ends with the one that does.
func TestAwaitWakes(t *testing.T) {
	w := newWorld(t)
	p := fresh(t)
	apply(t, p, w.entries...)
	before := len(w.entries)
	id := w.settled()
	seen := seenAt(id, before+1)
	got := awaited(context.Background(), p, seen, terminal)
	claimed := awaited(context.Background(), p, seen, func(v *wire.Effect) bool { return v.State == wire.StateDispatched })
	apply(t, p, w.entries[before:before+2]...)
	if v := <-claimed; v == nil || v.State != wire.StateDispatched {
		t.Fatalf("%+v", v)
	}
	apply(t, p, w.entries[before+2:]...)
	if v := <-got; v == nil || v.State != wire.StateSettled || v.Position != p.State().Head().Last {
		t.Errorf("%+v", v)
	}
}

// When time is up the answer is the state as it then is.
func TestAwaitEndsWithContext(t *testing.T) {
	w := newWorld(t)
	p := fresh(t)
	id := w.admitted()
	apply(t, p, w.entries...)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	last := len(w.entries)
	v, err := p.Await(ctx, seenAt(id, last), terminal)
	if !errors.Is(err, context.Canceled) || v.State != wire.StateAdmitted {
		t.Error(v, err)
	}
	// What the writer knows and the projection does not is not taken back.
	for _, seen := range []*wire.Effect{seenAt(id, last+1), seenAt("01LATER", last+1)} {
		if v, err := p.Await(ctx, seen, terminal); !errors.Is(err, context.Canceled) || v != seen {
			t.Error(v, err)
		}
	}
	if err := p.AwaitPosition(ctx, events.Position{Seq: 100}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if len(p.waiting.effects) != 0 || len(p.waiting.positions) != 0 {
		t.Error("somebody still waits")
	}
}

// P8: an entry wakes those who wait for what it names, nobody else.
func TestWakesNobodyElse(t *testing.T) {
	w := newWorld(t)
	a, b := w.admitted(), w.admitted()
	p := fresh(t)
	apply(t, p, w.entries...)
	wokenA, leaveA := p.waiting.forEffect(a)
	wokenB, leaveB := p.waiting.forEffect(b)
	wokenNext, leaveNext := p.waiting.forEntry(uint64(len(w.entries)) + 1)
	wokenLater, leaveLater := p.waiting.forEntry(uint64(len(w.entries)) + 2)
	defer func() { leaveA(); leaveB(); leaveNext(); leaveLater() }()
	w.must(w.claim(a))
	apply(t, p, w.entries[len(w.entries)-1])
	if len(wokenA) != 1 || len(wokenB) != 0 || len(wokenNext) != 1 || len(wokenLater) != 0 {
		t.Error(len(wokenA), len(wokenB), len(wokenNext), len(wokenLater))
	}
}

// An effect that leaves the live state while somebody waits for it.
func TestAwaitCollected(t *testing.T) {
	w := newWorld(t)
	id := w.settled()
	p := fresh(t)
	apply(t, p, w.entries...)
	got := awaited(context.Background(), p, seenAt(id, len(w.entries)), func(*wire.Effect) bool { return p.State().Effect(id) == nil })
	w.at = w.at.Add(200 * time.Hour)
	w.must(aggregate.Collect{Limit: 10})
	apply(t, p, w.entries[len(w.entries)-1])
	if v := <-got; v == nil || v.State != wire.StateSettled || v.Outcome != events.OutcomeSucceeded || v.Operation != "" {
		t.Errorf("%+v", v)
	}
}
