package audit

import (
	"fmt"

	"github.com/effectd/effectd/aggregate/operation"
	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/events"
)

// law is what decides, as logged up to the event that is being checked.
type law struct {
	limits    events.Limits
	users     map[events.Actor]events.User
	access    int64 // revision
	revision  int64 // of the policy
	digest    events.Digest
	policy    *policy.Policy
	contracts map[version]*contract
}

type version struct {
	name    events.OperationName
	version int64
}

type contract struct {
	*operation.Contract
	retired bool
}

func newLaw() law {
	return law{users: map[events.Actor]events.User{}, contracts: map[version]*contract{}}
}

// lawful checks and keeps the events that make the law. Only the ledger itself
// writes them.
func (a *Audit) lawful(ev *events.Event) {
	a.check(ruleAuthority, ev.Tenant == events.SystemTenant && ev.Actor == events.SystemActor, Unauthorized, "only the ledger itself changes its law")
	switch d := ev.Data.(type) {
	case events.LedgerOpened:
		a.opened(d)
	case events.LedgerRecovered:
		a.check(ruleLedger, d.OldFingerprint == a.head.store, ForeignLedger, "recovered from another store than the pinned one")
		a.head.store = d.NewFingerprint
	case events.OperationRegistered:
		a.registered(ev, d)
	case events.OperationRetired:
		c := a.law.contracts[version{ev.Operation, d.Version}]
		if a.check(ruleTransitions, c != nil && !c.retired, IllegalTransition, "what is retired is not registered, or retired already") {
			c.retired = true
		}
	case events.PolicyChanged:
		a.policyChanged(d)
	case events.AccessChanged:
		a.accessChanged(d)
	default: // not an event of the law
	}
}

func (a *Audit) opened(d events.LedgerOpened) {
	a.check(ruleLedger, d.LedgerID == a.head.ledger, ForeignLedger, "another ledger is opened")
	if a.head.store != "" {
		a.check(ruleLedger, d.StoreFingerprint == a.head.store, ForeignLedger, "the store has another fingerprint than the pinned one")
	}
	a.head.store = d.StoreFingerprint
	a.head.nodes[d.Node] = d.Writer
	a.law.limits = d.Limits
}

func (a *Audit) registered(ev *events.Event, d events.OperationRegistered) {
	key := version{ev.Operation, d.Version}
	a.check(ruleUnique, a.law.contracts[key] == nil, DuplicateOperation, "the version is registered already")
	c, err := operation.Compile("contract", []byte(d.Contract))
	if !a.check(ruleLaw, err == nil, LawInvalid, "the contract does not compile") {
		return
	}
	a.check(ruleDigests, c.Digest == d.Digest, DigestMismatch, "digest is not that of the contract")
	a.check(ruleLaw, c.Name == ev.Operation && c.Version == d.Version, OperationMismatch, "the contract has another name or version")
	if a.law.contracts[key] == nil {
		a.law.contracts[key] = &contract{Contract: c}
	}
}

func (a *Audit) policyChanged(d events.PolicyChanged) {
	a.check(ruleDigests, d.PolicySHA256 == events.DigestBytes([]byte(d.Policy)), DigestMismatch, "policy_sha256 is not that of the policy")
	a.check(ruleLaw, d.Revision == a.law.revision+1, RevisionGap, fmt.Sprintf("policy revision %d follows %d", d.Revision, a.law.revision))
	p, err := policy.Parse([]byte(d.Policy), nil)
	a.check(ruleLaw, err == nil, LawInvalid, "the policy does not parse")
	a.law.revision, a.law.digest, a.law.policy = d.Revision, d.PolicySHA256, p
}

func (a *Audit) accessChanged(d events.AccessChanged) {
	a.check(ruleLaw, d.Revision == a.law.access+1, RevisionGap, fmt.Sprintf("access revision %d follows %d", d.Revision, a.law.access))
	a.law.access = d.Revision
	a.law.users = make(map[events.Actor]events.User, len(d.Users))
	for _, u := range d.Users {
		actor := events.ActorOf(u.Tenant, u.Principal)
		_, twice := a.law.users[actor]
		a.check(ruleLaw, !twice && u.Tenant != events.SystemTenant && u.Principal != events.SystemPrincipal, LawInvalid,
			"a principal is there twice, or is the ledger itself")
		a.law.users[actor] = u
	}
}

// role checks that an actor of a tenant has a role.
func (a *Audit) role(actor events.Actor, tenant events.Tenant, roles ...events.Role) (events.User, bool) {
	u, known := a.law.users[actor]
	ok := false
	for _, r := range roles {
		ok = ok || u.Role == r
	}
	return u, a.check(ruleAuthority, known && ok && u.Tenant == tenant, Unauthorized, "the actor has no role for this in the tenant")
}

// bound is the contract that a binding names, or nil.
func (l *law) bound(b *events.Binding) *contract {
	c := l.contracts[version{b.Operation, b.OperationVersion}]
	if c == nil || c.Digest != b.OperationDigest {
		return nil
	}
	return c
}

// request asks what a principal may do with an effect.
func (l *law) request(action string, who events.Actor, e *life, c *contract) policy.Request {
	u, b := l.users[who], &e.prepared.Binding
	r := policy.Request{Action: action, Tenant: u.Tenant, Principal: u.Principal, Role: u.Role, Operation: b.Operation,
		Context: policy.Context{Target: b.Resource, Task: b.TaskID, Version: b.OperationVersion, MaxCost: b.MaxCost, Auth: e.prepared.Context.Auth}}
	if payload, err := operation.ParsePayload(e.prepared.Payload); err == nil {
		r.Context.Payload = c.Exposed(payload)
	}
	return r
}

// allows asks the logged policy.
func (l *law) allows(action string, who events.Actor, e *life) bool {
	c := l.bound(&e.prepared.Binding)
	if _, known := l.users[who]; !known || c == nil {
		return false
	}
	return l.policy.Decide(l.request(action, who, e, c)).Allow
}
