package aggregate

import (
	"maps"
	"time"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// decide gives the one right to send. It checks again all that admission
// checked, except the budget, which is held.
func (c ClaimEffect) decide(t *turn) *wire.Error {
	e := t.s.Effect(c.EffectID)
	if e == nil || e.Admission == nil || e.IntentSHA256() != c.IntentSHA256 {
		return wire.NoSuchEffect()
	}
	t.d.EffectID = e.ID
	if e.State != wire.StateAdmitted {
		t.d.Repeat = true
		return nil
	}
	if t.s.incarnationEnded(c.Dispatcher) {
		// Its claim would count as ended at once, whatever it then sends.
		return wire.Errorf(wire.NotDispatching, "a later life of the node has the ledger")
	}
	if reason := t.s.ended(e, t.in.At); reason != "" {
		t.end(e, events.SystemActor, reason)
		return nil
	}
	claim := events.Dispatched{Dispatcher: c.Dispatcher, NonceSHA256: c.NonceSHA256, Receipt: e.Admission.Receipt,
		DeadlineMS: c.DeadlineMS, CredentialSHA256: c.CredentialSHA256}
	if i := t.s.contract(&e.Prepared.Binding).Contract.Idempotency; i != nil && i.Retention > 0 {
		claim.IdempotencyUntil = t.in.At.Add(i.Retention)
	}
	t.about(e, events.SystemActor, claim)
	t.d.Claimed = true
	return nil
}

// decide settles an effect that was found unsendable before any claim.
func (c Abandon) decide(t *turn) *wire.Error {
	e := t.s.Effect(c.EffectID)
	if e == nil || e.Admission == nil || e.IntentSHA256() != c.IntentSHA256 {
		return wire.NoSuchEffect()
	}
	t.d.EffectID, t.d.Repeat = e.ID, true
	if e.State != wire.StateAdmitted {
		return nil
	}
	t.about(e, events.SystemActor, events.Settled{Outcome: events.OutcomeNoEffect, Reason: events.ReasonUnsendable,
		Evidence: events.Evidence{Source: "ledger", At: t.in.At, Detail: c.Detail}, Cost: events.Amounts{}})
	t.d.Repeat = false
	return nil
}

// decide records what the claimed send proved.
func (c Report) decide(t *turn) *wire.Error {
	e := t.s.Effect(c.EffectID)
	if e == nil || e.Claim == nil || e.IntentSHA256() != c.IntentSHA256 {
		return wire.NoSuchEffect()
	}
	if DigestNonce(c.Nonce) != e.Claim.NonceSHA256 {
		return wire.Errorf(wire.Forbidden, "the report is not from the claim's winner")
	}
	t.d.EffectID, t.d.Repeat = e.ID, true
	c.Result = c.Result.bounded()
	if c.Result.Outcome == events.OutcomeUnknown {
		if e.State != wire.StateDispatched {
			return nil
		}
		evidence := c.Result.Evidence
		t.about(e, events.SystemActor, events.Unknown{Reason: c.Result.Reason, Evidence: &evidence, SendEnded: true,
			AuditIncomplete: c.AuditIncomplete})
		t.d.Repeat = false
		return nil
	}
	t.prove(e, events.SystemActor, c.Result, settleAs{late: e.State == wire.StateUnknown, auditIncomplete: c.AuditIncomplete})
	return nil
}

// settleAs is how evidence came.
type settleAs struct {
	late            bool
	auditIncomplete bool
	attempt         events.AttemptID
	signed          *events.Settled // statement, signature and public key of an operator
}

// prove settles by typed evidence. The first settle wins; evidence that agrees
// with it changes nothing, evidence that does not is appended as contradicted.
func (t *turn) prove(e *Effect, actor events.Actor, r Result, as settleAs) {
	if e.State == wire.StateSettled {
		t.contradict(e, actor, r)
		return
	}
	if a := e.Running(); a != nil && a.AttemptID != as.attempt {
		e = t.about(e, actor, events.ReconcileEnded{AttemptID: a.AttemptID, Result: events.AttemptSuperseded})
	}
	cost, overrun, invalid := charge(e, r)
	settled := events.Settled{Outcome: r.Outcome, Means: r.Means, Reason: r.Reason, Evidence: r.Evidence, Cost: cost,
		CostInvalid: invalid, Overrun: overrun, ProviderRef: r.ProviderRef, Late: as.late, AuditIncomplete: as.auditIncomplete, AttemptID: as.attempt}
	if as.signed != nil {
		settled.Statement, settled.Signature, settled.PublicKey = as.signed.Statement, as.signed.Signature, as.signed.PublicKey
	}
	t.about(e, actor, settled)
	t.d.Repeat = false
}

// contradict records evidence that does not agree with the settled outcome; cost
// that it proves beyond what was charged is charged as overrun.
func (t *turn) contradict(e *Effect, actor events.Actor, r Result) {
	if r.Outcome == e.Settled.Outcome {
		return
	}
	for _, c := range e.Contradicted {
		if c.Outcome == r.Outcome && events.DigestOf(c.Evidence) == events.DigestOf(r.Evidence) {
			return // the same evidence, delivered again
		}
	}
	var extra events.Amounts
	cost, _, _ := charge(e, r)
	charged := e.spent()
	for u, amount := range spentOn(r.Outcome, cost) {
		if more := amount - charged[u]; more > 0 {
			if extra == nil {
				extra = events.Amounts{}
			}
			extra[u] = more
		}
	}
	t.about(e, actor, events.Contradicted{Outcome: r.Outcome, Evidence: r.Evidence, Cost: extra})
	t.d.Repeat = false
}

// spent is what a settled effect has cost its tasks so far.
func (e *Effect) spent() events.Amounts {
	total := events.Amounts{}
	maps.Copy(total, spentOn(e.Settled.Outcome, e.Settled.Cost))
	for _, c := range e.Contradicted {
		for u, amount := range c.Cost {
			total[u] += amount
		}
	}
	return total
}

// lost ends the claim of a dispatcher that will not report in time.
func (t *turn) lost(e *Effect) {
	ended := t.s.incarnationEnded(e.Claim.Dispatcher)
	detail := "no report by the deadline"
	if ended {
		detail = "the claiming process has ended"
	}
	t.about(e, events.SystemActor, events.Unknown{Reason: events.ReasonDispatcherLost, SendEnded: ended,
		Evidence: &events.Evidence{Source: "ledger", At: t.in.At, Detail: detail}})
}

// incarnationEnded reports whether a later life of the same node has opened the
// ledger: one process per data directory, so the earlier one is gone.
func (s *State) incarnationEnded(d events.Dispatcher) bool {
	_, ended := s.endedAt(d)
	return ended
}

// endedAt is by when a life of a node has provably ended.
func (s *State) endedAt(d events.Dispatcher) (events.Instant, bool) {
	now, known := s.head.Nodes[d.Node]
	return now.Since, known && now.Incarnation != d.Incarnation
}

// deadline is when the claim's send must be over.
func (c *Claim) deadline() events.Instant {
	return c.At.Add(time.Duration(c.DeadlineMS) * time.Millisecond)
}
