package audit

import (
	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// predecessors says in which states an event may come (SPEC 5).
var predecessors = map[events.Type][]wire.State{
	events.TypePermitted:        {wire.StatePrepared},
	events.TypeRefused:          {wire.StatePrepared, wire.StatePermitted},
	events.TypeAdmitted:         {wire.StatePermitted},
	events.TypeDispatched:       {wire.StateAdmitted},
	events.TypeSettled:          {wire.StateAdmitted, wire.StateDispatched, wire.StateUnknown},
	events.TypeUnknown:          {wire.StateDispatched},
	events.TypeReconcileStarted: {wire.StateUnknown},
	events.TypeReconcileEnded:   {wire.StateUnknown},
	events.TypeAcknowledged:     {wire.StateUnknown},
	events.TypeContradicted:     {wire.StateSettled},
}

// effectEvent checks an event about an effect on the state before it.
func (a *Audit) effectEvent(ev *events.Event, entryTime events.Instant) {
	e := a.state.Effect(ev.EffectID)
	if d, ok := ev.Data.(events.Prepared); ok {
		a.check(ruleUnique, e == nil, DuplicateEffectID, "another effect has this id")
		a.prepared(ev, &d)
		return
	}
	if !a.check(ruleIntents, e != nil, ResultWithoutIntent, "the event is about an effect that was never prepared") {
		return
	}
	a.unique(ev, e)
	legal := false
	for _, s := range predecessors[ev.Type] {
		legal = legal || s == e.State
	}
	a.check(ruleTransitions, legal, IllegalTransition, string(ev.Type)+" cannot come after "+string(e.State))
	a.envelope(ev, e)
	switch d := ev.Data.(type) {
	case events.Permitted:
		a.permitted(ev, e, &d.Permit)
	case events.Admitted:
		a.admitted(ev, e, &d)
	case events.Dispatched:
		a.dispatched(ev, e, &d)
	case events.Settled:
		a.settled(e, &d)
	default: // their state is checked above
	}
}

// unique checks what may happen at most once.
func (a *Audit) unique(ev *events.Event, e *aggregate.Effect) {
	switch ev.Type {
	case events.TypePermitted:
		a.check(ruleUnique, e.Permit == nil, DuplicatePermit, "the effect has a permit already")
	case events.TypeAdmitted:
		a.check(ruleUnique, e.Admission == nil, DuplicateAdmission, "the effect is admitted already")
	case events.TypeDispatched:
		a.check(ruleUnique, e.Claim == nil, DuplicateClaim, "the admission is claimed already")
	case events.TypeSettled:
		a.check(ruleUnique, e.Settled == nil, DuplicateSettle, "the effect is settled already")
	default: // may repeat
	}
}

// envelope checks that the common fields are the effect's own.
func (a *Audit) envelope(ev *events.Event, e *aggregate.Effect) {
	c := &e.Prepared.Context
	a.check(ruleIntents, ev.Operation == e.Operation(), OperationMismatch, "the event names another operation than its effect")
	a.check(ruleDigests, ev.Tenant == e.Tenant && ev.TaskID == e.TaskID() && ev.RunID == c.RunID && ev.CausalID == c.CausalID, DigestMismatch,
		"the event's common fields are not its effect's")
	if ev.Type != events.TypeAdmitted {
		a.check(ruleIntents, ev.IntentSHA256 == e.IntentSHA256(), IntentCommitmentMismatch, "the event repeats another intent than the admitted one")
	}
}

// prepared recomputes everything that a binding commits to.
func (a *Audit) prepared(ev *events.Event, d *events.Prepared) {
	b, c := &d.Binding, &d.Context
	named := a.state.Causal(ev.Tenant, c.RunID, c.CausalID)
	a.check(ruleUnique, named == nil, DuplicateCausalID, "run and causal id name another effect")
	digest := func(ok bool, what string) { a.check(ruleDigests, ok, DigestMismatch, what+" does not match") }
	if len(d.Payload) > 0 {
		digest(events.DigestBytes(d.Payload) == b.PayloadSHA256, "payload_sha256")
	}
	digest(events.DigestOf(*c) == b.ContextSHA256, "context_sha256")
	digest(events.DigestOf(*b) == d.BindingDigest, "binding_digest")
	digest(b.EffectID == ev.EffectID && b.TaskID == ev.TaskID && b.Operation == ev.Operation && c.Tenant == ev.Tenant &&
		c.RunID == ev.RunID && c.CausalID == ev.CausalID, "binding")
	digest(b.IdempotencyKey == aggregate.IdempotencyKey(a.state.Head().LedgerID, b.EffectID, b.PayloadSHA256), "idempotency_key")
	a.contract(ev, d)
}

// dispatched checks the claim's receipt against the admission.
func (a *Audit) dispatched(ev *events.Event, e *aggregate.Effect, d *events.Dispatched) {
	if !a.check(ruleIntents, e.Admission != nil, ResultWithoutIntent, "claimed without an admission") {
		return
	}
	a.check(ruleReceipts, events.DigestOf(d.Receipt) == events.DigestOf(e.Admission.Receipt), ReceiptMismatch, "the claim carries another receipt than the admission's")
	if reason := a.state.Lapsed(e, ev.Time); reason != "" {
		a.check(ruleAuthority, false, Unauthorized, "claimed though its authority had ended: "+string(reason))
		return
	}
	a.check(ruleAuthority, true, "", "")
	a.check(ruleDigests, events.ValidDigest(string(d.NonceSHA256)), DigestMismatch, "nonce_sha256 is no digest")
}

// settled checks that a result has its intent, and what it is charged.
func (a *Audit) settled(e *aggregate.Effect, d *events.Settled) {
	if !a.check(ruleIntents, e.Admission != nil, ResultWithoutIntent, "settled without an admission") {
		return
	}
	sent := e.Claim != nil
	a.check(ruleTransitions, sent || d.Outcome == events.OutcomeNoEffect, IllegalTransition, "an effect that was never claimed can only be settled as no_effect")
	if d.Outcome == events.OutcomeNoEffect {
		a.check(ruleBudget, len(d.Cost) == 0, BudgetOverdrawn, "no_effect is charged")
		return
	}
	for unit, amount := range d.Cost {
		over := max(0, amount-e.Prepared.Binding.MaxCost[unit])
		a.check(ruleBudget, amount >= 0 && over == d.Overrun[unit], BudgetOverdrawn, "the cost in "+string(unit)+" exceeds the reservation by more than the recorded overrun")
	}
}

// ownerEvent checks an event that is not about one effect.
func (a *Audit) ownerEvent(ev *events.Event) {
	switch d := ev.Data.(type) {
	case events.TaskOpened:
		a.check(ruleUnique, a.state.Task(ev.Tenant, ev.TaskID) == nil, DuplicateTask, "another task has this id")
		a.check(ruleTransitions, d.Parent == "" || a.state.Task(ev.Tenant, d.Parent) != nil, IllegalTransition, "the parent task does not exist")
	case events.PolicyChanged:
		a.check(ruleDigests, events.DigestBytes([]byte(d.Policy)) == d.PolicySHA256, DigestMismatch, "policy_sha256 does not match")
		_, _, revision := a.state.Policy()
		a.check(ruleTransitions, d.Revision == revision+1, IllegalTransition, "the policy revision does not follow")
	case events.OperationRegistered:
		a.check(ruleTransitions, a.state.Operation(ev.Operation, d.Version) == nil, IllegalTransition, "the operation version is registered already")
	case events.Collected:
		for _, id := range d.Effects {
			e := a.state.Effect(id)
			a.check(ruleCollected, e != nil && e.State.Terminal() && e.Prepared.Binding.ExpiresAt < ev.Time, CollectedEarly, "an effect is collected before its horizon")
		}
	default: // their form is checked by decoding
	}
}
