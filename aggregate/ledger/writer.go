package ledger

import (
	"context"
	"errors"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/events/wire"
	"github.com/oklog/ulid/v2"
)

// Run decides and appends until ctx ends; then it answers what waits and
// returns nil. It returns early only when the log is not trusted.
func (l *Ledger) Run(ctx context.Context) error {
	defer l.stop()
	for {
		if err := l.queue.wait(ctx); err != nil {
			return nil
		}
		for {
			batch := l.take(nil)
			if len(batch) == 0 {
				break
			}
			l.commit(ctx, batch)
		}
	}
}

// stop answers every command that was never taken up.
func (l *Ledger) stop() {
	for _, p := range l.queue.close() {
		p.reply <- refused(unavailable("the node is stopping"))
	}
}

func refused(e *wire.Error) Outcome { return Outcome{Decision: aggregate.Decision{Refusal: e}} }

// take moves at least one waiting command, and at most as many as can fit an
// entry, behind the ones given.
func (l *Ledger) take(batch []*pending) []*pending {
	for len(batch) < l.cfg.MaxEvents {
		p := l.queue.next()
		if p == nil {
			break
		}
		batch = append(batch, p)
	}
	return batch
}

// commit brings every command of a batch to its answer, in as many entries as it
// takes.
func (l *Ledger) commit(ctx context.Context, batch []*pending) {
	for len(batch) > 0 {
		if f := l.fault.Load(); f != nil {
			answer(batch, refused(f))
			return
		}
		at, trusted := l.clock.now()
		if !trusted {
			answer(batch, refused(wire.Errorf(wire.ClockUntrusted, "the wall clock stepped against the monotonic clock; wait or confirm it")))
			return
		}
		t := l.decide(batch, at)
		err := l.append(ctx, t)
		switch {
		case err == nil:
			t.answer(batch)
			batch = batch[len(t.outcomes):]
		case errors.Is(err, eventlog.ErrConflict):
			if err := l.catchUp(ctx); err != nil {
				l.fail(batch, err)
				return
			}
		default:
			l.fail(batch, err)
			return
		}
	}
}

// turn is one entry being decided.
type turn struct {
	branch   *aggregate.State
	at       events.Instant
	events   []events.Event
	encoded  [][]byte
	bytes    int
	outcomes []Outcome
}

// decide decides commands, each on what the ones before it leave, until the
// entry is full.
func (l *Ledger) decide(batch []*pending, at events.Instant) *turn {
	base := l.state.Load()
	t := &turn{branch: base.Branch(), at: at}
	for _, p := range batch {
		if len(t.events) > 0 && !l.fits(t, p.command) {
			break
		}
		if refusal := l.noRoom(t, p.command); refusal != nil {
			t.outcomes = append(t.outcomes, Outcome{Decision: aggregate.Decision{Refusal: refusal}, At: at})
			continue
		}
		d := t.branch.Decide(p.command, aggregate.Input{At: at, ID: l.newID(at), Seq: base.Seq() + 1, Index: len(t.events)})
		t.events = append(t.events, d.Events...)
		t.encoded = append(t.encoded, d.Encoded...)
		for _, b := range d.Encoded {
			t.bytes += len(b)
		}
		t.outcomes = append(t.outcomes, Outcome{Decision: d, At: at})
	}
	return t
}

// fits reports whether another decision surely fits the entry.
func (l *Ledger) fits(t *turn, c aggregate.Command) bool {
	most := aggregate.MostEvents(c)
	record := int(l.State().Head().Limits.RecordBytes)
	return len(t.events)+most <= l.cfg.MaxEvents && t.bytes+min(most, 4)*record <= l.cfg.MaxBytes
}

// append makes a turn durable and adopts its branch (W2, W3).
func (l *Ledger) append(ctx context.Context, t *turn) error {
	base := l.state.Load()
	if len(t.events) == 0 {
		return l.confirmEnd(ctx, base)
	}
	head := base.Head()
	ledgerID := head.LedgerID
	if opened, ok := t.events[0].Data.(events.LedgerOpened); ok {
		ledgerID = opened.LedgerID
	}
	entry := events.SealEncoded(events.Entry{V: events.Format, LedgerID: ledgerID, Seq: head.Seq + 1, Prev: head.SHA256, Time: t.at,
		Writer: l.cfg.Writer, Events: t.events}, t.encoded)
	if err := l.log.Append(ctx, entry); err != nil {
		return err
	}
	l.appended.Add(int64(len(entry.Body)) + entryBytes)
	t.branch.Seal(entry.Seq, entry.SHA256, t.at)
	t.branch.Settle()
	l.clock.wrote(t.at)
	l.state.Store(t.branch)
	return nil
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

// answer sends every outcome of the turn to its caller (W1).
func (t *turn) answer(batch []*pending) {
	for i := range t.outcomes {
		t.outcomes[i].State = t.branch
		batch[i].reply <- t.outcomes[i]
	}
}

func answer(batch []*pending, o Outcome) {
	for _, p := range batch {
		p.reply <- o
	}
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
	answer(batch, refused(refusal))
}

// CatchUp folds what others appended. Only before Run, or from it.
func (l *Ledger) CatchUp(ctx context.Context) error { return l.catchUp(ctx) }

func (l *Ledger) catchUp(ctx context.Context) error {
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
	state.Settle()
	l.clock.wrote(state.Head().Time)
	l.state.Store(state)
	return nil
}

// newID draws where the fresh ids of one decision start.
func (l *Ledger) newID(at events.Instant) ulid.ULID {
	return ulid.MustNew(ulid.Timestamp(at.Time()), l.cfg.Entropy)
}
