package ledger

import (
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
)

// maxAge is how old the ledger time of a turn may be when its entry is offered.
const maxAge = 500 * time.Millisecond

// turn is one entry being decided.
type turn struct {
	base     *aggregate.State // before it; not changed
	branch   *aggregate.State // after it
	at       events.Instant
	batch    []*pending
	outcomes []Outcome // of the batch
	events   []events.Event
	encoded  [][]byte
	bytes    int

	size   int64      // what it takes in the log, once sealed
	landed chan error // gets what became of the entry
}

// decide decides a command on what the ones before it leave; false if it does not
// surely fit the entry.
func (l *Ledger) decide(t *turn, p *pending) bool {
	if len(t.events) > 0 && !l.fits(t, p.command) {
		return false
	}
	o := Outcome{At: t.at}
	if o.Refusal = l.noRoom(t, p.command); o.Refusal == nil {
		o.Decision = t.branch.Decide(p.command, aggregate.Input{At: t.at, ID: l.newID(t.at), Seq: t.base.Seq() + 1, Index: len(t.events)})
	}
	t.events = append(t.events, o.Events...)
	t.encoded = append(t.encoded, o.Encoded...)
	for _, b := range o.Encoded {
		t.bytes += len(b)
	}
	t.batch, t.outcomes = append(t.batch, p), append(t.outcomes, o)
	return true
}

// fits reports whether another decision surely fits the entry.
func (l *Ledger) fits(t *turn, c aggregate.Command) bool {
	most := aggregate.MostEvents(c)
	record := int(t.base.Head().Limits.RecordBytes)
	return len(t.events)+most <= l.cfg.MaxEvents && t.bytes+min(most, 4)*record <= l.cfg.MaxBytes
}

// seal makes the entry of the turn; nothing more is decided in it.
func (t *turn) seal(writer events.Incarnation) events.Stored {
	head := t.base.Head()
	id := head.LedgerID
	if opened, ok := t.events[0].Data.(events.LedgerOpened); ok {
		id = opened.LedgerID
	}
	entry := events.SealEncoded(events.Entry{V: events.Format, LedgerID: id, Seq: head.Seq + 1, Prev: head.SHA256, Time: t.at,
		Writer: writer, Events: t.events}, t.encoded)
	t.branch.Seal(entry.Seq, entry.SHA256, t.at)
	t.branch.ClearTouched()
	t.size = int64(len(entry.Body)) + entryBytes
	return entry
}

// answer sends every outcome of the turn to its caller (W1).
func (t *turn) answer() {
	for i := range t.outcomes {
		t.outcomes[i].State = t.branch
		t.batch[i].reply <- t.outcomes[i]
	}
}
