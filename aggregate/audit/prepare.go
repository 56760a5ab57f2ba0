package audit

import (
	"maps"

	"github.com/effectd/effectd/aggregate/operation"
	"github.com/effectd/effectd/events"
)

// prepared checks a binding against its own digests, its contract and who asked.
func (a *Audit) prepared(ev *events.Event, d events.Prepared) {
	e := &life{id: ev.EffectID, tenant: ev.Tenant, stage: prepared, prepared: d}
	a.freshID(string(ev.EffectID), "effect_id")
	a.check(ruleUnique, a.lives[ev.EffectID] == nil, DuplicateEffect, "the effect id is prepared already")
	named := a.state.Causal(ev.Tenant, d.Context.RunID, d.Context.CausalID)
	a.check(ruleUnique, named == nil, DuplicateCausalID, "run_id and causal_id name another effect")
	a.bindingDigests(ev, &d)
	a.asked(ev, e)
	a.contracted(e)
	a.lives[ev.EffectID] = e
	run := a.runs[runKey{ev.Tenant, d.Context.RunID}]
	if run == nil {
		run = newRun(d.Context.Principal)
		a.runs[runKey{ev.Tenant, d.Context.RunID}] = run
	}
	a.check(ruleAuthority, run.principal == d.Context.Principal && !run.cancelled && run.outcome == "", Unauthorized, "the run is another principal's, or is over")
	run.open[e.id] = e
}

// bindingDigests recomputes everything that a prepared event digests.
func (a *Audit) bindingDigests(ev *events.Event, d *events.Prepared) {
	b, c := &d.Binding, &d.Context
	a.check(ruleDigests, d.PayloadRef != "" || b.PayloadSHA256 == events.DigestBytes(d.Payload), DigestMismatch, "payload_sha256 is not that of the payload")
	a.check(ruleDigests, b.ContextSHA256 == events.DigestOf(*c), DigestMismatch, "context_sha256 is not that of the context")
	a.check(ruleDigests, d.BindingDigest == events.DigestOf(*b), DigestMismatch, "binding_digest is not that of the binding")
	a.check(ruleDigests, b.IdempotencyKey == a.idempotencyKey(b), DigestMismatch, "idempotency_key is not derived from the effect")
	a.check(ruleDigests, events.ValidDigest(string(d.RequestSHA256)), DigestMismatch, "request_sha256 is not a digest")
	a.check(ruleDigests, b.V == events.Format && c.V == events.Format, UnknownVersion, "binding or context of an unknown version")
	a.check(rulePairs, b.EffectID == ev.EffectID && b.Operation == ev.Operation && b.TaskID == ev.TaskID && c.Tenant == ev.Tenant &&
		c.RunID == ev.RunID && c.CausalID == ev.CausalID && ev.IntentSHA256 == "", EnvelopeMismatch, "the common fields are not those of binding and context")
}

// idempotencyKey derives the key anew, from the ledger and the effect.
func (a *Audit) idempotencyKey(b *events.Binding) events.IdempotencyKey {
	body := map[string]any{"v": events.Format, "ledger_id": a.head.ledger, "effect_id": b.EffectID, "payload_sha256": b.PayloadSHA256}
	return events.IdempotencyKey("ek_" + events.DigestOf(body))
}

// asked checks that the producer might ask for this, now.
func (a *Audit) asked(ev *events.Event, e *life) {
	b := &e.prepared.Binding
	a.check(ruleAuthority, ev.Actor == e.actor(), Unauthorized, "another actor than the producer of the context")
	a.role(ev.Actor, ev.Tenant, events.RoleProducer)
	_, tasks := a.books.chain(ev.Tenant, b.TaskID)
	a.check(ruleAuthority, len(tasks) > 0 && tasks[0].holds(ev.Actor), Unauthorized, "the producer does not hold the task")
	a.check(ruleAuthority, alive(tasks, a.now) == "", Unauthorized, "the task, or an ancestor of it, is closed or expired")
	a.check(ruleAuthority, b.PolicyRevision == a.law.revision, Unauthorized, "bound under another policy than the one in force")
	a.check(ruleContracts, b.ExpiresAt > a.now, ContractMismatch, "the binding is over when it is made")
	for _, t := range tasks {
		a.check(ruleContracts, b.ExpiresAt <= t.expires, ContractMismatch, "the binding outlives its task")
	}
}

// contracted evaluates the contract on the payload again.
func (a *Audit) contracted(e *life) {
	b := &e.prepared.Binding
	c := a.law.bound(b)
	if !a.check(ruleContracts, c != nil, OperationMismatch, "no contract with this digest is registered") {
		return
	}
	a.check(ruleAuthority, !c.retired, Unauthorized, "the operation version is retired")
	a.check(ruleContracts, b.Adapter.Kind == c.Kind, ContractMismatch, "the adapter is not the contract's")
	a.check(ruleContracts, b.ExpiresAt <= a.now.Add(c.Lifetime(b.Precondition != nil)), ContractMismatch, "the binding outlives what the contract allows")
	if e.prepared.PayloadRef != "" {
		return // the payload is elsewhere, and may be shredded
	}
	payload, err := operation.ParsePayload(e.prepared.Payload)
	if !a.check(ruleContracts, err == nil && c.Validate(payload) == nil, ContractMismatch, "the payload does not fit the schema") {
		return
	}
	a.check(ruleContracts, c.CheckPrecondition(b.Precondition) == nil, ContractMismatch, "the contract does not support the precondition")
	resource, err := c.Resource(payload)
	a.check(ruleContracts, err == nil && resource == b.Resource, ContractMismatch, "the resource is not what the contract makes of the payload")
	bound, err := c.Bound(payload)
	a.check(ruleContracts, err == nil && maps.Equal(bound, b.MaxCost), ContractMismatch, "max_cost is not the bound of the contract")
}
