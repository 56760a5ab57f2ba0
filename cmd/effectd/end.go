package main

import (
	"context"
	"time"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
)

// withdrawCmd ends one's own effect before its claim.
type withdrawCmd struct {
	target
	which
	Reason string `placeholder:"TEXT" help:"Why; it is recorded."`
}

// Run implements the command.
func (c *withdrawCmd) Run(e *env) error {
	return c.call(e, events.RoleProducer, func(ctx context.Context, l *client.Client) error {
		id, err := c.id(ctx, l)
		if err != nil {
			return err
		}
		x, err := l.Withdraw(ctx, wire.EffectReasonRequest{EffectID: id, Reason: c.Reason})
		return e.effect(&x, changed(err), false)
	})
}

// revokeCmd takes back the authority of an effect before its claim.
type revokeCmd struct {
	target
	which
	Reason string `placeholder:"TEXT" help:"Why; it is recorded."`
}

// Run implements the command.
func (c *revokeCmd) Run(e *env) error {
	return c.call(e, events.RoleOperator, func(ctx context.Context, l *client.Client) error {
		id, err := c.id(ctx, l)
		if err != nil {
			return err
		}
		x, err := l.Revoke(ctx, wire.EffectReasonRequest{EffectID: id, Reason: c.Reason})
		return e.effect(&x, changed(err), false)
	})
}

// reconcileCmd makes one bounded attempt to learn the outcome of an unknown effect.
type reconcileCmd struct {
	target
	which
	Method   string        `enum:"query,resubmit_same_key" default:"query" help:"Ask the service, or send again under the same key where the contract proves that safe: ${enum}."`
	Deadline time.Duration `placeholder:"30s" help:"How long the attempt may take."`
}

// Run implements the command.
func (c *reconcileCmd) Run(e *env) error {
	return c.call(e, events.RoleOperator, func(ctx context.Context, l *client.Client) error {
		id, err := c.id(ctx, l)
		if err != nil {
			return err
		}
		x, err := l.Reconcile(ctx, wire.ReconcileRequest{EffectID: id, Method: events.Method(c.Method), DeadlineMS: c.Deadline.Milliseconds()})
		return e.effect(&x, changed(err), true)
	})
}

// acknowledgeCmd accepts the risk of an unknown effect; it proves nothing.
type acknowledgeCmd struct {
	target
	which
	Reason string `required:"" placeholder:"TEXT" help:"Why the risk is accepted; it is recorded."`
}

// Run implements the command.
func (c *acknowledgeCmd) Run(e *env) error {
	return c.call(e, events.RoleOperator, func(ctx context.Context, l *client.Client) error {
		id, err := c.id(ctx, l)
		if err != nil {
			return err
		}
		x, err := l.Acknowledge(ctx, wire.EffectReasonRequest{EffectID: id, Reason: c.Reason})
		return e.effect(&x, changed(err), false)
	})
}
