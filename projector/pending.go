package projector

import (
	"context"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// pending answers permit.pending: what waits for an approval that the caller may
// give, newest first. A page may be short and still have a cursor.
func (q *Queries) pending(ctx context.Context, c aggregate.Caller, r wire.PendingRequest) (any, *wire.Error) {
	limit, refusal := pageLimit(r.Limit, maxPage)
	if refusal != nil {
		return nil, refusal
	}
	f := filter{caller: c, state: wire.StatePrepared}
	before, refusal := f.resume(r.Cursor)
	if refusal != nil {
		return nil, refusal
	}
	if refusal := q.reach(ctx, r.MinPosition, 0); refusal != nil {
		return nil, refusal
	}
	if user, known := q.projection.State().User(c.Actor()); !known {
		return nil, wire.NotInTable()
	} else if user.Role != events.RoleApprover {
		return nil, wire.Errorf(wire.Forbidden, "only approvers are shown what waits for approval")
	}
	var out *page[*wire.Pending]
	begin := func(s *aggregate.State) func(events.EffectID) bool {
		at := q.projection.now(s)
		out = newPage(s, &f, limit, func(e *aggregate.Effect) (*wire.Pending, int64) {
			v := s.Pending(c, e, at)
			if v == nil {
				return nil, 0
			}
			return v, int64(len(events.CanonicalOf(v)))
		})
		return out.take
	}
	if r.EffectID != "" {
		begin(q.projection.State())(r.EffectID)
	} else if refusal := q.walk(&f, before, begin); refusal != nil {
		return nil, refusal
	}
	reply := &wire.PendingList{Pending: make([]wire.Pending, len(out.Items)), Cursor: out.Cursor, Position: out.Position}
	for i, v := range out.Items {
		reply.Pending[i] = *v
	}
	return reply, nil
}
