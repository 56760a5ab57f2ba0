package main

import (
	"context"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
)

// runCmd are the commands about runs.
type runCmd struct {
	Get runGetCmd `cmd:"" help:"Show a run: its effects by state, its outcome."`
}

// runGetCmd shows a run of one's own.
type runGetCmd struct {
	target
	RunID string `arg:"" name:"run" help:"Id of the run."`
}

// Run implements the command.
func (c *runGetCmd) Run(e *env) error {
	return c.call(e, events.RoleProducer, func(ctx context.Context, l *client.Client) error {
		r, err := l.RunGet(ctx, wire.RunRequest{RunID: events.RunID(c.RunID)})
		if err != nil {
			return err
		}
		e.show(r, func(p *page) { runPage(p, &r) })
		return nil
	})
}

func runPage(p *page, r *wire.Run) {
	p.field("run", string(r.RunID))
	p.field("principal", string(r.Principal))
	outcome := string(r.Outcome)
	if r.Cancelled {
		outcome = or(outcome, "cancelled, not finished")
	}
	p.field("outcome", or(outcome, "open"))
	for _, state := range wire.States() {
		if n := r.Effects[state]; n > 0 {
			p.field(string(state), number(n))
		}
	}
}
