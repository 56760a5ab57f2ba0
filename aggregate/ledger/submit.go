package ledger

import (
	"context"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events/wire"
)

// watcher waits until an effect that was seen satisfies a condition, on the
// projection. The effect that it returns is never older than what was seen.
type watcher interface {
	Await(ctx context.Context, seen *wire.Effect, done func(*wire.Effect) bool) (*wire.Effect, error)
}

// submit prepares and admits an effect, and answers once it is where the caller
// waits for it to be. An approval admits what was submitted by itself; what was
// prepared to hold, and is submitted meanwhile, is admitted here.
func (e *Endpoints) submit(ctx context.Context, c aggregate.Caller, r wire.SubmitRequest) (any, *wire.Error) {
	cmd, refusal := e.prepareCommand(c, r.PrepareRequest, true)
	if refusal != nil {
		return nil, refusal
	}
	ctx, cancel := context.WithTimeout(ctx, wire.WaitFor(r.TimeoutMS))
	defer cancel()
	o, refusal := e.do(ctx, c, cmd)
	if refusal != nil {
		return nil, refusal
	}
	if o.Frozen {
		return o.effect(), nil
	}
	awaited := wire.Awaited(r.Wait)
	v, refusal := e.await(ctx, o.effect(), func(v *wire.Effect) bool { return awaited(v) || v.State == wire.StatePermitted })
	if refusal == nil && !awaited(v) { // prepared to hold, and approved by now
		if o, refusal = e.do(ctx, c, cmd); refusal == nil {
			v, refusal = e.await(ctx, o.effect(), awaited)
		}
	}
	if refusal != nil {
		return nil, refusal
	}
	return v, endedInRefusal(v)
}

// await answers once the effect satisfies done.
func (e *Endpoints) await(ctx context.Context, v *wire.Effect, done func(*wire.Effect) bool) (*wire.Effect, *wire.Error) {
	if done(v) {
		return v, nil
	}
	later, err := e.watcher.Await(ctx, v, done)
	if err != nil {
		timeout := wire.Errorf(wire.WaitTimeout, "the effect goes on; ask again")
		timeout.Effect = later
		return nil, timeout
	}
	later.Repeat = v.Repeat
	return later, nil
}

// endedInRefusal is the error of a submitted effect that was refused.
func endedInRefusal(v *wire.Effect) *wire.Error {
	if v.State != wire.StateRefused {
		return nil
	}
	refusal := aggregate.RefusalError(v.Reason)
	refusal.Effect = v
	return refusal
}
