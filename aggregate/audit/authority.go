package audit

import (
	"slices"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/operation"
	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/events"
)

// contract decides again what the logged contract makes of a payload.
func (a *Audit) contract(ev *events.Event, d *events.Prepared) {
	b := &d.Binding
	bad := func(ok bool, message string) bool { return a.check(ruleContracts, ok, OperationMismatch, message) }
	op := a.state.Operation(b.Operation, b.OperationVersion)
	if !bad(op != nil && op.Contract.Digest == b.OperationDigest, "the binding's contract is not in the log") {
		return
	}
	c := op.Contract
	bad(!op.Retired, "the contract is retired")
	bad(b.Adapter == c.Adapter(), "the adapter is not the contract's")
	bad(b.ExpiresAt > ev.Time && b.ExpiresAt <= ev.Time.Add(c.Expires), "the binding outlives what the contract allows")
	chain := a.state.Ancestry(ev.Tenant, b.TaskID)
	bad(len(chain) > 0 && chain[0].Holds(events.ActorOf(d.Context.Tenant, d.Context.Principal)), "the principal does not hold the task")
	if d.PayloadRef != "" {
		return // the payload is elsewhere
	}
	payload, err := operation.ParsePayload(d.Payload)
	if !bad(err == nil && c.Validate(payload) == nil, "the payload does not match the contract's schema") {
		return
	}
	resource, err := c.Resource(payload)
	bad(err == nil && resource == b.Resource, "the resource is not what the contract makes of the payload")
	bound, err := c.Bound(payload)
	bad(err == nil && events.DigestOf(bound) == events.DigestOf(b.MaxCost), "max_cost is not what the contract makes of the payload")
}

// permitted asks the logged policy again.
func (a *Audit) permitted(ev *events.Event, e *aggregate.Effect, p *events.Permit) {
	bad := func(ok bool, message string) bool { return a.check(ruleAuthority, ok, Unauthorized, message) }
	bad(p.EffectID == e.ID && p.BindingDigest == e.Prepared.BindingDigest, "the permit is for another effect or binding")
	bad(events.DigestOf(p.MaxCost) == events.DigestOf(e.Prepared.Binding.MaxCost), "the permit allows another cost than the binding")
	bad(p.ExpiresAt > ev.Time && p.ExpiresAt <= e.Prepared.Binding.ExpiresAt, "the permit outlives the binding")
	auth := &p.Authorization
	_, digest, revision := a.state.Policy()
	bad(auth.PolicyRevision == revision && auth.PolicySHA256 == digest, "the permit names another policy than the one in force")
	bad(a.state.Lapsed(e, ev.Time) == "", "permitted though its authority had ended")
	action := policy.ActionCommit
	if auth.Kind == events.AuthorizationApproval {
		action = policy.ActionRequestApproval
		a.approved(e, p)
	}
	decision, request := a.state.Reask(action, e)
	if bad(decision.Allow && auth.Decision == "allow", "the policy does not allow it") {
		bad(slices.Equal(decision.Determining, auth.Determining), "other policies decided")
		bad(string(request.JSON()) == string(auth.CedarRequest), "another question was asked")
	}
}

// approved verifies the signature of an approval.
func (a *Audit) approved(e *aggregate.Effect, p *events.Permit) {
	approver, known := a.state.User(p.Authorization.Approver)
	want := a.state.StatementOf(e, "approve", p.Authorization.Approver)
	got, err := policy.Verify(policy.Signed{Statement: p.Statement, Signature: p.Signature, PublicKey: p.PublicKey}, approver.PublicKey, want)
	ok := known && approver.Role == events.RoleApprover && err == nil && got.SHA256() == p.Authorization.StatementSHA256
	a.check(ruleAuthority, ok, Unauthorized, "the approval is not signed by a registered approver for exactly this effect")
	a.check(ruleAuthority, p.Authorization.Approver != e.Actor(), Unauthorized, "the approver is the producer")
}
