package aggregate

import (
	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// decide issues the permit of an effect that waits for approval, by a signature
// over exactly its binding.
func (c Approve) decide(t *turn) *wire.Error {
	e, user, refusal := t.approvable(c.Caller, c.EffectID)
	if refusal != nil {
		return refusal
	}
	statement, refusal := t.statement(c.Caller, user, e, c.Signed, policy.DecisionApprove)
	if refusal != nil {
		return refusal
	}
	e = t.lapse(e)
	switch {
	case e.State == wire.StateRefused:
		return RefusalError(e.Refused.Reason)
	case e.Permit != nil && e.Permit.Authorization.Kind == events.AuthorizationApproval: // the first one stands
		t.d.Repeat = true
		return nil
	case e.State != wire.StatePrepared:
		return notWaiting()
	}
	if reason := t.s.ended(e, t.in.At); reason != "" {
		t.end(e, events.SystemActor, reason)
		return RefusalError(reason)
	}
	e = t.about(e, c.Actor(), events.Permitted{Permit: *t.approvalPermit(e, c, statement)})
	if e.Prepared.OnPermit == events.OnPermitAdmit {
		_ = t.consume(e) // or else evolve has kept why not
	}
	return nil
}

// admitError is why the approval of an effect that it should admit does not: what
// decides that is the state, so it is found again wherever the permit is folded.
func (s *State) admitError(e *Effect) *wire.AdmitError {
	if e.Permit.Authorization.Kind != events.AuthorizationApproval || e.Prepared.OnPermit != events.OnPermitAdmit {
		return nil
	}
	_, refusal := (&turn{s: s}).admission(e)
	if refusal == nil {
		return nil
	}
	message := refusal.Message
	if refusal.Field != "" {
		message = refusal.Field + ": " + message
	}
	return &wire.AdmitError{Code: refusal.Code, Message: message}
}

// approvalPermit is the permit that a checked approval leads to.
func (t *turn) approvalPermit(e *Effect, c Approve, statement policy.Statement) *events.Permit {
	producer, _ := t.s.User(e.Actor())
	contract := t.s.contract(&e.Prepared.Binding).Contract
	seen := t.s.policyContext(e, contract)
	decision, request := t.s.ask(policy.ActionRequestApproval, producer, contract, seen)
	if !decision.Allow { // then policy has come to allow the commit itself
		decision, request = t.s.ask(policy.ActionCommit, producer, contract, seen)
	}
	permit := t.permit(e, t.s.ancestry(e.Tenant, e.TaskID()), events.Authorization{
		V: events.Format, Kind: events.AuthorizationApproval, PolicyRevision: t.s.law.revision, PolicySHA256: t.s.law.digest,
		CedarRequest: request.JSON(), Determining: decision.Determining, Decision: "allow",
		Approver: c.Actor(), StatementSHA256: statement.SHA256(),
	})
	permit.Statement, permit.Signature, permit.PublicKey = c.Signed.Statement, c.Signed.Signature, c.Signed.PublicKey
	return permit
}

// decide ends an effect that waits for approval.
func (c Deny) decide(t *turn) *wire.Error {
	e, user, refusal := t.approvable(c.Caller, c.EffectID)
	if refusal != nil {
		return refusal
	}
	if _, err := t.statement(c.Caller, user, e, c.Signed, policy.DecisionDeny); err != nil {
		return err
	}
	e = t.lapse(e)
	switch {
	case e.State == wire.StateRefused && e.Refused.Reason == events.ReasonApprovalDenied:
		t.d.Repeat = true
		return nil
	case e.State == wire.StateRefused:
		return RefusalError(e.Refused.Reason)
	case e.State != wire.StatePrepared:
		return notWaiting()
	}
	t.about(e, c.Actor(), events.Refused{Reason: events.ReasonApprovalDenied, By: c.Actor(),
		Statement: c.Signed.Statement, Signature: c.Signed.Signature, PublicKey: c.Signed.PublicKey})
	return nil
}

func notWaiting() *wire.Error {
	return wire.Errorf(wire.IllegalTransition, "the effect does not wait for approval")
}

func (t *turn) approvable(c Caller, id events.EffectID) (*Effect, events.User, *wire.Error) {
	user, refusal := t.user(c, events.RoleApprover)
	if refusal != nil {
		return nil, user, refusal
	}
	e, refusal := t.inTenant(c, id)
	if refusal == nil && e.Principal == c.Principal {
		refusal = wire.Errorf(wire.SelfApproval, "nobody approves an effect of their own")
	}
	return e, user, refusal
}

// statement checks a signed decision field by field against the effect.
func (t *turn) statement(c Caller, user events.User, e *Effect, signed policy.Signed, decision string) (policy.Statement, *wire.Error) {
	got, err := policy.Verify(signed, user.PublicKey, t.s.statementAbout(e, decision, c.Actor(), t.in.At))
	if err != nil {
		return got, wire.FieldError(wire.ApprovalInvalid, "statement", err.Error())
	}
	return got, nil
}

// statementAbout is what an approver signs.
func (s *State) statementAbout(e *Effect, decision string, approver events.Actor, issued events.Instant) policy.Statement {
	b := &e.Prepared.Binding
	return policy.Statement{V: events.Format, LedgerID: s.head.LedgerID, EffectID: e.ID, BindingDigest: e.Prepared.BindingDigest,
		Operation: b.Operation, Resource: b.Resource, MaxCost: b.MaxCost, ExpiresAt: b.ExpiresAt, Decision: decision, Approver: approver, IssuedAt: issued}
}
