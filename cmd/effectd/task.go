package main

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
)

// taskCmd are the commands about budgets.
type taskCmd struct {
	Open  taskOpenCmd  `cmd:"" help:"Open a task with budgets; its holders may use it."`
	Get   taskGetCmd   `cmd:"" help:"Show a task: what is spent, held and left."`
	Tree  taskTreeCmd  `cmd:"" help:"Draw tasks below each other, with what is spent, held and left."`
	Close taskCloseCmd `cmd:"" help:"Close a task; its and its descendants' authority ends."`
}

// taskOpenCmd opens a root (operator), or with --parent a child (producer too).
type taskOpenCmd struct {
	target
	Task     string         `arg:"" help:"Id of the new task."`
	Budget   events.Amounts `short:"b" mapsep:"," placeholder:"UNIT=N" help:"The most that may be spent, per unit; a unit that is not named has none."`
	Exposure events.Amounts `mapsep:"," placeholder:"UNIT=N" help:"The most that unresolved effects may hold, per unit."`
	Holder   []string       `placeholder:"TENANT/PRINCIPAL" help:"Who may use it (default: who opens it)."`
	Parent   string         `placeholder:"ID" help:"Open it as a child of this task."`
	Expires  string         `default:"24h" placeholder:"24h|TIME" help:"When it ends (default: ${default})."`
}

// Run implements the command.
func (c *taskOpenCmd) Run(e *env) error {
	at, err := moment("expires", c.Expires, e.now(), 1)
	if err != nil {
		return err
	}
	r := wire.TaskOpenRequest{TaskID: events.TaskID(c.Task), Parent: events.TaskID(c.Parent), Budgets: c.Budget, Exposure: c.Exposure, ExpiresAt: at}
	for _, h := range c.Holder {
		r.Holders = append(r.Holders, events.Actor(h))
	}
	return c.call(e, events.RoleOperator, func(ctx context.Context, l *client.Client) error {
		t, err := l.TaskOpen(ctx, r)
		return e.task(&t, changed(err))
	})
}

// taskGetCmd shows a task.
type taskGetCmd struct {
	target
	Task        string `arg:"" help:"Id of the task."`
	MinPosition string `name:"min-position" placeholder:"SEQ.N" help:"Answer from this position of the log or later."`
}

// Run implements the command.
func (c *taskGetCmd) Run(e *env) error {
	return c.call(e, events.RoleOperator, func(ctx context.Context, l *client.Client) error {
		t, err := l.TaskGet(ctx, wire.TaskGetRequest{TaskID: events.TaskID(c.Task), MinPosition: c.MinPosition})
		return e.task(&t, err)
	})
}

// taskCloseCmd closes a task.
type taskCloseCmd struct {
	target
	Task   string `arg:"" help:"Id of the task."`
	Reason string `placeholder:"TEXT" help:"Why; it is recorded."`
}

// Run implements the command.
func (c *taskCloseCmd) Run(e *env) error {
	return c.call(e, events.RoleOperator, func(ctx context.Context, l *client.Client) error {
		t, err := l.TaskClose(ctx, wire.TaskCloseRequest{TaskID: events.TaskID(c.Task), Reason: c.Reason})
		return e.task(&t, changed(err))
	})
}

func (e *env) task(t *wire.Task, err error) error {
	if err != nil {
		return err
	}
	e.show(t, func(p *page) { taskPage(p, t, e.now()) })
	return nil
}

// taskPage shows a task and its accounts.
func taskPage(p *page, t *wire.Task, now time.Time) {
	p.field("task", string(t.TaskID))
	p.field("parent", string(t.Parent))
	for i, h := range t.Holders {
		name := ""
		if i == 0 {
			name = "holders"
		}
		p.row(name, string(h))
	}
	p.field("expires", when(t.ExpiresAt, now))
	if c := t.Closed; c != nil {
		text := when(c.At, now) + ", by " + string(c.By)
		if c.Reason != "" {
			text += ": " + c.Reason
		}
		p.field("closed", text)
	}
	p.line("")
	p.row("UNIT", "MAXIMUM", "SPENT", "HELD", "OF IT UNKNOWN", "AVAILABLE")
	for _, u := range slices.Sorted(maps.Keys(t.Budgets)) {
		b := t.Budgets[u]
		p.row(string(u), number(b.Max), number(b.Spent), number(b.Reserved), number(b.Unknown), number(b.Available))
	}
	if len(t.Exposure) > 0 {
		p.line("")
		p.line("unresolved effects may hold at most: " + amountsText(t.Exposure))
	}
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
