package projector

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"
	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
)

// flushEvents is how many events a crash may take from the store: as many as are
// folded again in about a second.
const flushEvents = 16 << 10

// Apply folds the next entry, stores what it changed together with the position,
// shows the new state and wakes who waits for it. A *[eventlog.Distrust] says
// that the entry does not follow, and nothing of it is applied (P5). A store that
// fails is a [Projection.Fault], no error: the state goes on.
func (p *Projection) Apply(ctx context.Context, e events.Stored) error {
	return p.ApplyMany(ctx, []events.Stored{e})
}

// ApplyMany is [Projection.Apply] for consecutive entries in one batch. All of
// them are applied, or those before the first that does not follow.
func (p *Projection) ApplyMany(ctx context.Context, entries []events.Stored) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.applying.Lock()
	defer p.applying.Unlock()
	state := p.base.Branch()
	followed, broken := fold(state, entries)
	if len(followed) == 0 {
		return broken
	}
	touched := state.Touched()
	if err := p.store(state, touched, followed); errors.Is(err, ErrClosed) {
		return err
	} else if err != nil {
		p.fault.set(err)
	}
	state.Settle()
	p.base = state
	p.state.Store(state.Branch())
	p.waiting.wake(state.Seq(), touched)
	return broken
}

// fold applies entries to a state up to the first that does not follow.
func fold(s *aggregate.State, entries []events.Stored) ([]events.Stored, error) {
	for i := range entries {
		if err := aggregate.Follows(s, &entries[i]); err != nil {
			return entries[:i], &eventlog.Distrust{Reason: err.Error(), Seq: entries[i].Seq}
		}
		s.Apply(&entries[i])
	}
	return entries, nil
}

// store writes everything that entries changed in one batch (P1). It is not
// synced: after a crash the store is at an earlier position, and the log is read
// again from there.
func (p *Projection) store(state *aggregate.State, touched []aggregate.Key, entries []events.Stored) error {
	for i := range entries {
		p.unflushed += len(entries[i].Events)
	}
	flush := p.unflushed >= flushEvents
	if flush {
		p.unflushed = 0
	}
	return p.read(func(db *pebble.DB) error {
		b := db.NewBatch()
		if err := p.write(b, state, touched, entries); err != nil {
			return errors.Join(err, b.Close())
		}
		return p.fault.guard(func() error {
			err := b.Commit(pebble.NoSync)
			if err == nil && flush {
				_, err = db.AsyncFlush()
			}
			return errors.Join(err, b.Close())
		})
	})
}

func (p *Projection) write(b *pebble.Batch, state *aggregate.State, touched []aggregate.Key, entries []events.Stored) error {
	for _, k := range touched {
		if err := writeRecord(b, state, k); err != nil {
			return err
		}
		if k.Kind != aggregate.KindEffect {
			continue
		}
		id := events.EffectID(k.ID)
		if err := moveRows(b, p.base.Effect(id), state.Effect(id)); err != nil {
			return err
		}
	}
	for i := range entries {
		for j := range entries[i].Events {
			if err := writeEvent(b, &entries[i].Events[j], events.Position{Seq: entries[i].Seq, Index: j}); err != nil {
				return err
			}
		}
	}
	return nil
}
