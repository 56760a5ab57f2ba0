package projector

import (
	"context"
	"errors"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// get answers effect.get, at once or when the effect is where the caller waits
// for it to be.
func (q *Queries) get(ctx context.Context, c aggregate.Caller, r wire.GetRequest) (any, *wire.Error) {
	ctx, cancel := context.WithTimeout(ctx, wire.WaitFor(r.TimeoutMS))
	defer cancel()
	if refusal := q.reach(ctx, r.MinPosition, r.TimeoutMS); refusal != nil {
		return nil, refusal
	}
	id := r.EffectID
	if id == "" {
		if named := q.projection.State().Causal(c.Tenant, r.RunID, r.CausalID); named != nil {
			id = named.EffectID
		}
	}
	v, refusal := q.visible(ctx, c, id)
	if refusal != nil {
		return nil, refusal
	}
	wait := r.Wait
	if wait == "" {
		wait = wire.WaitNone
	}
	done := wire.Awaited(wait)
	if done(v) {
		return v, nil
	}
	later, err := q.projection.Await(ctx, v, done)
	switch {
	case err == nil:
		return later, nil
	case !errors.Is(err, context.DeadlineExceeded):
		return nil, unreadable(err)
	}
	timeout := wire.Errorf(wire.WaitTimeout, "the effect goes on; ask again")
	timeout.Effect = later
	return nil, timeout
}

// visible is the view of an effect that the caller may see; any other does not
// exist for the caller (P7).
func (q *Queries) visible(ctx context.Context, c aggregate.Caller, id events.EffectID) (*wire.Effect, *wire.Error) {
	state := q.projection.State()
	if e := state.Effect(id); e != nil {
		if !state.MaySee(c, e) {
			return nil, wire.NoSuchEffect()
		}
		return state.View(e, q.projection.now(state)), nil
	}
	left, err := q.projection.collected(state, id)
	if err != nil {
		return nil, unreadable(err)
	}
	if left == nil || left.Tenant != c.Tenant {
		return nil, wire.NoSuchEffect()
	}
	e, err := q.asPrepared(ctx, id)
	if err != nil {
		return nil, unreadable(err)
	}
	if !state.MaySee(c, e) {
		return nil, wire.NoSuchEffect()
	}
	return state.CollectedView(left), nil
}

// asPrepared reads from the log what an effect that left the live state was
// bound to: by that it is decided who may see it, as before.
func (q *Queries) asPrepared(ctx context.Context, id events.EffectID) (*aggregate.Effect, error) {
	at, err := q.projection.Positions(id, events.Position{})
	if err != nil {
		return nil, err
	}
	if len(at) == 0 {
		return nil, errMissing
	}
	ev, _, err := q.event(ctx, at[0])
	if err != nil {
		return nil, err
	}
	prepared, ok := ev.Data.(events.Prepared)
	if !ok {
		return nil, errMissing
	}
	return &aggregate.Effect{ID: id, Tenant: ev.Tenant, Principal: prepared.Context.Principal, Prepared: &prepared}, nil
}
