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
	Effect        string `arg:"" help:"Id of the effect."`
	BindingDigest string `name:"binding-digest" placeholder:"SHA256" help:"The binding that is meant (default: the one the ledger holds)."`
}

// Run implements the command.
func (c *admitCmd) Run(e *env) error {
	return c.call(e, events.RoleProducer, func(ctx context.Context, l *client.Client) error {
		if c.BindingDigest == "" || c.RunID == "" || c.CausalID == "" {
			held, err := l.Get(ctx, wire.GetRequest{EffectID: events.EffectID(c.Effect)})
			if err != nil {
				return err
			}
			c.BindingDigest = or(c.BindingDigest, string(held.BindingDigest))
			c.RunID, c.CausalID = or(c.RunID, string(held.RunID)), or(c.CausalID, string(held.CausalID))
		}
		x, err := l.Admit(ctx, wire.AdmitRequest{EffectID: events.EffectID(c.Effect), BindingDigest: events.Digest(c.BindingDigest), SealedContext: c.sealed()})
		return e.effect(&x, changed(err), true)
	})
}
