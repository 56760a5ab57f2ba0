package main

import (
	"context"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
)

// admitCmd admits a prepared effect. The context sealed with it must be
// repeated: run and causal id are read from the ledger unless given.
type admitCmd struct {
	target
	provenance
	Effect        string `arg:"" optional:"" help:"Id of the effect (default: the one of --run-id and --causal-id)."`
	BindingDigest string `name:"binding-digest" placeholder:"SHA256" help:"The binding that is meant (default: the one the ledger holds)."`
}

// Validate wants the effect named; kong calls it.
func (c *admitCmd) Validate() error {
	if c.Effect != "" {
		return nil
	}
	return oneName("", c.RunID, c.CausalID)
}

// Run implements the command.
func (c *admitCmd) Run(e *env) error {
	return c.call(e, events.RoleProducer, func(ctx context.Context, l *client.Client) error {
		r, err := c.request(ctx, l)
		if err != nil {
			return err
		}
		x, err := l.Admit(ctx, r)
		return e.effect(&x, changed(err), true)
	})
}

// request fills in from the ledger what is not given.
func (c *admitCmd) request(ctx context.Context, l *client.Client) (wire.AdmitRequest, error) {
	if c.Effect == "" || c.BindingDigest == "" || c.RunID == "" || c.CausalID == "" {
		named := wire.GetRequest{EffectID: events.EffectID(c.Effect)}
		if c.Effect == "" {
			named.RunID, named.CausalID = events.RunID(c.RunID), events.CausalID(c.CausalID)
		}
		held, err := l.Get(ctx, named)
		if err != nil {
			return wire.AdmitRequest{}, err
		}
		c.Effect, c.BindingDigest = string(held.EffectID), or(c.BindingDigest, string(held.BindingDigest))
		c.RunID, c.CausalID = or(c.RunID, string(held.RunID)), or(c.CausalID, string(held.CausalID))
	}
	return wire.AdmitRequest{EffectID: events.EffectID(c.Effect), BindingDigest: events.Digest(c.BindingDigest), SealedContext: c.sealed()}, nil
}
