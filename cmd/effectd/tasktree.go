package main

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
)

// taskTreeCmd draws the tasks that one may read, or one of them and what is below.
type taskTreeCmd struct {
	target
	Task        string `arg:"" optional:"" help:"Draw this task and what is below it (default: every task that one may read)."`
	MinPosition string `name:"min-position" placeholder:"SEQ.N" help:"Answer from this position of the log or later."`
}

// Run implements the command.
func (c *taskTreeCmd) Run(e *env) error {
	r := wire.TaskListRequest{Under: events.TaskID(c.Task), Limit: 500, MinPosition: c.MinPosition}
	return c.call(e, events.RoleOperator, func(ctx context.Context, l *client.Client) error {
		var all []wire.Task
		for {
			list, err := l.TaskList(ctx, r)
			if err != nil {
				return err
			}
			if e.json {
				e.object(list)
			}
			all = append(all, list.Items...)
			if list.Cursor == "" {
				break
			}
			r.Cursor, r.MinPosition = events.TaskID(list.Cursor), list.Position.String()
		}
		if !e.json {
			e.page(func(p *page) { treeRows(p, all, e.now()) })
		}
		return nil
	})
}

// treeRows draws tasks, given in the order of their ids, below their parents. One
// whose parent is not among them is drawn at the top, with the parent's name.
func treeRows(p *page, tasks []wire.Task, now time.Time) {
	byID, below := map[events.TaskID]*wire.Task{}, map[events.TaskID][]*wire.Task{}
	for i := range tasks {
		byID[tasks[i].TaskID] = &tasks[i]
	}
	for i := range tasks {
		t, parent := &tasks[i], tasks[i].Parent
		if byID[parent] == nil {
			parent = ""
		}
		below[parent] = append(below[parent], t)
	}
	p.row("TASK", "UNIT", "MAXIMUM", "SPENT", "HELD", "OF IT UNKNOWN", "FREE", "EXPOSURE")
	t := tree{page: p, below: below, now: now}
	for _, root := range below[""] {
		t.draw(root, "", "")
	}
}

// tree is a drawing of tasks.
type tree struct {
	page  *page
	below map[events.TaskID][]*wire.Task
	now   time.Time
}

// draw writes a task, a line for each unit, and then what is below it. The first
// line begins with branch, the ones after it with trunk.
func (t *tree) draw(x *wire.Task, branch, trunk string) {
	children := t.below[x.TaskID]
	name, further := branch+t.name(x, branch == ""), trunk
	if len(children) > 0 {
		further += "│"
	}
	for _, u := range slices.Sorted(maps.Keys(x.Budgets)) {
		b := x.Budgets[u]
		exposure := ""
		if most, capped := x.Exposure[u]; capped {
			exposure = number(b.Reserved) + " of " + number(most)
		}
		t.page.row(name, string(u), number(b.Max), number(b.Spent), number(b.Reserved), number(b.Unknown), number(b.Available), exposure)
		name = further
	}
	for i, child := range children {
		if i == len(children)-1 {
			t.draw(child, trunk+"└─ ", trunk+"   ")
		} else {
			t.draw(child, trunk+"├─ ", trunk+"│  ")
		}
	}
}

// name is the id of a task, and what the drawing does not show of it.
func (t *tree) name(x *wire.Task, top bool) string {
	text := string(x.TaskID)
	switch {
	case x.Closed != nil:
		text += " (closed)"
	case !x.ExpiresAt.Time().After(t.now):
		text += " (expired)"
	}
	if top && x.Parent != "" {
		text += ", below " + string(x.Parent)
	}
	return text
}
