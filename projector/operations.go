package projector

import (
	"context"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events/wire"
)

// operations answers operation.list: every registered version.
func (q *Queries) operations(_ context.Context, c aggregate.Caller, _ wire.EmptyRequest) (any, *wire.Error) {
	state := q.projection.State()
	if _, known := state.User(c.Actor()); !known {
		return nil, wire.NotInTable()
	}
	out := &wire.List[wire.Operation]{Position: state.Head().Last}
	for _, o := range state.Operations() {
		k := o.Contract
		out.Items = append(out.Items, wire.Operation{Name: k.Name, Version: k.Version, Digest: k.Digest, Description: k.Description,
			Adapter: k.Kind, Retired: o.Retired, Input: k.Input, Units: k.Units, Supports: k.Supports()})
	}
	return out, nil
}
