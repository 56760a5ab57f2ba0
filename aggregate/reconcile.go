package aggregate

import (
	"time"

	"github.com/effectd/effectd/aggregate/operation"
	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// Bounds of reconciliation (SPEC 9).
const (
	MaxAttempts            = 8
	DefaultAttemptDeadline = 30 * time.Second
	MaxAttemptDeadline     = 10 * time.Minute
	resubmitMargin         = time.Minute
)

// MaxEvidence bounds the encoded evidence of an operator, and what a rule names in
// the answer of a service, in bytes.
const MaxEvidence = 8 << 10

// decide authorizes one bounded attempt on an unknown effect.
func (c StartAttempt) decide(t *turn) *wire.Error {
	user, refusal := t.user(c.Caller, events.RoleOperator)
	if refusal != nil {
		return refusal
	}
	e, refusal := t.overseen(c.Caller, user, c.EffectID, policy.ActionReconcile)
	if refusal != nil {
		return refusal
	}
	switch {
	case e.State == wire.StateSettled:
		t.d.Repeat = true
		return nil
	case e.State != wire.StateUnknown:
		return wire.Errorf(wire.IllegalTransition, "only an unknown effect is reconciled")
	case e.Running() != nil:
		return wire.Errorf(wire.AttemptInProgress, "an attempt is running")
	case len(e.Attempts) >= MaxAttempts:
		return wire.Errorf(wire.ReconciliationUnsupported, "the effect has had its maximum of attempts")
	}
	deadline := DefaultAttemptDeadline
	if c.DeadlineMS > 0 {
		deadline = time.Duration(c.DeadlineMS) * time.Millisecond
	}
	if deadline > MaxAttemptDeadline {
		return wire.FieldError(wire.InvalidRequest, "deadline_ms", "it is longer than ten minutes")
	}
	method := c.Method
	if method == "" {
		method = events.MethodQuery
	}
	contract := t.s.contract(&e.Prepared.Binding)
	if contract == nil {
		return wire.Errorf(wire.ReconciliationUnsupported, "the contract is not registered")
	}
	if refusal := t.methodAllowed(e, contract.Contract, method, deadline, c.CredentialSHA256); refusal != nil {
		return refusal
	}
	id := events.AttemptID(t.id())
	t.d.AttemptID = id
	t.about(e, c.Actor(), events.ReconcileStarted{AttemptID: id, Method: method, AuthorizedBy: c.Actor(),
		Dispatcher: c.Dispatcher, Deadline: t.in.At.Add(deadline)})
	return nil
}

// methodAllowed checks what the contract declares for a method.
func (t *turn) methodAllowed(e *Effect, c *operation.Contract, m events.Method, deadline time.Duration, credential events.Digest) *wire.Error {
	switch m {
	case events.MethodQuery:
		if !c.Supports()["query"] {
			return wire.FieldError(wire.ReconciliationUnsupported, "method", "the operation declares no query")
		}
		return nil
	case events.MethodResubmitSameKey:
		if !c.Supports()["resubmit_same_key"] {
			return wire.FieldError(wire.ReconciliationUnsupported, "method", "the operation does not declare same-key resubmission")
		}
		if e.Claim.CredentialSHA256 != credential {
			return wire.FieldError(wire.ReconciliationUnsupported, "method", "the credential is not the claim's")
		}
		if t.in.At.Add(deadline+resubmitMargin) >= e.Claim.IdempotencyUntil {
			return wire.FieldError(wire.IdempotencyWindowExpired, "method", "the service may have forgotten the key")
		}
		return nil
	}
	return wire.FieldError(wire.InvalidRequest, "method", "want query or resubmit_same_key")
}

// overseen is an effect of the tenant on which policy lets the caller act, and
// which is not the caller's own.
func (t *turn) overseen(c Caller, user events.User, id events.EffectID, action string) (*Effect, *wire.Error) {
	e, refusal := t.inTenant(c, id)
	if refusal != nil {
		return nil, refusal
	}
	if e.Principal == c.Principal {
		return nil, wire.Errorf(wire.Forbidden, "nobody does this on an effect of their own")
	}
	if op := t.s.contract(&e.Prepared.Binding); op != nil {
		if allowed, _ := t.s.ask(action, user, op.Contract, t.s.policyContext(e, op.Contract)); allowed.Allow {
			return e, nil
		}
	}
	return nil, wire.Errorf(wire.PolicyDenied, "the owner's policy does not allow "+action)
}

// decide records what an attempt proved; only a conclusive one settles.
func (c EndAttempt) decide(t *turn) *wire.Error {
	e := t.s.Effect(c.EffectID)
	if e == nil {
		return wire.NoSuchEffect()
	}
	t.d.EffectID, t.d.AttemptID, t.d.Repeat = e.ID, c.AttemptID, true
	c.Result = c.Result.bounded()
	running := e.Running()
	if running == nil || running.AttemptID != c.AttemptID {
		// Superseded or interrupted: the attempt is over, but what it proved is
		// never dropped.
		if c.Result.Outcome != events.OutcomeUnknown && e.State == wire.StateSettled {
			t.contradict(e, attemptActor(e, c.AttemptID), c.Result)
		}
		if c.Result.Outcome != events.OutcomeUnknown && e.State == wire.StateUnknown {
			t.prove(e, attemptActor(e, c.AttemptID), c.Result, settleAs{late: true})
		}
		return nil
	}
	actor, result := running.AuthorizedBy, c.Result
	if c.NotFound && t.notFoundProves(e) {
		result.Outcome, result.Reason = events.OutcomeNoEffect, events.ReasonReconciled
	}
	evidence := result.Evidence
	if result.Outcome == events.OutcomeUnknown {
		t.about(e, actor, events.ReconcileEnded{AttemptID: c.AttemptID, Result: events.AttemptInconclusive, Evidence: &evidence})
		t.d.Repeat = false
		return nil
	}
	e = t.about(e, actor, events.ReconcileEnded{AttemptID: c.AttemptID, Result: events.AttemptConclusive, Evidence: &evidence})
	t.prove(e, actor, result, settleAs{attempt: c.AttemptID})
	return nil
}

// notFoundProves holds the three conditions under which "not found" proves that
// nothing happened.
func (t *turn) notFoundProves(e *Effect) bool {
	op := t.s.contract(&e.Prepared.Binding)
	if op == nil || op.Contract.Reconcile == nil || !op.Contract.Reconcile.NotFoundIsConclusive {
		return false
	}
	over, known := t.s.sendsOver(e)
	return known && t.in.At >= over.Add(op.Contract.Reconcile.SettlingWindow)
}

// sendsOver is since when nothing of the claim, or of a resubmission, can reach
// the service any more; false while that is not known.
func (s *State) sendsOver(e *Effect) (over events.Instant, known bool) {
	if e.Unknown.SendEnded {
		over = e.Unknown.Since
	} else if over, known = s.endedAt(e.Claim.Dispatcher); !known {
		return 0, false
	}
	for _, a := range e.Attempts {
		if a.Method != events.MethodResubmitSameKey {
			continue
		}
		ended, known := s.endedAt(a.Dispatcher)
		if !known {
			return 0, false
		}
		over = max(over, ended)
	}
	return over, true
}

// attemptActor is who authorized an attempt that has ended.
func attemptActor(e *Effect, id events.AttemptID) events.Actor {
	for _, a := range e.Attempts {
		if a.AttemptID == id {
			return a.AuthorizedBy
		}
	}
	return events.SystemActor
}
