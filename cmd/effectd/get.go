package main

import (
	"context"
	"time"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
)

// getCmd shows one effect. With --wait the exit code speaks of its outcome.
type getCmd struct {
	target
	which
	Wait        string        `enum:"none,admitted,terminal" default:"none" help:"Wait until it is admitted or its end is known (terminal)."`
	Timeout     time.Duration `placeholder:"4s" help:"How long to wait."`
	MinPosition string        `name:"min-position" placeholder:"SEQ.N" help:"Answer from this position of the log or later."`
}

// Run implements the command.
func (c *getCmd) Run(e *env) error {
	return c.call(e, events.RoleOperator, func(ctx context.Context, l *client.Client) error {
		x, err := l.Get(ctx, wire.GetRequest{EffectID: events.EffectID(c.Effect), RunID: events.RunID(c.RunID), CausalID: events.CausalID(c.CausalID),
			Wait: c.Wait, TimeoutMS: c.Timeout.Milliseconds(), MinPosition: c.MinPosition})
		// A read is done when it is answered; only an unknown outcome shows anyhow.
		return e.effect(&x, err, c.Wait != wire.WaitNone || x.State == wire.StateUnknown)
	})
}
