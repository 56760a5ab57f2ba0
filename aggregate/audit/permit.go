package audit

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/events"
)

// permitted asks the logged policy again, and checks an approval's signature.
func (a *Audit) permitted(ev *events.Event, e *life, d events.Permitted) {
	p, auth := d.Permit, &d.Permit.Authorization
	a.freshID(string(p.ID), "the permit's id")
	a.check(ruleDigests, p.BindingDigest == e.prepared.BindingDigest && p.EffectID == e.id, DigestMismatch, "the permit is for another effect or binding")
	a.check(ruleDigests, p.V == events.Format && auth.V == events.Format, UnknownVersion, "permit or authorization of an unknown version")
	a.check(ruleDigests, auth.PolicySHA256 == a.law.digest, DigestMismatch, "policy_sha256 is not that of the policy in force")
	a.check(ruleAuthority, auth.PolicyRevision == a.law.revision && auth.Decision == "allow", Unauthorized, "not a decision of the policy in force")
	a.check(ruleAuthority, maps.Equal(p.MaxCost, e.prepared.Binding.MaxCost), Unauthorized, "the permit is for another cost")
	a.permitExpiry(e, &p)
	a.check(ruleAuthority, a.lapsed(e) == "", Unauthorized, "the effect was over when it was permitted")
	switch auth.Kind {
	case events.AuthorizationPolicy:
		a.check(ruleAuthority, ev.Actor == events.SystemActor, Unauthorized, "a policy permit is issued by the ledger itself")
		a.asksPolicy(e, auth, "commit")
	case events.AuthorizationApproval:
		a.asksPolicy(e, auth, "request_approval", "commit")
		a.approved(ev, e, &p)
	default:
		a.check(ruleAuthority, false, Unauthorized, "an authorization of an unknown kind")
	}
	e.permit = &p
}

// permitExpiry checks the earliest of all that bounds a permit (SPEC 11).
func (a *Audit) permitExpiry(e *life, p *events.Permit) {
	latest := e.prepared.Binding.ExpiresAt
	if ttl := a.law.limits.PermitTTLMS; ttl > 0 {
		latest = min(latest, a.now.Add(time.Duration(ttl)*time.Millisecond))
	}
	_, tasks := a.books.chain(e.tenant, e.prepared.Binding.TaskID)
	for _, t := range tasks {
		latest = min(latest, t.expires)
	}
	if c := a.law.bound(&e.prepared.Binding); c != nil && c.Idempotency != nil && c.Idempotency.Retention > 0 {
		latest = min(latest, a.now.Add(c.Idempotency.Retention))
	}
	a.check(ruleAuthority, p.ExpiresAt > a.now && p.ExpiresAt <= latest, Unauthorized, "the permit outlives what bounds it")
}

// asksPolicy decides again what the authorization says was decided.
func (a *Audit) asksPolicy(e *life, auth *events.Authorization, actions ...string) {
	c := a.law.bound(&e.prepared.Binding)
	if c == nil {
		a.check(ruleAuthority, false, Unauthorized, "no contract, so nothing was decided")
		return
	}
	for _, action := range actions {
		r := a.law.request(action, e.actor(), e, c)
		if !bytes.Equal(r.JSON(), auth.CedarRequest) {
			continue
		}
		d := a.law.policy.Decide(r)
		a.check(ruleAuthority, d.Allow, Unauthorized, "the logged policy does not allow "+action)
		a.check(ruleAuthority, slices.Equal(d.Determining, auth.Determining), Unauthorized, "other policies determine the decision")
		return
	}
	a.check(ruleAuthority, false, Unauthorized, "the policy was asked something else")
}

// approved checks that a registered approver signed exactly this binding.
func (a *Audit) approved(ev *events.Event, e *life, p *events.Permit) {
	u, ok := a.role(p.Authorization.Approver, e.tenant, events.RoleApprover)
	a.check(ruleAuthority, ev.Actor == p.Authorization.Approver && p.Authorization.Approver != e.actor(), Unauthorized, "approved by its producer, or recorded for another approver")
	a.check(ruleDigests, p.Authorization.StatementSHA256 == events.DigestBytes([]byte(p.Statement)), DigestMismatch, "statement_sha256 is not that of the statement")
	if ok {
		a.signed(e, u, policy.Signed{Statement: p.Statement, Signature: p.Signature, PublicKey: p.PublicKey}, policy.DecisionApprove)
	}
}

// signed checks a statement, field by field, and its signature by the key that the
// log has for the approver.
func (a *Audit) signed(e *life, u events.User, s policy.Signed, decision string) {
	b := &e.prepared.Binding
	_, err := policy.Verify(s, u.PublicKey, policy.Statement{V: events.Format, LedgerID: a.head.ledger, EffectID: e.id,
		BindingDigest: e.prepared.BindingDigest, Operation: b.Operation, Resource: b.Resource, MaxCost: b.MaxCost, ExpiresAt: b.ExpiresAt,
		Decision: decision, Approver: events.ActorOf(u.Tenant, u.Principal), IssuedAt: a.now})
	a.check(ruleAuthority, err == nil, SignatureInvalid, "the statement is not signed by the approver, or not about this effect")
}

// refused checks that an effect ended for the reason that is given.
func (a *Audit) refused(ev *events.Event, e *life, d events.Refused) {
	switch d.Reason {
	case events.ReasonApprovalDenied:
		if u, ok := a.role(ev.Actor, e.tenant, events.RoleApprover); ok {
			a.signed(e, u, policy.Signed{Statement: d.Statement, Signature: d.Signature, PublicKey: d.PublicKey}, policy.DecisionDeny)
		}
	case events.ReasonContextMismatch:
		a.check(ruleTransitions, ev.Actor == events.SystemActor, ReasonUnfounded, "only the ledger itself compares contexts")
	default:
		a.founded(ev, e, d.Reason)
	}
}

// founded checks the reason for which an effect ended before its claim.
func (a *Audit) founded(ev *events.Event, e *life, reason events.Reason) {
	ok := false
	switch reason {
	case events.ReasonWithdrawn:
		ok = ev.Actor == e.actor()
	case events.ReasonRevoked:
		a.role(ev.Actor, e.tenant, events.RoleOperator)
		ok = true
	case events.ReasonPolicyDenied:
		ok = ev.Actor == events.SystemActor && a.denied(e)
	case events.ReasonUnsendable:
		ok = ev.Actor == events.SystemActor && e.admitted
	case events.ReasonExpired, events.ReasonTaskClosed, events.ReasonOperationRetired, events.ReasonRunCancelled:
		ok = ev.Actor == events.SystemActor && a.lapsed(e) == reason || reason == events.ReasonExpired && a.lapsed(e) != ""
	}
	a.check(ruleTransitions, ok, ReasonUnfounded, "the effect did not end for the reason "+string(reason))
}
