package main

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
)

// pendingCmd shows what waits for approval, newest first.
type pendingCmd struct {
	target
	paging
	MinPosition string `name:"min-position" placeholder:"SEQ.N" help:"Answer from this position of the log or later."`
}

// Run implements the command.
func (c *pendingCmd) Run(e *env) error {
	r := wire.PendingRequest{Limit: c.Limit, MinPosition: c.MinPosition}
	return c.call(e, events.RoleApprover, func(ctx context.Context, l *client.Client) error {
		return c.each(e, func(cursor string) (string, error) {
			r.Cursor = cursor
			list, err := l.Pending(ctx, r)
			if err == nil {
				e.show(list, func(p *page) { pendingRows(p, list.Pending, e.now()) })
			}
			return list.Cursor, err
		})
	})
}

// pendingRows is the table of what waits for approval.
func pendingRows(p *page, items []wire.Pending, now time.Time) {
	p.row("EFFECT", "WHAT", "WHY", "BUDGET", "LEFT")
	for i := range items {
		x := &items[i]
		p.row(string(x.EffectID), shortened(askWords(x)), shortened(x.Reason), budgetWords(x.Budget), duration(max(0, x.ExpiresAt.Time().Sub(now))))
	}
}

// askWords is what an effect is about: `charge account/alice: amount 1500`.
func askWords(x *wire.Pending) string {
	text := string(x.Operation) + " " + x.Resource
	if fields := fieldWords(x.Exposed); fields != "" {
		text += ": " + fields
	}
	return text
}

// fieldWords are the members of an object in their order, values as in JSON.
func fieldWords(object events.Raw) string {
	var members map[string]jsontext.Value
	if json.Unmarshal(bytes.TrimSpace(object), &members) != nil {
		return string(object)
	}
	parts := make([]string, 0, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		parts = append(parts, name+" "+string(members[name]))
	}
	return strings.Join(parts, ", ")
}

// budgetWords are what is left before and after, of what the effect costs; of the
// unit that every effect costs only when it is short.
func budgetWords(budget map[events.Unit]wire.BudgetChange) string {
	var parts []string
	for _, u := range slices.Sorted(maps.Keys(budget)) {
		b := budget[u]
		if u == aggregate.UnitEffects && b.After >= 0 && len(budget) > 1 {
			continue
		}
		text := string(u) + " " + strconv.FormatInt(b.Before, 10) + " → " + strconv.FormatInt(b.After, 10)
		if b.After < 0 {
			text += " NOT ENOUGH"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// shortened fits text into a column.
func shortened(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
