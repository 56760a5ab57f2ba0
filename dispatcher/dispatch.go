package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/ledger"
	"github.com/effectd/effectd/aggregate/operation"
	"github.com/effectd/effectd/events"
)

// next says whether an effect is done with, for this process.
type next int

const (
	over next = iota
	again
)

// dispatch takes one admitted effect through verification, claim, send and
// report.
func (d *Dispatcher) dispatch(ctx context.Context, id events.EffectID) next {
	state := d.ledger.State()
	e := state.Effect(id)
	if e == nil || e.Admission == nil || e.State.Terminal() {
		return over
	}
	if e.Claim != nil {
		return d.ownOpenClaim(e)
	}
	if !d.active.Load() {
		return over // D7: the next life finds it admitted
	}
	if err := verify(state, e); err != nil {
		d.ledger.Distrust(err.Error())
		return over
	}
	shot, contract, err := d.render(state, e)
	if err != nil {
		return d.abandon(ctx, e, err)
	}
	room, err := d.spool.Reserve()
	if err != nil {
		d.cfg.Logger.Warn("no room for results: nothing is claimed", "error", err)
		return again
	}
	defer room.Release()
	return d.claimAndFire(ctx, e, shot, contract)
}

// render finds out before the claim whether the effect can be sent at all (D4).
func (d *Dispatcher) render(s *aggregate.State, e *aggregate.Effect) (Shot, *operation.Contract, error) {
	b := &e.Prepared.Binding
	o := s.Operation(b.Operation, b.OperationVersion)
	if o == nil || o.Contract.Digest != b.OperationDigest {
		return nil, nil, errors.New("the contract of the binding is not in the log")
	}
	if b.Adapter != o.Contract.Adapter() {
		return nil, nil, fmt.Errorf("the binding wants adapter %s, this program has %s", b.Adapter.Build, o.Contract.Adapter().Build)
	}
	adapter, ok := d.cfg.Adapters[o.Contract.Kind]
	if !ok {
		return nil, nil, fmt.Errorf("no adapter of kind %s in this program", o.Contract.Kind)
	}
	payload, err := operation.ParsePayload(e.Prepared.Payload)
	if err != nil {
		return nil, nil, errors.New("the payload does not parse")
	}
	for _, name := range o.Contract.Secrets {
		if _, ok := d.cfg.Secret(name); !ok {
			return nil, nil, fmt.Errorf("secret %s is not available", name)
		}
	}
	shot, err := adapter.Render(Send{EffectID: e.ID, IdempotencyKey: b.IdempotencyKey, Binding: *b, Context: e.Prepared.Context,
		Payload: payload, Contract: o.Contract, Secret: d.cfg.Secret})
	return shot, o.Contract, err
}

// abandon settles what can never be sent.
func (d *Dispatcher) abandon(ctx context.Context, e *aggregate.Effect, why error) next {
	_, err := d.ledger.Do(ctx, events.SystemActor, aggregate.Abandon{EffectID: e.ID, IntentSHA256: e.IntentSHA256(), Detail: why.Error()})
	if err != nil {
		return again
	}
	return over
}

// claimAndFire asks for the one right to send, and sends if it is won.
func (d *Dispatcher) claimAndFire(ctx context.Context, e *aggregate.Effect, shot Shot, c *operation.Contract) next {
	nonce, err := d.nonceFor(e.ID)
	if err != nil {
		d.cfg.Logger.Error("no nonce: nothing is claimed", "error", err)
		return again
	}
	deadline := d.cfg.Now().Add(c.Timeout) // D3: from before the claim
	won, err := d.claim(ctx, e, nonce, c)
	if err != nil {
		// The claim may or may not be in the log. It is never fired: what becomes of
		// it is found out on the next turn, with the nonce that proves it ours.
		d.nonces.Store(e.ID, nonce)
		return again
	}
	if !won.Claimed {
		return d.ownOpenClaim(won.State.Effect(e.ID))
	}
	d.nonces.Delete(e.ID)
	head := won.State.Head()
	// Not cancelled by a stop: that would look like an anchor that cannot be written.
	if err := d.anchor.Mark(context.WithoutCancel(ctx), head.Seq, head.SHA256); err != nil {
		d.ledger.Distrust("the anchor cannot be written: " + err.Error())
		d.report(e, nonce, notSent(d.cfg.Now(), "the anchor could not be written, so nothing was sent"))
		return over
	}
	d.report(e, nonce, d.fire(ctx, shot, deadline, c))
	return over
}

// claim asks the ledger; the outcome says whether this process won.
func (d *Dispatcher) claim(ctx context.Context, e *aggregate.Effect, nonce string, c *operation.Contract) (ledger.Outcome, error) {
	o, err := d.ledger.Do(ctx, events.SystemActor, aggregate.ClaimEffect{EffectID: e.ID, IntentSHA256: e.IntentSHA256(),
		Dispatcher: d.cfg.Self, NonceSHA256: aggregate.DigestNonce(nonce), DeadlineMS: c.Timeout.Milliseconds(),
		CredentialSHA256: d.credential(c)})
	if err == nil && o.Refusal != nil {
		d.cfg.Logger.Error("claim refused", "effect_id", e.ID, "code", o.Refusal.Code)
	}
	return o, err
}

// credential is the fingerprint of the secrets that a send would use.
func (d *Dispatcher) credential(c *operation.Contract) events.Digest {
	if len(c.Secrets) == 0 {
		return ""
	}
	values := map[string]string{}
	for _, name := range c.Secrets {
		values[name], _ = d.cfg.Secret(name)
	}
	return events.DigestOf(struct {
		V       int               `json:"v"`
		Secrets map[string]string `json:"secrets"`
	}{events.Format, values})
}

// secrets are the values that a send may have shown to the service.
func (d *Dispatcher) secrets(c *operation.Contract) []string {
	var values []string
	for _, name := range c.Secrets {
		if v, ok := d.cfg.Secret(name); ok {
			values = append(values, v)
		}
	}
	return values
}

// fire sends once. A panic of an adapter proves nothing.
func (d *Dispatcher) fire(ctx context.Context, shot Shot, deadline time.Time, c *operation.Contract) (r aggregate.Result) {
	defer func() {
		if p := recover(); p != nil {
			r = aggregate.Result{Reason: events.ReasonAdapterError, Evidence: events.Evidence{Source: "adapter", Detail: "the adapter panicked"}}
			d.cfg.Logger.Error("adapter panicked", "operation", c.Name)
		}
	}()
	return shot.Fire(ctx, deadline).Scrubbed(d.secrets(c))
}

// ownOpenClaim resolves a claim whose append was not answered. If it is in the
// log under our nonce, it was never fired: that is proven.
func (d *Dispatcher) ownOpenClaim(e *aggregate.Effect) next {
	if e == nil || e.Claim == nil {
		return over
	}
	nonce, ok := d.nonces.LoadAndDelete(e.ID)
	if !ok || aggregate.DigestNonce(nonce.(string)) != e.Claim.NonceSHA256 {
		return over
	}
	d.report(e, nonce.(string), notSent(d.cfg.Now(), "the claim was not answered in time, so nothing was sent"))
	return over
}

func notSent(at time.Time, detail string) aggregate.Result {
	return aggregate.Result{Outcome: events.OutcomeNoEffect, Reason: events.ReasonNotSent,
		Evidence: events.Evidence{Source: "adapter", At: events.InstantOf(at), Detail: detail}}
}
