package main

import (
	"context"
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
)

// historyCmd shows the events of one effect with the time between them.
type historyCmd struct {
	target
	which
}

// Run implements the command.
func (c *historyCmd) Run(e *env) error {
	return c.call(e, events.RoleOperator, func(ctx context.Context, l *client.Client) error {
		id, err := c.id(ctx, l)
		if err != nil {
			return err
		}
		pages, err := history(ctx, l, id)
		if err != nil {
			return err
		}
		if e.json {
			for _, page := range pages {
				e.object(page)
			}
			return nil
		}
		steps, err := opened(pages)
		if err != nil {
			return err
		}
		e.page(func(p *page) { timeline(p, steps) })
		return nil
	})
}

// history reads every page of an effect's events.
func history(ctx context.Context, l *client.Client, id events.EffectID) ([]wire.History, error) {
	var pages []wire.History
	for r := (wire.HistoryRequest{EffectID: id}); ; {
		h, err := client.Call[wire.HistoryRequest, wire.History](ctx, l, wire.EffectHistory, r)
		if err != nil {
			return nil, err
		}
		pages = append(pages, h)
		if h.Cursor == "" {
			return pages, nil
		}
		r.Cursor = h.Cursor
	}
}

// step is an event of a timeline.
type step struct {
	at events.Position
	ev events.Event
}

func opened(pages []wire.History) ([]step, error) {
	var steps []step
	for _, page := range pages {
		for _, item := range page.Items {
			ev, err := openEvent(item.Event)
			if err != nil {
				return nil, fmt.Errorf("event at %s: %w", item.Position, err)
			}
			steps = append(steps, step{item.Position, ev})
		}
	}
	return steps, nil
}

// openEvent reads one event as the wire carries it.
func openEvent(raw events.Raw) (events.Event, error) {
	var stored struct {
		events.Event
		Data jsontext.Value `json:"data"`
	}
	if err := json.Unmarshal(raw, &stored); err != nil {
		return events.Event{}, err
	}
	ev := stored.Event
	for _, d := range events.Types() {
		if d.Type() != ev.Type {
			continue
		}
		data := reflect.New(reflect.TypeOf(d))
		if err := json.Unmarshal(stored.Data, data.Interface()); err != nil {
			return events.Event{}, err
		}
		ev.Data = data.Elem().Interface().(events.Data)
		return ev, nil
	}
	return events.Event{}, fmt.Errorf("unknown event type; this program is older than the ledger")
}

// timeline shows events with the time since the one before.
func timeline(p *page, steps []step) {
	p.row("TIME", "AFTER", "EVENT", "WHAT", "BY", "POSITION")
	for i, s := range steps {
		after := ""
		if i > 0 {
			after = "+" + duration(s.ev.Time.Sub(steps[i-1].ev.Time))
		}
		p.row(clockTime(s.ev.Time), after, string(s.ev.Type), eventWords(&s.ev), actorWords(s.ev.Actor), s.at.String())
	}
}

func actorWords(a events.Actor) string {
	if a == events.SystemActor {
		return "the ledger"
	}
	return string(a)
}
