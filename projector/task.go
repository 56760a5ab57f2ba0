package projector

import (
	"context"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events/wire"
)

// task answers task.get.
func (q *Queries) task(ctx context.Context, c aggregate.Caller, r wire.TaskGetRequest) (any, *wire.Error) {
	if refusal := q.reach(ctx, r.MinPosition, 0); refusal != nil {
		return nil, refusal
	}
	state := q.projection.State()
	t := state.Task(c.Tenant, r.TaskID)
	if !state.MaySeeTask(c, t) {
		return nil, wire.NoSuchTask("task_id")
	}
	return state.TaskView(t), nil
}
