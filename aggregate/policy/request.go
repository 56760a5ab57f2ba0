package policy

import (
	"github.com/cedar-policy/cedar-go/types"

	"github.com/effectd/effectd/events"
)

// JSON is the request as the log keeps it: in Cedar's JSON form, canonical, with
// the parents of the principal, so that it can be decided again.
func (r Request) JSON() events.Raw {
	costs := r.Context.MaxCost
	if costs == nil {
		costs = events.Amounts{}
	}
	return events.CanonicalOf(loggedRequest{
		Principal: entity{typePrincipal, string(events.ActorOf(r.Tenant, r.Principal))},
		Parents:   []entity{{typeRole, string(r.Role)}, {typeTenant, string(r.Tenant)}},
		Action:    entity{typeAction, r.Action},
		Resource:  entity{typeOperation, string(r.Operation)},
		Context: loggedContext{
			Target: r.Context.Target, Task: r.Context.Task, Version: r.Context.Version, MaxCost: costs, Auth: r.Context.Auth,
			Payload: plainObject(r.Context.Payload),
		},
	})
}

type loggedRequest struct {
	Principal entity        `json:"principal"`
	Parents   []entity      `json:"parents"`
	Action    entity        `json:"action"`
	Resource  entity        `json:"resource"`
	Context   loggedContext `json:"context"`
}

type entity struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

type loggedContext struct {
	Target  string         `json:"target"`
	Task    events.TaskID  `json:"task"`
	Version int64          `json:"version"`
	MaxCost events.Amounts `json:"max_cost"`
	Auth    events.Auth    `json:"auth"`
	Payload map[string]any `json:"payload"`
}

// plain is a JSON value as Cedar's JSON form has it, in step with [valueOf].
func plain(v any) (any, bool) {
	switch v := v.(type) {
	case bool, string, int64:
		return v, true
	case float64:
		value, ok := numberOf(v)
		switch value := value.(type) {
		case types.Long:
			return int64(value), ok
		case types.String:
			return string(value), ok
		case types.Decimal:
			return map[string]any{"__extn": map[string]any{"fn": "decimal", "arg": decimalText(v)}}, ok
		}
		return nil, false
	case []any:
		out := make([]any, 0, len(v))
		for _, item := range v {
			if item, ok := plain(item); ok {
				out = append(out, item)
			}
		}
		return out, true
	case map[string]any:
		return plainObject(v), true
	default:
		return nil, false
	}
}

func plainObject(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for name, v := range m {
		if v, ok := plain(v); ok {
			out[name] = v
		}
	}
	return out
}
