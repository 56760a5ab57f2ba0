package aggregate

import (
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// decide ends one's own effect before its claim.
func (c Withdraw) decide(t *turn) *wire.Error {
	if _, refusal := t.user(c.Caller, events.RoleProducer); refusal != nil {
		return refusal
	}
	e, refusal := t.own(c.Caller, c.EffectID)
	if refusal != nil {
		return refusal
	}
	return t.takeBack(e, c.Actor(), events.ReasonWithdrawn, c.Reason)
}

// decide ends an effect of the tenant before its claim.
func (c Revoke) decide(t *turn) *wire.Error {
	if _, refusal := t.user(c.Caller, events.RoleOperator); refusal != nil {
		return refusal
	}
	e, refusal := t.inTenant(c.Caller, c.EffectID)
	if refusal != nil {
		return refusal
	}
	return t.takeBack(e, c.Actor(), events.ReasonRevoked, c.Reason)
}

// takeBack ends an effect before its claim; after it nothing is undone.
func (t *turn) takeBack(e *Effect, actor events.Actor, reason events.Reason, why string) *wire.Error {
	if refusal := checkReason(why); refusal != nil {
		return refusal
	}
	e = t.lapse(e)
	switch {
	case e.State == wire.StateRefused && e.Refused.Reason == reason,
		e.State == wire.StateSettled && e.Settled.Reason == reason:
		t.d.Repeat = true
		return nil
	case !e.beforeClaim():
		return wire.Errorf(wire.TooLate, "the effect is past its claim or ended; nothing is undone")
	}
	t.endFor(e, actor, reason, why)
	return nil
}

// end ends an effect before its claim: refused before the admission, settled as
// no_effect with full release after it.
func (t *turn) end(e *Effect, actor events.Actor, reason events.Reason) *Effect {
	return t.endFor(e, actor, reason, "")
}

// endFor is [turn.end] with the words of who ends it.
func (t *turn) endFor(e *Effect, actor events.Actor, reason events.Reason, why string) *Effect {
	if e.State != wire.StateAdmitted {
		return t.about(e, actor, events.Refused{Reason: reason, Detail: why, By: byOther(actor)})
	}
	detail := "never claimed, so never sent"
	if why != "" {
		detail += ": " + why
	}
	return t.about(e, actor, events.Settled{Outcome: events.OutcomeNoEffect, Reason: reason,
		Evidence: events.Evidence{Source: "ledger", At: t.in.At, Detail: detail}, Cost: events.Amounts{}})
}

// byOther names an actor that is not the ledger itself.
func byOther(a events.Actor) events.Actor {
	if a == events.SystemActor {
		return ""
	}
	return a
}
