package reconciler

import (
	"context"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/ledger"
	"github.com/effectd/effectd/aggregate/operation"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// Config of a reconciler.
type Config struct {
	Now    func() time.Time
	Secret func(name string) (string, bool)
	Asker  asker
}

// asker sends one read to a service. An error means that no complete answer came.
type asker interface {
	Ask(ctx context.Context, call operation.Call, deadline time.Time) (operation.Response, error)
}

// decider is the ledger as the reconciler needs it.
type decider interface {
	Do(ctx context.Context, who events.Actor, c aggregate.Command) (ledger.Outcome, error)
	State() *aggregate.State
	Now() (events.Instant, bool)
}

// Reconciler carries out attempts.
type Reconciler struct {
	cfg    Config
	ledger decider
}

// New returns a reconciler.
func New(cfg Config, l decider) *Reconciler { return &Reconciler{cfg: cfg, ledger: l} }

// Attempt carries out an attempt that the log has started, and returns the
// effect as it then stands.
func (r *Reconciler) Attempt(ctx context.Context, id events.EffectID, attempt events.AttemptID) (*wire.Effect, error) {
	e := r.ledger.State().Effect(id)
	end := aggregate.EndAttempt{EffectID: id, AttemptID: attempt}
	if e != nil {
		if a := e.Running(); a != nil && a.AttemptID == attempt {
			end.Result, end.NotFound = r.query(ctx, e, a)
			end.Result = end.Result.Scrubbed(r.secrets(e))
		}
	}
	// The end of an attempt is bookkeeping: it outlives the request.
	o, err := r.ledger.Do(context.WithoutCancel(ctx), events.SystemActor, end)
	if err != nil {
		return nil, err
	}
	if o.Refusal != nil {
		return nil, o.Refusal
	}
	return o.State.View(o.State.Effect(id), o.At), nil
}

// secrets are the values that a query may have shown to the service.
func (r *Reconciler) secrets(e *aggregate.Effect) []string {
	o := r.ledger.State().Operation(e.Operation(), e.Prepared.Binding.OperationVersion)
	if o == nil {
		return nil
	}
	var values []string
	for _, name := range o.Contract.Secrets {
		if v, ok := r.cfg.Secret(name); ok {
			values = append(values, v)
		}
	}
	return values
}

// query asks the service once.
func (r *Reconciler) query(ctx context.Context, e *aggregate.Effect, a *aggregate.Attempt) (result aggregate.Result, notFound bool) {
	inconclusive := func(detail string) aggregate.Result {
		return aggregate.Result{Evidence: events.Evidence{Source: string(a.Method), At: events.InstantOf(r.cfg.Now()), Detail: detail}}
	}
	b := &e.Prepared.Binding
	o := r.ledger.State().Operation(b.Operation, b.OperationVersion)
	if o == nil || o.Contract.Digest != b.OperationDigest {
		return inconclusive("the contract of the binding is not in the log"), false
	}
	payload, err := operation.ParsePayload(e.Prepared.Payload)
	if err != nil {
		return inconclusive("the payload does not parse"), false
	}
	in := operation.Input{Payload: payload, Precondition: b.Precondition, Resource: b.Resource, EffectID: e.ID,
		IdempotencyKey: b.IdempotencyKey, Secret: r.cfg.Secret}
	call, err := o.Contract.HTTPQuery(in)
	if err != nil {
		return inconclusive("the query cannot be rendered: " + err.Error()), false
	}
	now, _ := r.ledger.Now()
	answer, err := r.cfg.Asker.Ask(ctx, call, r.cfg.Now().Add(a.Deadline.Sub(now)))
	if err != nil {
		return inconclusive(err.Error()), false
	}
	return r.read(o.Contract, in, a, answer)
}

// read judges the service's answer by the contract's rules.
func (r *Reconciler) read(c *operation.Contract, in operation.Input, a *aggregate.Attempt, answer operation.Response) (aggregate.Result, bool) {
	evidence := events.Evidence{Source: string(a.Method), At: events.InstantOf(r.cfg.Now()), Status: answer.Status, SHA256: events.DigestBytes(answer.Body)}
	verdict, matched := c.ClassifyQuery(answer, in)
	switch {
	case !matched:
		evidence.Detail = "no rule of the contract matches the answer"
		return aggregate.Result{Evidence: evidence}, false
	case verdict.NotFound:
		evidence.Rule, evidence.Detail = verdict.Rule, "the service does not know the effect"
		return aggregate.Result{Evidence: evidence}, true
	}
	evidence.Rule, evidence.Named = verdict.Rule, verdict.Named
	return aggregate.Result{Outcome: verdict.Outcome, Means: verdict.Means, Reason: events.ReasonReconciled, Evidence: evidence,
		Cost: verdict.Cost, CostInvalid: verdict.CostInvalid, ProviderRef: verdict.ProviderRef}, false
}
