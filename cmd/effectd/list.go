package main

import (
	"context"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
)

// listCmd shows pages of effects, newest first.
type listCmd struct {
	target
	State     string `enum:",prepared,permitted,refused,admitted,dispatched,unknown,settled" default:"" placeholder:"STATE" help:"Only in this state: prepared, permitted, refused, admitted, dispatched, unknown or settled."`
	Operation string `short:"o" placeholder:"NAME" help:"Only of this operation."`
	Task      string `short:"t" placeholder:"ID" help:"Only of this task."`
	Since     string `placeholder:"1h|TIME" help:"Created at or after."`
	Until     string `placeholder:"1h|TIME" help:"Created before."`
	paging
	MinPosition string `name:"min-position" placeholder:"SEQ.N" help:"Answer from this position of the log or later."`
}

// Run implements the command.
func (c *listCmd) Run(e *env) error {
	r, err := c.request(e)
	if err != nil {
		return err
	}
	return c.call(e, events.RoleOperator, func(ctx context.Context, l *client.Client) error {
		return c.each(e, func(cursor string) (string, error) {
			r.Cursor = cursor
			list, err := l.List(ctx, r)
			if err == nil {
				e.show(list, func(p *page) { effectRows(p, list.Items, e.now()) })
			}
			return list.Cursor, err
		})
	})
}

func (c *listCmd) request(e *env) (wire.ListRequest, error) {
	r := wire.ListRequest{State: c.State, Operation: events.OperationName(c.Operation), TaskID: events.TaskID(c.Task),
		Limit: c.Limit, MinPosition: c.MinPosition}
	var err error
	if r.Since, err = moment("since", c.Since, e.now(), -1); err != nil {
		return r, err
	}
	r.Until, err = moment("until", c.Until, e.now(), -1)
	return r, err
}
