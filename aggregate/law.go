package aggregate

import (
	"fmt"
	"maps"
	"slices"

	"github.com/effectd/effectd/aggregate/operation"
	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/events"
)

// law is what decides: contracts, policy and principals in the version that the
// log holds. It is immutable.
type law struct {
	users    map[events.Actor]events.User
	access   events.AccessChanged
	versions map[events.OperationName][]*Operation // by version, oldest first
	revision int64
	digest   events.Digest // of the policy text
	text     string
	policy   *policy.Policy
}

// Operation is a registered contract version.
type Operation struct {
	Contract *operation.Contract
	Retired  bool
}

// User returns the row of a principal in the logged table.
func (s *State) User(a events.Actor) (events.User, bool) {
	u, ok := s.law.users[a]
	return u, ok
}

// Users returns the logged principal table. Never change it.
func (s *State) Users() []events.User { return s.law.access.Users }

// Policy returns the text, digest and revision of the owner's policy.
func (s *State) Policy() (text string, digest events.Digest, revision int64) {
	return s.law.text, s.law.digest, s.law.revision
}

// Operations returns every registered version, by name, then version.
func (s *State) Operations() []*Operation {
	var out []*Operation
	for _, name := range slices.Sorted(maps.Keys(s.law.versions)) {
		out = append(out, s.law.versions[name]...)
	}
	return out
}

// Operation returns one version, or the newest that is not retired for version
// 0; nil if there is none.
func (s *State) Operation(name events.OperationName, version int64) *Operation {
	vs := s.law.versions[name]
	for i := len(vs) - 1; i >= 0; i-- {
		if version == 0 && !vs[i].Retired || vs[i].Contract.Version == version {
			return vs[i]
		}
	}
	return nil
}

// contract returns the exact contract that a binding names; nil if the log does
// not hold it.
func (s *State) contract(b *events.Binding) *Operation {
	o := s.Operation(b.Operation, b.OperationVersion)
	if o == nil || o.Contract.Digest != b.OperationDigest {
		return nil
	}
	return o
}

func (l *law) withUsers(d events.AccessChanged) *law {
	n := *l
	n.access = d
	n.users = make(map[events.Actor]events.User, len(d.Users))
	for _, u := range d.Users {
		n.users[events.ActorOf(u.Tenant, u.Principal)] = u
	}
	return &n
}

// withPolicy keeps a policy that does not parse as one that allows nothing: the
// log is the truth even when it holds what this program cannot use.
func (l *law) withPolicy(d events.PolicyChanged) *law {
	n := *l
	n.revision, n.digest, n.text = d.Revision, d.PolicySHA256, d.Policy
	n.policy, _ = policy.Parse([]byte(d.Policy), nil)
	return &n
}

// withOperation adds a version. A contract that does not compile is left out:
// nothing can be bound to it.
func (l *law) withOperation(name events.OperationName, d events.OperationRegistered) *law {
	c, err := operation.Compile(fmt.Sprintf("%s/%d", name, d.Version), []byte(d.Contract))
	if err != nil || c.Digest != d.Digest {
		return l
	}
	n := *l
	n.versions = maps.Clone(l.versions)
	vs := append(slices.Clone(n.versions[name]), &Operation{Contract: c})
	slices.SortFunc(vs, func(a, b *Operation) int { return int(a.Contract.Version - b.Contract.Version) })
	n.versions[name] = vs
	return &n
}

func (l *law) retire(name events.OperationName, version int64) *law {
	n := *l
	n.versions = maps.Clone(l.versions)
	vs := slices.Clone(n.versions[name])
	for i, o := range vs {
		if o.Contract.Version == version {
			vs[i] = &Operation{Contract: o.Contract, Retired: true}
		}
	}
	n.versions[name] = vs
	return &n
}

// ask puts one question to the owner's policy.
func (s *State) ask(action string, who events.User, o *operation.Contract, c policy.Context) (policy.Decision, policy.Request) {
	r := policy.Request{Action: action, Tenant: who.Tenant, Principal: who.Principal, Role: who.Role, Operation: o.Name, Context: c}
	if s.law.policy == nil {
		return policy.Decision{}, r
	}
	return s.law.policy.Decide(r), r
}
