package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/effectd/effectd/aggregate/operation"
	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/events"
)

// example is one question and the answer that its writer expects.
type example struct {
	Name      string         `yaml:"name"`
	Principal string         `yaml:"principal"` // NAME or TENANT/NAME
	Role      string         `yaml:"role"`      // default: as the table of users has it
	Operation string         `yaml:"operation"`
	Version   int64          `yaml:"version"` // default: the newest
	Task      string         `yaml:"task"`
	Payload   map[string]any `yaml:"payload"`
	Action    string         `yaml:"action"` // default: commit, then request_approval
	Expect    string         `yaml:"expect"`
}

// The answers. With an action, allow is the other of deny.
const (
	expectAllow = "allow"
	expectDeny  = "deny"
)

// exam is what examples are asked against.
type exam struct {
	policy    *policy.Policy
	contracts []*operation.Contract
	users     []events.User
}

// answer puts one question.
func (x *exam) answer(q example) verdict {
	a := verdict{Name: q.Name, Expect: q.Expect, Asked: []asking{}}
	request, err := x.request(q)
	if bad := q.check(); bad != nil {
		err = bad
	}
	if err != nil {
		a.Fault = err.Error()
		return a
	}
	steps := []policy.Step{{Action: q.Action, Decision: x.policy.Decide(request)}}
	if q.Action == "" {
		steps = x.policy.Steps(request)
	}
	a.Got = expectDeny
	for _, s := range steps {
		a.Asked = append(a.Asked, asking{s.Action, s.Allow, x.cite(s.Determining), x.cite(s.Errors)})
		if s.Allow {
			a.Got = s.Action
		}
	}
	if q.Action != "" && a.Got != expectDeny && q.Expect == expectAllow {
		a.Got = expectAllow
	}
	a.OK = a.Got == q.Expect
	return a
}

func (x *exam) cite(ids []string) []citation {
	out := make([]citation, len(ids))
	for i, id := range ids {
		out[i] = citation{id, x.policy.Line(id)}
	}
	return out
}

// check refuses what no answer could be compared with.
func (q *example) check() error {
	can := []string{policy.ActionCommit, policy.ActionRequestApproval, expectDeny}
	if q.Action != "" {
		if !slices.Contains(policy.Actions(), q.Action) {
			return fmt.Errorf("action: there are %s", strings.Join(policy.Actions(), ", "))
		}
		can = []string{q.Action, expectAllow, expectDeny}
	}
	if !slices.Contains(can, q.Expect) {
		return fmt.Errorf("expect: want %s", strings.Join(can, ", "))
	}
	return nil
}

// request is what the ledger would ask about the effect.
func (x *exam) request(q example) (r policy.Request, err error) {
	tenant, name, ok := strings.Cut(q.Principal, "/")
	if !ok {
		tenant, name = string(home.DefaultTenant), q.Principal
	}
	r = policy.Request{Action: q.Action, Tenant: events.Tenant(tenant), Principal: events.Principal(name), Role: events.Role(q.Role),
		Operation: events.OperationName(q.Operation)}
	if !events.ValidToken(tenant) || !events.ValidToken(name) {
		return r, fmt.Errorf("principal: want NAME or TENANT/NAME")
	}
	if r.Role == "" {
		i := slices.IndexFunc(x.users, func(u events.User) bool { return u.Tenant == r.Tenant && u.Principal == r.Principal })
		if i < 0 {
			return r, fmt.Errorf("role: missing, and %s/%s is not in the table of users", tenant, name)
		}
		r.Role = x.users[i].Role
	}
	c := x.contract(q)
	if c == nil {
		return r, fmt.Errorf("operation: there is no such contract")
	}
	r.Context, err = contextOf(c, q)
	return r, err
}

// contract is the version that is named, or the newest.
func (x *exam) contract(q example) (found *operation.Contract) {
	for _, c := range x.contracts {
		if string(c.Name) == q.Operation && (q.Version == 0 || q.Version == c.Version) && (found == nil || c.Version > found.Version) {
			found = c
		}
	}
	return found
}

// contextOf is what the contract makes of the payload.
func contextOf(c *operation.Contract, q example) (policy.Context, error) {
	out := policy.Context{Task: events.TaskID(q.Task), Version: c.Version, Auth: events.Auth{Source: "nkey", Strength: "signature"}}
	if q.Payload == nil {
		q.Payload = map[string]any{}
	}
	raw, err := json.Marshal(q.Payload)
	if err != nil {
		return out, fmt.Errorf("payload: %w", err)
	}
	canonical, err := events.Canonicalize(raw)
	if err != nil {
		return out, fmt.Errorf("payload: %w", err)
	}
	payload, err := operation.ParsePayload(canonical)
	if err == nil {
		err = c.Validate(payload)
	}
	if err != nil {
		return out, err
	}
	if out.Target, err = c.Resource(payload); err == nil {
		out.MaxCost, err = c.Bound(payload)
	}
	out.Payload = c.Exposed(payload)
	return out, err
}
