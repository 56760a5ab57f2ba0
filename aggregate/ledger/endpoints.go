package ledger

import (
	"context"
	"errors"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/operation"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
	"github.com/effectd/effectd/events/wire/endpoint"
)

// attempts carries out an authorized reconciliation attempt.
type attempts interface {
	Attempt(ctx context.Context, id events.EffectID, attempt events.AttemptID) (*wire.Effect, error)
}

// Endpoints serves the commands of principals.
type Endpoints struct {
	ledger     *Ledger
	watcher    watcher
	attempts   attempts
	dispatcher events.Dispatcher
}

// NewEndpoints connects a writer to what answers long waits.
func NewEndpoints(l *Ledger, w watcher, a attempts, d events.Dispatcher) *Endpoints {
	return &Endpoints{ledger: l, watcher: w, attempts: a, dispatcher: d}
}

// Serve returns what serves each verb of this package.
func (e *Endpoints) Serve() map[wire.Verb]endpoint.Serve {
	return map[wire.Verb]endpoint.Serve{
		wire.TaskOpen:          serve(e, e.taskOpen),
		wire.TaskCloseVerb:     serve(e, e.taskClose),
		wire.EffectPrepare:     serve(e, e.prepare),
		wire.EffectAdmit:       serve(e, e.admit),
		wire.EffectSubmit:      serve(e, e.submit),
		wire.EffectWithdraw:    serve(e, e.withdraw),
		wire.PermitApprove:     serve(e, e.approve),
		wire.PermitDeny:        serve(e, e.deny),
		wire.PermitRevoke:      serve(e, e.revoke),
		wire.EffectReconcile:   serve(e, e.reconcile),
		wire.EffectSettle:      serve(e, e.settle),
		wire.EffectAcknowledge: serve(e, e.acknowledge),
		wire.RunCancel:         serve(e, e.runCancel),
		wire.RunFinish:         serve(e, e.runFinish),
		wire.LedgerConfirm:     serve(e, e.confirmClock),
	}
}

// serve decodes a request strictly.
func serve[Q any](e *Endpoints, f func(context.Context, aggregate.Caller, Q) (any, *wire.Error)) endpoint.Serve {
	return func(ctx context.Context, r endpoint.Request) (any, *wire.Error) {
		caller := aggregate.Caller{Tenant: r.Caller.Tenant, Principal: r.Caller.Principal}
		request, refusal := wire.Decode[Q](r.Body)
		if refusal != nil {
			return nil, refusal
		}
		return f(ctx, caller, request)
	}
}

// do brings a command to its outcome, which a stop does not cut off: the writer
// answers in bounded time. A refusal by the law carries the effect as it stands.
func (e *Endpoints) do(ctx context.Context, c aggregate.Caller, cmd aggregate.Command) (Outcome, *wire.Error) {
	o, err := e.ledger.Do(context.WithoutCancel(ctx), c.Actor(), cmd)
	if err != nil {
		return o, asWire(err)
	}
	if o.Refusal != nil {
		refusal := *o.Refusal
		refusal.Effect = o.effect()
		return o, &refusal
	}
	return o, nil
}

func asWire(err error) *wire.Error {
	var e *wire.Error
	if errors.As(err, &e) {
		return e
	}
	return wire.Errorf(wire.LedgerUnavailable, "the ledger could not answer")
}

// effect is the view of the effect that the outcome is about; nil if none.
func (o Outcome) effect() *wire.Effect {
	if o.EffectID == "" {
		return nil
	}
	e := o.State.Effect(o.EffectID)
	if e == nil {
		return o.collected()
	}
	v := o.State.View(e, o.At)
	v.Repeat = o.Repeat
	return v
}

func (o Outcome) collected() *wire.Effect {
	c := o.State.CausalOf(o.EffectID)
	if c == nil {
		return nil
	}
	v := o.State.CollectedView(c)
	v.Repeat = true
	return v
}

func (e *Endpoints) taskOpen(ctx context.Context, c aggregate.Caller, r wire.TaskOpenRequest) (any, *wire.Error) {
	at, err := events.ParseInstant(r.ExpiresAt)
	if err != nil {
		return nil, wire.FieldError(wire.InvalidRequest, "expires_at", err.Error())
	}
	return e.task(ctx, c, aggregate.OpenTask{Caller: c, Request: r, ExpiresAt: at})
}

func (e *Endpoints) taskClose(ctx context.Context, c aggregate.Caller, r wire.TaskCloseRequest) (any, *wire.Error) {
	return e.task(ctx, c, aggregate.CloseTask{Caller: c, TaskID: r.TaskID, Reason: r.Reason})
}

func (e *Endpoints) task(ctx context.Context, c aggregate.Caller, cmd aggregate.Command) (any, *wire.Error) {
	o, refusal := e.do(ctx, c, cmd)
	if refusal != nil {
		return nil, refusal
	}
	v := o.State.TaskView(o.State.Task(c.Tenant, o.TaskID))
	v.Repeat = o.Repeat
	return v, nil
}

func (e *Endpoints) prepare(ctx context.Context, c aggregate.Caller, r wire.PrepareRequest) (any, *wire.Error) {
	cmd, refusal := e.prepareCommand(c, r, false)
	if refusal != nil {
		return nil, refusal
	}
	return e.answer(ctx, c, cmd)
}

// prepareCommand does outside the writer what needs no state: digests and the
// parsed payload. Without room, only what is known already is answered.
func (e *Endpoints) prepareCommand(c aggregate.Caller, r wire.PrepareRequest, admit bool) (aggregate.Prepare, *wire.Error) {
	cmd := aggregate.Prepare{Caller: c, Request: r, RequestSHA256: r.Digest(), Admit: admit}
	if why := e.ledger.cfg.Full(); why != "" && e.ledger.State().Causal(c.Tenant, *r.RunID, *r.CausalID) == nil {
		return cmd, wire.Errorf(wire.CapacityExhausted, why)
	}
	payload, err := operation.ParsePayload(r.Payload)
	if err != nil {
		return cmd, wire.FieldError(wire.InvalidPayload, "payload", "it is not a JSON value")
	}
	cmd.Payload = payload
	if r.ExpiresAt != "" {
		if cmd.ExpiresAt, err = events.ParseInstant(r.ExpiresAt); err != nil {
			return cmd, wire.FieldError(wire.InvalidRequest, "expires_at", err.Error())
		}
	}
	return cmd, nil
}

func (e *Endpoints) admit(ctx context.Context, c aggregate.Caller, r wire.AdmitRequest) (any, *wire.Error) {
	return e.answer(ctx, c, aggregate.Admit{Caller: c, Request: r})
}

func (e *Endpoints) withdraw(ctx context.Context, c aggregate.Caller, r wire.EffectReasonRequest) (any, *wire.Error) {
	return e.answer(ctx, c, aggregate.Withdraw{Caller: c, EffectID: r.EffectID, Reason: r.Reason})
}

func (e *Endpoints) answer(ctx context.Context, c aggregate.Caller, cmd aggregate.Command) (any, *wire.Error) {
	o, refusal := e.do(ctx, c, cmd)
	if refusal != nil {
		return nil, refusal
	}
	return o.effect(), nil
}

// reconcile authorizes one attempt, has it carried out, and answers with what it
// left.
func (e *Endpoints) reconcile(ctx context.Context, c aggregate.Caller, r wire.ReconcileRequest) (any, *wire.Error) {
	if r.Method == events.MethodResubmitSameKey {
		return nil, wire.FieldError(wire.Unsupported, "method", "this version of effectd asks by query only")
	}
	o, refusal := e.do(ctx, c, aggregate.StartAttempt{Caller: c, EffectID: r.EffectID, Method: r.Method, DeadlineMS: r.DeadlineMS, Dispatcher: e.dispatcher})
	if refusal != nil {
		return nil, refusal
	}
	if o.AttemptID == "" {
		return o.effect(), nil
	}
	v, err := e.attempts.Attempt(ctx, o.EffectID, o.AttemptID)
	if err != nil {
		return nil, asWire(err)
	}
	return v, nil
}

// confirmClock lets an operator trust the wall clock as it stands.
func (e *Endpoints) confirmClock(_ context.Context, c aggregate.Caller, _ wire.EmptyRequest) (any, *wire.Error) {
	if u, ok := e.ledger.State().User(c.Actor()); !ok || u.Role != events.RoleOperator {
		return nil, wire.Errorf(wire.Forbidden, "an operator confirms the clock")
	}
	e.ledger.ConfirmClock()
	at, trusted := e.ledger.Now()
	return wire.ClockReply{Time: at, ClockTrusted: trusted}, nil
}
