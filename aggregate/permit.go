package aggregate

import (
	"time"

	"github.com/effectd/effectd/aggregate/operation"
	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/events"
)

// policyPermit asks the owner's policy: a permit; or what an approval is asked
// for; or neither.
func (t *turn) policyPermit(user events.User, e *Effect, chain []*Task) (permit *events.Permit, waits *policy.Request) {
	contract := t.s.contract(&e.Prepared.Binding).Contract
	c := t.s.policyContext(e, contract)
	decision, request := t.s.ask(policy.ActionCommit, user, contract, c)
	if !decision.Allow {
		if asked, request := t.s.ask(policy.ActionRequestApproval, user, contract, c); asked.Allow {
			return nil, &request
		}
		return nil, nil
	}
	return t.permit(e, chain, events.Authorization{
		V: events.Format, Kind: events.AuthorizationPolicy, PolicyRevision: t.s.law.revision, PolicySHA256: t.s.law.digest,
		CedarRequest: request.JSON(), Determining: decision.Determining, Decision: "allow",
	}), nil
}

// permit builds the one-use authority for exactly this effect and binding.
func (t *turn) permit(e *Effect, chain []*Task, a events.Authorization) *events.Permit {
	expires := e.Prepared.Binding.ExpiresAt
	if ttl := t.s.head.Limits.PermitTTLMS; ttl > 0 {
		expires = min(expires, t.in.At.Add(time.Duration(ttl)*time.Millisecond))
	}
	for _, task := range chain {
		expires = min(expires, task.ExpiresAt)
	}
	if i := t.s.contract(&e.Prepared.Binding).Contract.Idempotency; i != nil && i.Retention > 0 {
		expires = min(expires, t.in.At.Add(i.Retention))
	}
	return &events.Permit{V: events.Format, ID: events.PermitID(t.id()), EffectID: e.ID, BindingDigest: e.Prepared.BindingDigest,
		Authorization: a, MaxCost: e.Prepared.Binding.MaxCost, ExpiresAt: expires}
}

// policyContext is what policy sees of an effect: exposed payload fields only.
func (s *State) policyContext(e *Effect, contract *operation.Contract) policy.Context {
	b := &e.Prepared.Binding
	c := policy.Context{Target: b.Resource, Task: b.TaskID, Version: b.OperationVersion, MaxCost: b.MaxCost, Auth: e.Prepared.Context.Auth}
	if payload, err := operation.ParsePayload(e.Prepared.Payload); err == nil {
		c.Payload = contract.Exposed(payload)
	}
	return c
}
