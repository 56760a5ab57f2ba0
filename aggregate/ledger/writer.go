package ledger

import (
	"context"
	"errors"
	"slices"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/events/wire"
	"github.com/oklog/ulid/v2"
)

// Run decides and appends until ctx ends; then it answers what waits and returns
// nil.
func (l *Ledger) Run(ctx context.Context) error {
	w := writing{Ledger: l}
	for w.step(ctx) {
	}
	w.stop()
	return nil
}

// writing is the writer at work. While an entry is in flight the next one is
// decided on what it leaves, and is ready to go when it lands.
type writing struct {
	*Ledger
	flying *turn      // offered to the log; nil: none
	open   *turn      // decided on what flying leaves; nil: nothing yet
	again  []*pending // to be decided before what waits in the queue
}

// step goes on to the next thing that happens; false when ctx has ended.
func (w *writing) step(ctx context.Context) bool {
	if w.flying != nil {
		w.fill(w.cfg.MaxEvents / 2) // the rest when it lands: who comes late has his turn too
		select {
		case <-w.queue.ready:
		case err := <-w.flying.landed:
			w.land(ctx, err)
		}
		return true
	}
	if ctx.Err() != nil {
		return false
	}
	w.fill(w.cfg.MaxEvents)
	if w.open == nil {
		return w.queue.wait(ctx) == nil
	}
	w.launch(ctx)
	return true
}

// fill decides what waits, until the open turn has so many events or commands.
func (w *writing) fill(most int) {
	for w.open == nil || max(len(w.open.events), len(w.open.batch)) < most {
		p := w.next()
		if p == nil {
			return
		}
		if refusal := w.halted(); refusal != nil {
			answer([]*pending{p}, refusal)
			continue
		}
		if w.open == nil {
			w.open = w.begin()
		}
		if !w.decide(w.open, p) {
			w.again = slices.Insert(w.again, 0, p)
			return
		}
	}
}

// next takes the command whose turn it is; nil if none waits.
func (w *writing) next() *pending {
	for len(w.again) > 0 {
		p := w.again[0]
		w.again = w.again[1:]
		if !w.queue.left(p) {
			return p
		}
	}
	return w.queue.next()
}

// halted says why nothing is written now; nil if it is.
func (l *Ledger) halted() *wire.Error {
	if f := l.fault.Load(); f != nil {
		return f
	}
	if _, trusted := l.clock.now(); !trusted {
		return wire.Errorf(wire.ClockUntrusted, "the wall clock stepped against the monotonic clock; wait or confirm it")
	}
	return nil
}

func refused(e *wire.Error) Outcome { return Outcome{Decision: aggregate.Decision{Refusal: e}} }

// begin opens a turn on what the entry in flight leaves, or on the adopted state.
func (w *writing) begin() *turn {
	base := w.state.Load()
	if w.flying != nil {
		base = w.flying.branch
	}
	at, _ := w.clock.now()
	return &turn{base: base, branch: base.Branch(), at: at}
}

// launch offers the open turn to the log. If a caller has left, or time has passed
// over it or is not trusted any more, it is decided again instead.
func (w *writing) launch(ctx context.Context) {
	t := w.open
	w.open = nil
	if f := w.fault.Load(); f != nil {
		answer(t.batch, f)
		return
	}
	if now, trusted := w.clock.now(); !trusted || now.Sub(t.at) > maxAge || !w.queue.take(t.batch) {
		w.again = slices.Concat(t.batch, w.again)
		return
	}
	w.flying = t
	t.landed = make(chan error, 1)
	if len(t.events) == 0 {
		t.landed <- w.confirmEnd(ctx, t.base)
		return
	}
	entry := t.seal(w.cfg.Writer)
	w.clock.wrote(t.at)
	w.appended.Add(t.size)
	go func() { t.landed <- w.log.Append(ctx, entry) }()
}

// land ends the flight: the branch is adopted and every caller answered (W1, W3),
// or what was decided is decided again, or was in vain.
func (w *writing) land(ctx context.Context, err error) {
	t := w.flying
	w.flying = nil
	if err == nil {
		w.state.Store(t.branch)
		t.answer()
		return
	}
	w.appended.Add(-t.size)
	if w.open != nil { // decided on what is not
		w.again = slices.Concat(w.open.batch, w.again)
		w.open = nil
	}
	if errors.Is(err, eventlog.ErrConflict) {
		if err = w.CatchUp(ctx); err == nil {
			w.again = slices.Concat(t.batch, w.again)
			return
		}
	}
	w.fail(t.batch, err)
}

// stop answers every command that was never offered to the log.
func (w *writing) stop() {
	left := w.again
	if w.open != nil {
		left = slices.Concat(w.open.batch, left)
	}
	answer(slices.Concat(left, w.queue.close()), unavailable("the node is stopping"))
}

// confirmEnd makes sure that answers which write nothing were decided on the end
// of the log.
func (l *Ledger) confirmEnd(ctx context.Context, base *aggregate.State) error {
	if !l.cfg.Shared {
		return nil
	}
	last, err := l.log.Last(ctx)
	if err == nil && last > base.Seq() {
		err = eventlog.ErrConflict
	}
	return err
}

// fail answers a batch whose entry was not acknowledged.
func (l *Ledger) fail(batch []*pending, err error) {
	var refusal *wire.Error
	switch {
	case errors.Is(err, eventlog.ErrUntrusted):
		l.Distrust(err.Error())
		refusal = l.fault.Load()
	case errors.Is(err, eventlog.ErrFull):
		refusal = wire.Errorf(wire.CapacityExhausted, "the log is full; nothing was written")
	case errors.Is(err, eventlog.ErrUnavailable), errors.Is(err, eventlog.ErrClosed):
		refusal = unavailable("the log does not take entries; nothing was written")
	default:
		refusal = wire.Errorf(wire.CommitUnknown, "the log has not answered; ask again with the same request")
	}
	l.cfg.Logger.Warn("entry not acknowledged", "error", err, "code", refusal.Code)
	answer(batch, refusal)
}

func answer(batch []*pending, e *wire.Error) {
	for _, p := range batch {
		p.reply <- refused(e)
	}
}

// CatchUp folds what others appended. Only before Run, or from it.
func (l *Ledger) CatchUp(ctx context.Context) error {
	state := l.state.Load().Branch()
	for {
		entries, err := l.log.Read(ctx, state.Seq()+1, 256)
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			break
		}
		for i := range entries {
			if fault := aggregate.Follows(state, &entries[i]); fault != nil {
				return &eventlog.Distrust{Reason: fault.Error(), Seq: entries[i].Seq}
			}
			state.Apply(&entries[i])
		}
	}
	state.ClearTouched()
	l.clock.wrote(state.Head().Time)
	l.state.Store(state)
	return nil
}

// newID draws where the fresh ids of one decision start.
func (l *Ledger) newID(at events.Instant) ulid.ULID {
	return ulid.MustNew(ulid.Timestamp(at.Time()), l.cfg.Entropy)
}
