package aggregate

import (
	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// decide settles by an operator's word, with evidence.
func (c SettleByOperator) decide(t *turn) *wire.Error {
	user, refusal := t.user(c.Caller, events.RoleOperator)
	if refusal != nil {
		return refusal
	}
	e, refusal := t.overseen(c.Caller, user, c.EffectID, policy.ActionSettle)
	if refusal != nil {
		return refusal
	}
	if e.State == wire.StateSettled && e.Settled.Outcome == c.Outcome {
		t.d.Repeat = true
		return nil
	}
	if e.State != wire.StateUnknown {
		return wire.Errorf(wire.IllegalTransition, "only an unknown effect is settled by an operator")
	}
	evidence := c.Evidence
	evidence.Source, evidence.Who, evidence.At = "operator", c.Actor(), t.in.At
	evidence.SHA256 = events.DigestBytes(evidence.Named)
	if len(events.CanonicalOf(evidence)) > MaxEvidence {
		return wire.FieldError(wire.RecordTooLarge, "evidence", "it is longer than 8 KiB")
	}
	if refusal := c.signature(t, user, e, evidence.SHA256); refusal != nil {
		return refusal
	}
	as := settleAs{}
	if c.Signed != nil {
		as.signed = &events.Settled{Statement: c.Signed.Statement, Signature: c.Signed.Signature, PublicKey: c.Signed.PublicKey}
	}
	t.prove(e, c.Actor(), Result{Outcome: c.Outcome, Reason: events.ReasonOperatorEstablished, Evidence: evidence}, as)
	return nil
}

// signature checks the operator's signed statement: no_effect must have one, and
// one that is there must be right.
func (c SettleByOperator) signature(t *turn, user events.User, e *Effect, evidence events.Digest) *wire.Error {
	if c.Signed == nil {
		if c.Outcome == events.OutcomeNoEffect {
			return wire.FieldError(wire.ApprovalInvalid, "statement", "no_effect must be signed by the operator")
		}
		return nil
	}
	_, err := policy.VerifySettlement(*c.Signed, user.PublicKey, policy.Settlement{V: events.Format, LedgerID: t.s.head.LedgerID,
		EffectID: e.ID, BindingDigest: e.Prepared.BindingDigest, Outcome: c.Outcome, EvidenceSHA256: evidence,
		Operator: c.Actor(), IssuedAt: t.in.At})
	if err != nil {
		return wire.FieldError(wire.ApprovalInvalid, "statement", err.Error())
	}
	return nil
}

// decide accepts a risk; it proves nothing and frees nothing.
func (c Acknowledge) decide(t *turn) *wire.Error {
	user, refusal := t.user(c.Caller, events.RoleOperator)
	if refusal != nil {
		return refusal
	}
	e, refusal := t.overseen(c.Caller, user, c.EffectID, policy.ActionAcknowledge)
	if refusal != nil {
		return refusal
	}
	switch {
	case e.Acknowledged != nil:
		t.d.Repeat = true
		return nil
	case e.State != wire.StateUnknown:
		return wire.Errorf(wire.IllegalTransition, "only an unknown effect is acknowledged")
	}
	if refusal := checkReason(c.Reason); refusal != nil {
		return refusal
	}
	t.about(e, c.Actor(), events.Acknowledged{By: c.Actor(), Reason: c.Reason})
	return nil
}
