package main

import (
	"context"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
)

// runCmd are the commands about runs.
type runCmd struct {
	Get    runGetCmd    `cmd:"" help:"Show a run: its effects by state, its outcome."`
	Cancel runCancelCmd `cmd:"" help:"Admit no further effect of a run; what is not sent ends."`
	Finish runFinishCmd `cmd:"" help:"Record the one outcome of a run, for good."`
}

// runCancelCmd ends admissions in a run of one's own.
type runCancelCmd struct {
	target
	RunID  string `arg:"" name:"run" help:"Id of the run."`
	Reason string `placeholder:"TEXT" help:"Why; it is recorded."`
}

// Run implements the command.
func (c *runCancelCmd) Run(e *env) error {
	return c.call(e, events.RoleProducer, func(ctx context.Context, l *client.Client) error {
		r, err := l.RunCancel(ctx, wire.RunRequest{RunID: events.RunID(c.RunID), Reason: c.Reason})
		return e.run(&r, err)
	})
}

// runFinishCmd records the outcome of a run of one's own.
type runFinishCmd struct {
	target
	RunID   string `arg:"" name:"run" help:"Id of the run."`
	Outcome string `arg:"" enum:"succeeded,rejected,application_failed,execution_failed,cancelled" help:"One of ${enum}."`
}

// Run implements the command.
func (c *runFinishCmd) Run(e *env) error {
	return c.call(e, events.RoleProducer, func(ctx context.Context, l *client.Client) error {
		r, err := l.RunFinish(ctx, wire.RunRequest{RunID: events.RunID(c.RunID), Outcome: events.RunOutcome(c.Outcome)})
		return e.run(&r, err)
	})
}

// run shows what became of a change to a run.
func (e *env) run(r *wire.Run, err error) error {
	if err != nil {
		return changed(err)
	}
	e.show(r, func(p *page) { runPage(p, r) })
	return nil
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
