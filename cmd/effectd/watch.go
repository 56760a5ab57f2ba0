package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/events/wire"
)

// watchCmd follows the log and prints the events that match.
type watchCmd struct {
	target
	Operation string   `short:"o" placeholder:"NAME" help:"Only of this operation."`
	Type      []string `placeholder:"TYPE" help:"Only of these types, such as settled or unknown."`
	Effect    string   `placeholder:"ID" help:"Only of this effect."`
	Task      string   `short:"t" placeholder:"ID" help:"Only of this task."`
	Of        string   `placeholder:"TENANT" help:"Only of this tenant."`
	From      *uint64  `placeholder:"SEQ" help:"Begin at this entry of the log; 1 is the first (default: what is new)."`
	Count     int      `short:"n" placeholder:"N" help:"End after this many events."`
}

// errEnough ends a watch that printed what was asked for.
var errEnough = errors.New("enough")

// Run implements the command.
func (c *watchCmd) Run(e *env) error {
	for _, t := range c.Type {
		if !slices.ContainsFunc(events.Types(), func(d events.Data) bool { return string(d.Type()) == t }) {
			return &usage{"--type: no event is called " + t, "effectd schema --list"}
		}
	}
	log, closeLog, err := c.runningLog(e)
	if err != nil {
		return err
	}
	defer closeLog()
	from, err := c.from(e, log)
	if err != nil {
		return err
	}
	left := c.Count
	err = log.Tail(e.ctx, from, "", func(s events.Stored) error {
		for i := range s.Events {
			if !c.matches(&s.Events[i]) {
				continue
			}
			e.event(events.Position{Seq: s.Seq, Index: i}, &s.Events[i])
			if left--; left == 0 || e.broken() {
				return errEnough
			}
		}
		return nil
	})
	if errors.Is(err, errEnough) || e.ctx.Err() != nil {
		return nil
	}
	return err
}

func (c *watchCmd) from(e *env, log eventlog.Log) (uint64, error) {
	if c.From != nil {
		return *c.From, nil
	}
	last, err := log.Last(e.ctx)
	return last + 1, err
}

func (c *watchCmd) matches(ev *events.Event) bool {
	is := func(want, have string) bool { return want == "" || want == have }
	return is(c.Operation, string(ev.Operation)) && is(c.Effect, string(ev.EffectID)) && is(c.Task, string(ev.TaskID)) &&
		is(c.Of, string(ev.Tenant)) && (len(c.Type) == 0 || slices.Contains(c.Type, string(ev.Type)))
}

func (e *env) event(at events.Position, ev *events.Event) {
	if e.json {
		e.object(wire.HistoryItem{Position: at, Event: events.CanonicalOf(ev)})
		return
	}
	about := string(ev.EffectID)
	if about == "" {
		about = or(string(ev.TaskID), string(ev.RunID))
	}
	text := fmt.Sprintf("%s  %-8s  %-20s  %-26s", clockTime(ev.Time), at, ev.Type, about)
	e.tell("%s", strings.TrimRight(plain(text+"  "+eventWords(ev)), " "))
}
