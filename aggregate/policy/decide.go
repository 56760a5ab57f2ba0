package policy

import (
	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"

	"github.com/effectd/effectd/events"
)

// Request is one question: may this principal do this with this operation?
type Request struct {
	Action    string
	Tenant    events.Tenant
	Principal events.Principal
	Role      events.Role
	Operation events.OperationName
	Context   Context
}

// Context is what a policy may look at beside who and what.
type Context struct {
	Target  string         // the resource of the effect
	Task    events.TaskID  // that pays
	Version int64          // of the operation
	MaxCost events.Amounts // the reservation
	Auth    events.Auth
	Payload map[string]any // the exposed fields; JSON values
}

// Decision is the answer. The zero Decision denies.
type Decision struct {
	Allow       bool
	Determining []string // ids of the policies that decided, sorted; empty when nothing permits
	Errors      []string // ids of the policies that could not be evaluated, sorted
}

// Decide answers a request (P1, P2).
func (p *Policy) Decide(r Request) Decision {
	out := Decision{Determining: []string{}}
	if p == nil {
		return out
	}
	who := principal(r)
	decision, diagnostic := cedar.Authorize(p.named, who, cedar.Request{
		Principal: who.UID,
		Action:    types.NewEntityUID(typeAction, types.String(r.Action)),
		Resource:  types.NewEntityUID(typeOperation, types.String(r.Operation)),
		Context:   r.Context.record(),
	})
	out.Allow = decision == cedar.Allow
	for _, reason := range diagnostic.Reasons {
		out.Determining = append(out.Determining, string(reason.PolicyID))
	}
	for _, failed := range diagnostic.Errors {
		out.Errors = append(out.Errors, string(failed.PolicyID))
	}
	return out
}

// who is the one entity of a request that has parents.
type who struct{ types.Entity }

// Get implements [cedar.EntityGetter].
func (w who) Get(uid types.EntityUID) (types.Entity, bool) { return w.Entity, uid == w.UID }

func principal(r Request) who {
	return who{types.Entity{
		UID: types.NewEntityUID(typePrincipal, types.String(events.ActorOf(r.Tenant, r.Principal))),
		Parents: types.NewEntityUIDSet(
			types.NewEntityUID(typeRole, types.String(r.Role)),
			types.NewEntityUID(typeTenant, types.String(r.Tenant)),
		),
	}}
}

func (c Context) record() types.Record {
	costs := make(types.RecordMap, len(c.MaxCost))
	for unit, amount := range c.MaxCost {
		costs[types.String(unit)] = types.Long(amount)
	}
	return types.NewRecord(types.RecordMap{
		"target":   types.String(c.Target),
		"task":     types.String(c.Task),
		"version":  types.Long(c.Version),
		"max_cost": types.NewRecord(costs),
		"auth":     types.NewRecord(types.RecordMap{"source": types.String(c.Auth.Source), "strength": types.String(c.Auth.Strength)}),
		"payload":  recordOf(c.Payload),
	})
}
