package aggregate

import (
	"strings"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// decide ends admissions in a run.
func (c CancelRun) decide(t *turn) *wire.Error {
	run, refusal := t.ownRun(c.Caller, c.RunID)
	if refusal != nil {
		return refusal
	}
	switch {
	case run.Cancelled:
		t.d.Repeat = true
		return nil
	case run.Outcome != "":
		return wire.FieldError(wire.RunFinished, "run_id", "the run has its outcome")
	}
	if refusal := checkReason(c.Reason); refusal != nil {
		return refusal
	}
	t.emit(subject{tenant: c.Tenant, actor: c.Actor(), run: c.RunID}, events.RunCancelled{Principal: c.Principal, Reason: c.Reason})
	return nil
}

// decide records the one immutable outcome of a run.
func (c FinishRun) decide(t *turn) *wire.Error {
	run, refusal := t.ownRun(c.Caller, c.RunID)
	if refusal != nil {
		return refusal
	}
	switch {
	case c.Outcome == "":
		return wire.FieldError(wire.InvalidRequest, "outcome", "it is required")
	case run.Outcome == c.Outcome:
		t.d.Repeat = true
		return nil
	case run.Outcome != "":
		return wire.FieldError(wire.RunFinished, "run_id", "the run has another outcome")
	case run.Cancelled && c.Outcome != events.RunOutcomeCancelled:
		return wire.FieldError(wire.RunCancelled, "outcome", "a cancelled run ends as cancelled only")
	case c.Outcome == events.RunSucceeded && t.s.unresolved(c.Tenant, c.RunID, t.in.At):
		return wire.FieldError(wire.RunUnresolved, "outcome", "an effect of the run is not settled")
	}
	t.emit(subject{tenant: c.Tenant, actor: c.Actor(), run: c.RunID}, events.RunFinished{Principal: c.Principal, Outcome: c.Outcome})
	return nil
}

func (t *turn) ownRun(c Caller, id events.RunID) (*Run, *wire.Error) {
	if _, refusal := t.user(c, events.RoleProducer); refusal != nil {
		return nil, refusal
	}
	run := t.s.Run(c.Tenant, id)
	if run == nil || run.Principal != c.Principal {
		return nil, wire.NoSuchRun()
	}
	t.d.RunID = id
	return run, nil
}

// unresolved reports whether an effect of the run is neither settled nor refused;
// one that has lapsed counts as refused.
func (s *State) unresolved(tenant events.Tenant, run events.RunID, at events.Instant) bool {
	open := false
	s.eachInRun(tenant, run, func(c *Causal) bool {
		e := s.Effect(c.EffectID)
		open = e != nil && !e.State.Terminal() && !(e.beforeAdmission() && s.lapsed(e, at) != "")
		return !open
	})
	return open
}

// eachInRun calls f for every effect that a run names until f returns false.
func (s *State) eachInRun(tenant events.Tenant, run events.RunID, f func(*Causal) bool) {
	prefix := causalKey(tenant, run, "")
	s.causal.Ascend(prefix, func(k string, c *Causal) bool { return strings.HasPrefix(k, prefix) && f(c) })
}
