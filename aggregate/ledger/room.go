package ledger

import (
	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events/wire"
)

// Room is how many bytes the log still took when it was measured, and what the
// writer had appended by then (see [Ledger.Appended]).
type Room struct{ Free, Appended int64 }

// What the log keeps free for work that it has taken already, in bytes.
const (
	entryBytes = 1 << 10   // of an entry beside its events
	endBytes   = 1 << 10   // of each effect that may still be refused
	laterBytes = 16 << 10  // of each admitted effect: claim, result, a reconciliation
	spareBytes = 256 << 10 // of the ledger itself: take-overs, closed tasks
)

// noRoom refuses a command that would begin new work when the log might then not
// take what the work it has already must still record: what is admitted can
// always be settled (W7).
func (l *Ledger) noRoom(t *turn, c aggregate.Command) *wire.Error {
	bytes, effects := begins(t.branch, c)
	if l.cfg.Room == nil || bytes == 0 {
		return nil
	}
	room := l.cfg.Room()
	left := room.Free - (l.appended.Load() - room.Appended) - int64(t.bytes) - entryBytes
	kept := int64(t.branch.Open())*endBytes + (int64(t.branch.Holding())+effects)*laterBytes + spareBytes
	if left < bytes+kept {
		return wire.Errorf(wire.CapacityExhausted, "the log is at its maximum size")
	}
	return nil
}

// begins is the most that a command which begins new work writes at once, and the
// effects that it admits; zero for any other command.
func begins(s *aggregate.State, c aggregate.Command) (bytes, effects int64) {
	const small = 8 << 10
	switch c := c.(type) {
	case aggregate.Prepare:
		known := s.Causal(c.Tenant, *c.Request.RunID, *c.Request.CausalID)
		if known == nil {
			return small + 2*int64(len(c.Request.Payload)), 1
		}
		if e := s.Effect(known.EffectID); c.Admit && e != nil && e.State == wire.StatePermitted {
			return small, 1
		}
	case aggregate.Admit:
		if e := s.Effect(c.Request.EffectID); e != nil && e.Actor() == c.Actor() && e.State == wire.StatePermitted {
			return small, 1
		}
	case aggregate.Approve:
		if e := s.Effect(c.EffectID); e != nil && e.Tenant == c.Tenant && e.State == wire.StatePrepared {
			return small + 2*int64(len(c.Signed.Statement)), 1
		}
	case aggregate.OpenTask:
		if s.Task(c.Tenant, c.Request.TaskID) == nil {
			return small, 0
		}
	default: // ends or advances what was taken before
	}
	return 0, 0
}

// Appended is how many bytes this writer has appended, the most that they take in
// the log.
func (l *Ledger) Appended() int64 { return l.appended.Load() }
