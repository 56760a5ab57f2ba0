package projector

import (
	"context"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
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

// tasks answers task.list: what the caller may read, in the order of ids.
func (q *Queries) tasks(ctx context.Context, c aggregate.Caller, r wire.TaskListRequest) (any, *wire.Error) {
	limit, refusal := pageLimit(r.Limit, defaultPage)
	if refusal != nil {
		return nil, refusal
	}
	if refusal := q.reach(ctx, r.MinPosition, 0); refusal != nil {
		return nil, refusal
	}
	state := q.projection.State()
	if _, known := state.User(c.Actor()); !known {
		return nil, wire.NotInTable()
	}
	if r.Under != "" && !state.MaySeeTask(c, state.Task(c.Tenant, r.Under)) {
		return nil, wire.NoSuchTask("under")
	}
	list, bytes := &wire.List[*wire.Task]{Position: state.Head().Last}, 0
	state.TasksAfter(c.Tenant, r.Cursor, func(t *aggregate.Task) bool {
		if !state.MaySeeTask(c, t) || r.Under != "" && !state.Under(t, r.Under) {
			return true
		}
		v := state.TaskView(t)
		bytes += len(events.CanonicalOf(v))
		if n := len(list.Items); n == limit || n > 0 && bytes > pageBytes {
			list.Cursor = string(list.Items[n-1].TaskID) // of the caller's own: a cursor names nothing else
			return false
		}
		list.Items = append(list.Items, v)
		return true
	})
	return list, nil
}
