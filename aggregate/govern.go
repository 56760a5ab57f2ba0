package aggregate

import (
	"cmp"
	"slices"

	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// system is the ledger itself as the subject of an event.
var system = subject{tenant: events.SystemTenant, actor: events.SystemActor}

// decide creates the ledger or records that a writer takes over.
func (c OpenLedger) decide(t *turn) *wire.Error {
	h := t.s.head
	switch {
	case h.LedgerID != "" && h.LedgerID != c.LedgerID:
		return wire.Errorf(wire.LedgerUntrusted, "the log belongs to another ledger")
	case h.Fingerprint != "" && h.Fingerprint != c.Fingerprint:
		return wire.Errorf(wire.LedgerUntrusted, "the store has another fingerprint than the log")
	}
	t.emit(system, events.LedgerOpened{LedgerID: c.LedgerID, Writer: c.Writer, Node: c.Node, Program: c.Program,
		Limits: c.Limits, StoreFingerprint: c.Fingerprint})
	return nil
}

// decide admits a contract version; one that is registered never changes.
func (c RegisterOperation) decide(t *turn) *wire.Error {
	name, version := c.Contract.Name, c.Contract.Version
	if known := t.s.Operation(name, version); known != nil {
		if known.Contract.Digest != c.Contract.Digest {
			return wire.FieldError(wire.InvalidRequest, "version", "operation "+string(name)+" is registered with another contract under this version: give it a new version")
		}
		t.d.Repeat = true
		return nil
	}
	about := system
	about.operation = name
	t.emit(about, events.OperationRegistered{Version: version, Digest: c.Contract.Digest, Contract: c.Contract.Text})
	return nil
}

// decide ends a version for new effects; alone, however many effects use it.
func (c RetireOperation) decide(t *turn) *wire.Error {
	known := t.s.Operation(c.Name, c.Version)
	if known == nil || c.Version == 0 {
		return wire.FieldError(wire.UnknownOperation, "operation", "no such operation or version is registered")
	}
	if known.Retired {
		t.d.Repeat = true
		return nil
	}
	about := system
	about.operation = c.Name
	t.emit(about, events.OperationRetired{Version: c.Version})
	return nil
}

// decide replaces the owner's policy.
func (c ChangePolicy) decide(t *turn) *wire.Error {
	digest := events.DigestBytes([]byte(c.Text))
	if t.s.law.revision > 0 && digest == t.s.law.digest {
		t.d.Repeat = true
		return nil
	}
	if _, err := policy.Parse([]byte(c.Text), nil); err != nil {
		return wire.FieldError(wire.InvalidRequest, "policy", err.Error())
	}
	t.emit(system, events.PolicyChanged{Revision: t.s.law.revision + 1, PolicySHA256: digest, Policy: c.Text})
	return nil
}

// decide replaces the principal table.
func (c ChangeAccess) decide(t *turn) *wire.Error {
	users := slices.Clone(c.Users)
	slices.SortFunc(users, func(a, b events.User) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Principal, b.Principal))
	})
	if t.s.law.access.Revision > 0 && events.DigestOf(users) == events.DigestOf(t.s.law.access.Users) {
		t.d.Repeat = true
		return nil
	}
	if refusal := checkUsers(users); refusal != nil {
		return refusal
	}
	t.emit(system, events.AccessChanged{Revision: t.s.law.access.Revision + 1, Users: users})
	return nil
}

// checkUsers refuses a sorted table that could not say who is who.
func checkUsers(users []events.User) *wire.Error {
	roles := []events.Role{events.RoleProducer, events.RoleApprover, events.RoleOperator, events.RoleAuditor, events.RoleExecutor}
	for i, u := range users {
		switch {
		case !events.ValidToken(string(u.Tenant)), !events.ValidToken(string(u.Principal)), u.Principal == events.SystemPrincipal:
			return wire.FieldError(wire.InvalidRequest, "users", "tenant and principal are tokens, and not the reserved ones")
		case !slices.Contains(roles, u.Role):
			return wire.FieldError(wire.InvalidRequest, "users", "role "+string(u.Role)+" is not known")
		case i > 0 && u.Tenant == users[i-1].Tenant && u.Principal == users[i-1].Principal:
			return wire.FieldError(wire.InvalidRequest, "users", "principal "+string(u.Principal)+" is there twice")
		}
	}
	return nil
}
