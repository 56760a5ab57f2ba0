package projector

import (
	"github.com/cockroachdb/pebble/v2"
	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
)

const (
	// storeEvents and storeBytes are what is stored at once if nobody reads rows
	// before. The more, the fewer versions of a record are written, and the longer
	// the next read of rows may take: some 10 ms. A backlog of twice as much is full.
	storeEvents = 4 << 10
	storeBytes  = 4 << 20
	// flushEvents is how many stored events a crash may take: as many as are folded
	// again in about a second.
	flushEvents = 16 << 10
)

// backlog are the entries that are folded and not stored yet.
type backlog struct {
	entries []events.Stored
	events  int
	bytes   int // of bodies; decoded they take a few times that
}

func (l *backlog) add(entries []events.Stored) {
	l.entries = append(l.entries, entries...)
	for i := range entries {
		l.events += len(entries[i].Events)
		l.bytes += len(entries[i].Body)
	}
}

func (l *backlog) due() bool { return l.events >= storeEvents || l.bytes >= storeBytes }

func (l *backlog) full() bool { return l.events >= 2*storeEvents || l.bytes >= 2*storeBytes }

// take gives what is not stored yet, with the state that it led to and the
// records that changed on the way, each once.
func (p *Projection) take() (*aggregate.State, []aggregate.Key, backlog) {
	p.applying.Lock()
	defer p.applying.Unlock()
	late := p.backlog
	p.backlog = backlog{}
	touched := p.base.Touched()
	p.base.ClearTouched()
	return p.State(), touched, late
}

// drain stores the backlog, or gives it up when there is no store any more (P6).
func (p *Projection) drain() {
	if p.read(p.store) != nil {
		p.take()
	}
}

// store brings the rows to the state that is shown. A store that fails is the
// fault.
func (p *Projection) store(db *pebble.DB) error {
	p.storing.Lock()
	defer p.storing.Unlock()
	return p.storeNext(db)
}

// storeNext is [Projection.store] for who holds p.storing: everything that the
// backlog changed goes into one batch (P1). The batch is not synced: after a crash
// the store is at an earlier position, and the log is read again from there.
func (p *Projection) storeNext(db *pebble.DB) error {
	state, touched, late := p.take()
	if len(late.entries) == 0 {
		return nil
	}
	b := p.batch
	b.Reset()
	if err := write(b, p.stored, state, touched, late.entries); err != nil {
		p.fault.set(err)
		return err
	}
	p.unflushed += late.events
	flush := p.unflushed >= flushEvents
	if flush {
		p.unflushed = 0
	}
	err := p.fault.guard(func() error {
		err := b.Commit(pebble.NoSync)
		if err == nil && flush {
			_, err = db.AsyncFlush()
		}
		return err
	})
	if err != nil {
		p.fault.set(err)
		return err
	}
	p.stored = state
	return nil
}

// write adds to a batch what leads from the rows of one state to those of another.
func write(b *pebble.Batch, from, to *aggregate.State, touched []aggregate.Key, entries []events.Stored) error {
	for _, k := range touched {
		if err := writeRecord(b, to, k); err != nil {
			return err
		}
		if k.Kind != aggregate.KindEffect {
			continue
		}
		id := events.EffectID(k.ID)
		if err := moveRows(b, from.Effect(id), to.Effect(id)); err != nil {
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
