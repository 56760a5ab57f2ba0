package main

import (
	"context"
	"strconv"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
)

// denialsCmd shows pages of denials, newest first.
type denialsCmd struct {
	target
	paging
}

// Run implements the command.
func (c *denialsCmd) Run(e *env) error {
	r := wire.DenialListRequest{Limit: c.Limit}
	return c.call(e, events.RoleOperator, func(ctx context.Context, l *client.Client) error {
		return c.each(e, func(cursor string) (string, error) {
			r.Cursor = cursor
			list, err := l.Denials(ctx, r)
			if err == nil {
				e.show(list, func(p *page) { denialRows(p, list.Items) })
			}
			return list.Cursor, err
		})
	})
}

func denialRows(p *page, denials []wire.Denial) {
	if len(denials) == 0 {
		p.line("no denials")
		return
	}
	p.row("TIME", "PRINCIPAL", "VERB", "CODE", "ABOUT", "MESSAGE")
	for i := range denials {
		d := &denials[i]
		message := d.Message
		if d.Field != "" {
			message = d.Field + ": " + message
		}
		p.row(clockTime(d.Time), string(d.Principal), string(d.Verb), string(d.Code), denied(d), message)
	}
}

// denied is what a denial is about: an effect, or the ids that were asked with, or
// the place in the queue.
func denied(d *wire.Denial) string {
	switch {
	case d.EffectID != "":
		return string(d.EffectID)
	case d.RunID != "" && d.CausalID != "":
		return string(d.RunID) + "/" + string(d.CausalID)
	case d.RequestSeq != 0:
		return "request " + strconv.FormatUint(d.RequestSeq, 10)
	}
	return "-"
}
