package aggregate

import (
	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// fewLines is how many lines a reservation has in an ordinary task tree; the
// record of more is measured before it is made.
const fewLines = 6

// decide consumes the permit of a prepared effect (SPEC 7).
func (c Admit) decide(t *turn) *wire.Error {
	if _, refusal := t.user(c.Caller, events.RoleProducer); refusal != nil {
		return refusal
	}
	e, refusal := t.own(c.Caller, c.Request.EffectID)
	if refusal != nil {
		return refusal
	}
	t.d.Repeat = true
	waiting := e.beforeAdmission()
	if !sealedEqual(&e.Prepared.Context, c.Request.SealedContext) {
		if waiting {
			t.end(e, events.SystemActor, events.ReasonContextMismatch)
			return RefusalError(events.ReasonContextMismatch)
		}
		if e.State != wire.StateRefused {
			return nil
		}
	}
	if e.State == wire.StateRefused {
		return RefusalError(e.Refused.Reason)
	}
	if c.Request.BindingDigest != e.Prepared.BindingDigest {
		return wire.FieldError(wire.BindingMismatch, "binding_digest", "it is not the digest of this effect's binding")
	}
	switch {
	case e.State == wire.StatePermitted:
		return t.admit(e)
	case !waiting:
		return nil
	}
	if e = t.lapse(e); e.State == wire.StateRefused {
		return RefusalError(e.Refused.Reason)
	}
	return wire.Errorf(wire.PermitRequired, "the effect waits for an approval")
}

// lapse records what time, a closed task or a cancelled run has ended and reads
// show as ended already, before a command can end it otherwise.
func (t *turn) lapse(e *Effect) *Effect {
	if !e.beforeAdmission() {
		return e
	}
	if reason := t.s.lapsed(e, t.in.At); reason != "" {
		return t.end(e, events.SystemActor, reason)
	}
	return e
}

// admit checks a permitted effect against the state at ledger time and appends
// the one record that consumes its permit. A lack of budget or room leaves the
// effect permitted; anything that ends its authority ends the effect.
func (t *turn) admit(e *Effect) *wire.Error {
	if reason := t.s.ended(e, t.in.At); reason != "" {
		t.end(e, events.SystemActor, reason)
		return RefusalError(reason)
	}
	return t.consume(e)
}

// consume appends the admission of an effect whose authority stands, if run,
// budgets and limits have room for it.
func (t *turn) consume(e *Effect) *wire.Error {
	admitted, refusal := t.admission(e)
	if refusal != nil {
		return refusal
	}
	t.about(e, e.Actor(), admitted)
	t.d.Repeat = false
	return nil
}

// admission is what admits a permitted effect, not yet part of the decision.
func (t *turn) admission(e *Effect) (admitted events.Admitted, refusal *wire.Error) {
	if run := t.s.Run(e.Tenant, e.Prepared.Context.RunID); run != nil && run.Outcome != "" {
		return admitted, wire.FieldError(wire.RunFinished, "run_id", "the run has its outcome")
	}
	chain := t.s.ancestry(e.Tenant, e.TaskID())
	lines, refusal := t.reserve(e, chain)
	if refusal != nil {
		return admitted, refusal
	}
	reservation := events.Reservation{ReservationID: events.ReservationID(t.id()), Lines: lines}
	admitted = events.Admitted{
		PermitID: e.Permit.ID,
		Intent: events.Intent{V: events.Format, BindingDigest: e.Prepared.BindingDigest, PermitSHA256: e.PermitSHA256,
			AuthorizationSHA256: events.DigestOf(&e.Permit.Authorization), ContextSHA256: e.Prepared.Binding.ContextSHA256,
			IdempotencyKey: e.Prepared.Binding.IdempotencyKey, Reservation: reservation},
		ReservationID: reservation.ReservationID, Reservation: lines,
	}
	if len(lines) > fewLines && t.exceeds(t.size(subject{actor: e.Actor(), effect: e}, admitted)) {
		return admitted, wire.Errorf(wire.RecordTooLarge, "the reservation in task and ancestors exceeds the record limit of the ledger")
	}
	return admitted, nil
}

// ended says what has ended the authority of an effect before its claim; empty
// if nothing has. It is the check of SPEC 7 without budget.
func (s *State) ended(e *Effect, at events.Instant) events.Reason {
	if reason := s.lapsed(e, at); reason != "" {
		return reason
	}
	user, known := s.User(e.Actor())
	op := s.contract(&e.Prepared.Binding)
	if !known || op == nil {
		return events.ReasonPolicyDenied
	}
	c := s.policyContext(e, op.Contract)
	if allowed, _ := s.ask(policy.ActionCommit, user, op.Contract, c); allowed.Allow {
		return ""
	}
	waitsOrApproved := e.Permit == nil || e.Permit.Authorization.Kind == events.AuthorizationApproval
	if asks, _ := s.ask(policy.ActionRequestApproval, user, op.Contract, c); waitsOrApproved && asks.Allow {
		return ""
	}
	return events.ReasonPolicyDenied
}

// lapsed is the part of [State.ended] that nothing undoes: what reads show at
// once. A policy may be changed back before its end of an effect is recorded.
func (s *State) lapsed(e *Effect, at events.Instant) events.Reason {
	if at >= e.ExpiresAt() {
		return events.ReasonExpired
	}
	chain := s.ancestry(e.Tenant, e.TaskID())
	if len(chain) == 0 || !chain[0].Holds(e.Actor()) {
		return events.ReasonTaskClosed
	}
	if reason := s.taskEnded(chain, at); reason != "" {
		return reason
	}
	if op := s.contract(&e.Prepared.Binding); op != nil && op.Retired {
		return events.ReasonOperationRetired
	}
	if run := s.Run(e.Tenant, e.Prepared.Context.RunID); run != nil && run.Cancelled {
		return events.ReasonRunCancelled
	}
	return ""
}
