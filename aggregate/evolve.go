package aggregate

import (
	"maps"
	"slices"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// Apply folds the next entry. The caller has checked sequence and chain.
func (s *State) Apply(e *events.Stored) {
	for i := range e.Events {
		s.ApplyEvent(e, i)
	}
	s.Seal(e.Seq, e.SHA256, e.Time)
}

// ApplyEvent folds the i-th event of an entry; after the last one comes Seal.
func (s *State) ApplyEvent(e *events.Stored, i int) {
	s.evolve(&e.Events[i], events.Position{Seq: e.Seq, Index: i}, e.Time, e.Sizes[i])
}

// Seal records that all events of an entry have been folded.
func (s *State) Seal(seq uint64, sha events.Digest, at events.Instant) {
	s.head.Seq, s.head.SHA256, s.head.Time = seq, sha, at
	s.touch(KindHead, "")
}

// evolve folds one event. It never fails: an event about something that does not
// exist changes nothing, and verify names it.
func (s *State) evolve(ev *events.Event, pos events.Position, entryTime events.Instant, size int) {
	s.head.Last = pos
	switch d := ev.Data.(type) {
	case events.LedgerOpened:
		s.head.LedgerID, s.head.Fingerprint, s.head.Limits = d.LedgerID, d.StoreFingerprint, d.Limits
		s.head.Nodes = maps.Clone(s.head.Nodes)
		s.head.Nodes[d.Node] = Life{Incarnation: d.Writer, Since: ev.Time}
	case events.LedgerRecovered:
		s.head.Fingerprint = d.NewFingerprint
	case events.OperationRegistered:
		s.setLaw(s.law.withOperation(ev.Operation, d))
	case events.OperationRetired:
		s.setLaw(s.law.retire(ev.Operation, d.Version))
		s.head.Retractions++
	case events.PolicyChanged:
		s.setLaw(s.law.withPolicy(d))
		s.head.Retractions++
	case events.AccessChanged:
		s.setLaw(s.law.withUsers(d))
		s.head.Retractions++
	case events.TaskOpened:
		s.openTask(ev, pos, d)
	case events.TaskClosed:
		s.changeTask(ev.Tenant, ev.TaskID, func(t *Task) {
			t.Closed = &wire.TaskClosure{At: ev.Time, By: ev.Actor, Reason: d.Reason}
			t.Position = pos
		})
		s.head.Retractions++
	case events.RunCancelled:
		s.changeRun(ev, pos, d.Principal, func(r *Run) { r.Cancelled = true })
		s.head.Retractions++
	case events.RunFinished:
		s.changeRun(ev, pos, d.Principal, func(r *Run) { r.Outcome = d.Outcome })
	case events.Collected:
		s.collect(d.Effects)
	case events.Prepared:
		s.prepare(ev, pos, d, size)
	default:
		s.changeEffect(ev, pos, entryTime, size)
	}
}

func (s *State) openTask(ev *events.Event, pos events.Position, d events.TaskOpened) {
	t := &Task{Tenant: ev.Tenant, ID: ev.TaskID, Parent: d.Parent, OpenedBy: ev.Actor, Holders: d.Holders, ExpiresAt: d.ExpiresAt,
		Exposure: d.Exposure, Accounts: map[events.Unit]Account{}, Position: pos, Depth: 1}
	if parent := s.Task(ev.Tenant, d.Parent); parent != nil {
		t.Depth = parent.Depth + 1
	}
	for u, limit := range d.Budgets {
		t.Accounts[u] = Account{Max: limit}
	}
	s.tasks.Set(taskKey(ev.Tenant, ev.TaskID), t)
	s.touch(KindTask, taskKey(ev.Tenant, ev.TaskID))
}

func (s *State) changeRun(ev *events.Event, pos events.Position, p events.Principal, f func(*Run)) {
	key := runKey(ev.Tenant, ev.RunID)
	r := Run{Tenant: ev.Tenant, ID: ev.RunID, Principal: p}
	if old, ok := s.runs.Get(key); ok {
		r = *old
	}
	f(&r)
	r.Position = pos
	s.runs.Set(key, &r)
	s.touch(KindRun, key)
}

func (s *State) prepare(ev *events.Event, pos events.Position, d events.Prepared, size int) {
	e := &Effect{ID: ev.EffectID, Tenant: ev.Tenant, Principal: d.Context.Principal, State: wire.StatePrepared, Prepared: &d,
		CreatedAt: ev.Time, UpdatedAt: ev.Time, Position: pos}
	key := causalKey(ev.Tenant, d.Context.RunID, d.Context.CausalID)
	s.causal.Set(key, &Causal{Tenant: ev.Tenant, RunID: d.Context.RunID, CausalID: d.Context.CausalID, EffectID: e.ID,
		Principal: e.Principal, RequestSHA256: d.RequestSHA256})
	if s.Run(ev.Tenant, d.Context.RunID) == nil {
		s.changeRun(ev, pos, e.Principal, func(*Run) {})
	}
	s.replace(nil, e, size)
}

// changeEffect folds an event of an effect that exists.
func (s *State) changeEffect(ev *events.Event, pos events.Position, entryTime events.Instant, size int) {
	old := s.Effect(ev.EffectID)
	if old == nil {
		return
	}
	e := *old
	e.UpdatedAt, e.Position = ev.Time, pos
	switch d := ev.Data.(type) {
	case events.Permitted:
		e.State, e.Permit, e.PermitSHA256 = wire.StatePermitted, &d.Permit, events.DigestOf(&d.Permit)
		e.AdmitError = s.admitError(&e)
	case events.Refused:
		e.State, e.Refused = wire.StateRefused, &d
	case events.Admitted:
		e.State = wire.StateAdmitted
		e.Admission = &Admission{Position: pos, IntentSHA256: ev.IntentSHA256, Intent: d.Intent, Receipt: s.receipt(ev, pos, entryTime)}
		s.hold(e.Tenant, d.Reservation, +1)
	case events.Dispatched:
		e.State, e.Claim = wire.StateDispatched, &Claim{Dispatched: d, Position: pos, At: ev.Time}
	case events.Settled:
		s.settle(old, &e, d)
	case events.Unknown:
		e.State, e.Unknown = wire.StateUnknown, &Unknown{Unknown: d, Since: ev.Time}
		s.doubt(e.Tenant, e.lines(), +1)
	case events.ReconcileStarted:
		e.Attempts = append(slices.Clone(e.Attempts), Attempt{ReconcileStarted: d, StartedAt: ev.Time})
	case events.ReconcileEnded:
		e.Attempts = slices.Clone(e.Attempts)
		for i := range e.Attempts {
			if e.Attempts[i].AttemptID == d.AttemptID {
				e.Attempts[i].Result = d.Result
			}
		}
	case events.Acknowledged:
		e.Acknowledged = &wire.Acknowledged{By: d.By, Reason: d.Reason, At: ev.Time}
	case events.Contradicted:
		e.Contradicted = append(slices.Clone(e.Contradicted), d)
		s.spend(e.Tenant, e.TaskID(), d.Cost, d.Cost)
	default: // not about one effect: folded by evolve
		return
	}
	s.replace(old, &e, size)
}

// settle frees the whole reservation and charges the cost.
func (s *State) settle(old, e *Effect, d events.Settled) {
	e.State, e.Settled = wire.StateSettled, &d
	if !old.holds() {
		return
	}
	if old.State == wire.StateUnknown {
		s.doubt(e.Tenant, e.lines(), -1)
	}
	s.hold(e.Tenant, e.lines(), -1)
	s.spend(e.Tenant, e.TaskID(), spentOn(d.Outcome, d.Cost), d.Overrun)
}

// lines is the reservation of an admitted effect.
func (e *Effect) lines() []events.ReservationLine {
	if e.Admission == nil {
		return nil
	}
	return e.Admission.Intent.Reservation.Lines
}

// receipt proves an admission by its place in the log.
func (s *State) receipt(ev *events.Event, pos events.Position, committed events.Instant) events.Receipt {
	r := events.Receipt{V: events.Format, EffectID: ev.EffectID, IntentSHA256: ev.IntentSHA256, RunID: ev.RunID, CausalID: ev.CausalID,
		Stream: wire.LogStream, DurablePosition: pos, StoreFingerprint: s.head.Fingerprint, CommittedAt: committed}
	r.ReceiptID = events.ReceiptID("rc_" + string(events.DigestOf(&r)))
	return r
}

// replace stores the new record of an effect and keeps every index with it.
func (s *State) replace(old, e *Effect, size int) {
	e.Size += int64(size)
	s.head.LiveBytes += int64(size)
	s.effects.Set(string(e.ID), e)
	s.reindex(old, e)
	s.touch(KindEffect, string(e.ID))
}

// reindex moves an effect in the derived indexes from what it was to what it is;
// nil before it exists and after.
func (s *State) reindex(was, is *Effect) {
	if from, to := was.dueAt(), is.dueAt(); from != to {
		if from != 0 {
			s.due.Delete(dueKey(from, was.ID))
		}
		if to != 0 {
			s.due.Set(dueKey(to, is.ID), is.ID)
		}
	}
	if from, to := was.beforeClaim(), is.beforeClaim(); from && !to {
		s.open.Delete(string(was.ID))
	} else if to && !from {
		s.open.Set(string(is.ID), is.ID)
	}
	if was.holds() {
		s.holding--
	}
	if is.holds() {
		s.holding++
	}
	if from, to := was.beforeAdmission(), is.beforeAdmission(); from && !to {
		s.countPrepared(was, -1)
	} else if to && !from {
		s.countPrepared(is, +1)
	}
}

func (s *State) countPrepared(e *Effect, n int64) {
	key := string(e.Actor())
	count, _ := s.prepared.Get(key)
	s.prepared.Set(key, count+n)
}

// collect removes terminal records; what their run and causal id name stays.
func (s *State) collect(ids []events.EffectID) {
	for _, id := range ids {
		e := s.Effect(id)
		if e == nil {
			continue
		}
		s.reindex(e, nil)
		s.effects.Delete(string(id))
		s.head.LiveBytes -= e.Size
		s.touch(KindEffect, string(id))
		key := causalKey(e.Tenant, e.Prepared.Context.RunID, e.Prepared.Context.CausalID)
		if old, ok := s.causal.Get(key); ok {
			c := *old
			c.Collected, c.State = true, e.State
			if e.Settled != nil {
				c.Outcome = e.Settled.Outcome
			}
			s.causal.Set(key, &c)
			s.touch(KindCausal, key)
		}
	}
}

func (s *State) setLaw(l *law) {
	s.law = l
	s.touch(KindLaw, "")
}
