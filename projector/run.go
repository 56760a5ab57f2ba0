package projector

import (
	"context"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// run answers run.get, to the producer whose run it is.
func (q *Queries) run(ctx context.Context, c aggregate.Caller, r wire.RunRequest) (any, *wire.Error) {
	if refusal := q.reach(ctx, "", 0); refusal != nil {
		return nil, refusal
	}
	state := q.projection.State()
	user, known := state.User(c.Actor())
	run := state.Run(c.Tenant, r.RunID)
	if !known || user.Role != events.RoleProducer || run == nil || run.Principal != c.Principal {
		return nil, wire.NoSuchRun()
	}
	return state.RunView(run, q.projection.now(state)), nil
}
