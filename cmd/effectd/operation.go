package main

import (
	"context"
	"slices"
	"strings"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
)

// operationCmd are the commands about contracts.
type operationCmd struct {
	List operationListCmd `cmd:"" help:"The registered contracts and what they support."`
}

// operationListCmd lists the registered contracts.
type operationListCmd struct{ target }

// Run implements the command.
func (c *operationListCmd) Run(e *env) error {
	return c.call(e, events.RoleOperator, func(ctx context.Context, l *client.Client) error {
		list, err := l.Operations(ctx)
		if err != nil {
			return err
		}
		e.show(list, func(p *page) { operationRows(p, list.Items) })
		return nil
	})
}

func operationRows(p *page, items []wire.Operation) {
	p.row("OPERATION", "ADAPTER", "COSTS", "SUPPORTS", "DESCRIPTION")
	for _, o := range items {
		name := string(o.Name) + " v" + number(o.Version)
		if o.Retired {
			name += " (retired)"
		}
		var can []string
		for what, yes := range o.Supports {
			if yes {
				can = append(can, what)
			}
		}
		slices.Sort(can)
		units := make([]string, len(o.Units))
		for i, u := range o.Units {
			units[i] = string(u)
		}
		p.row(name, o.Adapter, or(strings.Join(units, ", "), "-"), or(strings.Join(can, ", "), "-"), o.Description)
	}
}
