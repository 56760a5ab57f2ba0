package ledger

import (
	"context"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events/wire"
)

// runCancel ends admissions in a run.
func (e *Endpoints) runCancel(ctx context.Context, c aggregate.Caller, r wire.RunRequest) (any, *wire.Error) {
	if r.Outcome != "" {
		return nil, wire.FieldError(wire.InvalidRequest, "outcome", "it belongs to run.finish")
	}
	return e.run(ctx, c, aggregate.CancelRun{Caller: c, RunID: r.RunID, Reason: r.Reason})
}

// runFinish records the one outcome of a run.
func (e *Endpoints) runFinish(ctx context.Context, c aggregate.Caller, r wire.RunRequest) (any, *wire.Error) {
	if r.Reason != "" {
		return nil, wire.FieldError(wire.InvalidRequest, "reason", "it belongs to run.cancel")
	}
	return e.run(ctx, c, aggregate.FinishRun{Caller: c, RunID: r.RunID, Outcome: r.Outcome})
}

func (e *Endpoints) run(ctx context.Context, c aggregate.Caller, cmd aggregate.Command) (any, *wire.Error) {
	o, refusal := e.do(ctx, c, cmd)
	if refusal != nil {
		return nil, refusal
	}
	v := o.State.RunView(o.State.Run(c.Tenant, o.RunID), o.At)
	v.Repeat = o.Repeat
	return v, nil
}
