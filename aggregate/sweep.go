package aggregate

import (
	"encoding/binary"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// NextDue is the earliest instant at which the ledger itself must act; zero if
// there is none.
func (s *State) NextDue() events.Instant {
	k, _, ok := s.due.Min()
	if !ok {
		return 0
	}
	return events.Instant(binary.BigEndian.Uint64([]byte(k[:8])))
}

// Orphans lists the effects whose claim, or running attempt, belongs to a
// process that has provably ended.
func (s *State) Orphans() []events.EffectID {
	var out []events.EffectID
	s.due.Scan(func(_ string, id events.EffectID) bool {
		if s.orphaned(s.Effect(id)) {
			out = append(out, id)
		}
		return true
	})
	return out
}

func (s *State) orphaned(e *Effect) bool {
	switch {
	case e == nil:
		return false
	case e.State == wire.StateDispatched:
		return s.incarnationEnded(e.Claim.Dispatcher)
	case e.State == wire.StateUnknown && e.Running() != nil:
		return s.incarnationEnded(e.Running().Dispatcher)
	}
	return false
}

// looksPerEnd is how many effects a recheck looks at, for each that it may end,
// before others have their turn: most of them are as right as before.
const looksPerEnd = 8

// decide does what time or a change of law has made due.
func (c Sweep) decide(t *turn) *wire.Error {
	left := c.Limit
	for _, id := range t.s.dueBy(t.in.At, left) {
		t.overdue(t.s.Effect(id))
		left--
	}
	if !c.Recheck {
		return nil
	}
	looks := looksPerEnd * c.Limit
	t.s.open.Copy().Ascend(string(c.From), func(_ string, id events.EffectID) bool {
		if left <= 0 || looks <= 0 {
			t.d.Next = id
			return false
		}
		looks--
		e := t.s.Effect(id)
		if reason := t.s.ended(e, t.in.At); reason != "" {
			t.end(e, events.SystemActor, reason)
			left--
		}
		return true
	})
	return nil
}

// dueBy lists at most limit effects on which the ledger must act.
func (s *State) dueBy(at events.Instant, limit int) []events.EffectID {
	var out []events.EffectID
	end := dueKey(at, "\xff")
	s.due.Scan(func(k string, id events.EffectID) bool {
		if k > end || len(out) >= limit {
			return false
		}
		out = append(out, id)
		return true
	})
	return out
}

// overdue acts on one effect whose time has come.
func (t *turn) overdue(e *Effect) {
	switch e.State {
	case wire.StatePrepared, wire.StatePermitted, wire.StateAdmitted:
		t.end(e, events.SystemActor, events.ReasonExpired)
	case wire.StateDispatched:
		t.lost(e)
	case wire.StateUnknown:
		t.interrupt(e)
	}
}

// interrupt ends an attempt that nobody will end any more.
func (t *turn) interrupt(e *Effect) {
	a := e.Running()
	t.about(e, events.SystemActor, events.ReconcileEnded{AttemptID: a.AttemptID, Result: events.AttemptInconclusive,
		Evidence: &events.Evidence{Source: "ledger", At: t.in.At, Detail: "the attempt was interrupted"}})
}

// Orphaned ends the claim or attempt of a process that has provably ended, once
// its spool has been replayed.
type Orphaned struct{ EffectID events.EffectID }

func (c Orphaned) decide(t *turn) *wire.Error {
	e := t.s.Effect(c.EffectID)
	t.d.EffectID = c.EffectID
	if !t.s.orphaned(e) {
		t.d.Repeat = true
		return nil
	}
	t.overdue(e)
	return nil
}

// decide removes terminal records whose whole horizon has passed: binding, task
// and service window.
func (c Collect) decide(t *turn) *wire.Error {
	var gone []events.EffectID
	t.s.EachEffect(func(e *Effect) bool {
		if e.State.Terminal() && t.s.horizon(e) < t.in.At {
			gone = append(gone, e.ID)
		}
		return len(gone) < c.Limit
	})
	if len(gone) > 0 {
		t.emit(system, events.Collected{Effects: gone, Horizon: t.in.At})
	}
	return nil
}

// horizon is when nothing can refer to a terminal record any more.
func (s *State) horizon(e *Effect) events.Instant {
	at := max(e.Prepared.Binding.ExpiresAt, e.UpdatedAt)
	if task := s.Task(e.Tenant, e.TaskID()); task != nil {
		at = max(at, task.ExpiresAt)
	}
	if e.Claim != nil {
		at = max(at, e.Claim.IdempotencyUntil, e.Claim.deadline())
	}
	return at
}
