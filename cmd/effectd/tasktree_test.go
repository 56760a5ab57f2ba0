package main

import (
	"strings"
	"testing"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// A producer hands parts of its task on, and everybody draws what they may read.
func TestTaskTree(t *testing.T) {
	dir := ledgerDir(t)
	withCharge(t, dir)
	serve(t, dir)
	do := func(args ...string) ran { t.Helper(); return effectd(t, append(args, "--data", dir)...) }
	do("user", "add", "second", "--role", "producer").want(t, 0)
	do("task", "open", "shop", "-b", "usd_cents=10000,effects=9", "--exposure", "usd_cents=4000", "--holder", "main/producer", "--holder", "main/second").want(t, 0)
	do("task", "open", "part", "--as", "producer", "--parent", "shop", "-b", "usd_cents=1000,effects=5", "--holder", "main/second").want(t, 0)
	do("task", "open", "wide", "--as", "producer", "--parent", "shop", "-b", "usd_cents=10001").want(t, 1).says(t, "budget_exceeded", "budgets.usd_cents")
	do("task", "open", "alone", "-b", "usd_cents=1").want(t, 0)
	do("submit", "--as", "second", "-t", "part", "-o", "charge", "--wait", "terminal", `{"account":"alice","amount":700}`).want(t, 0)

	tree := do("task", "tree").want(t, 0)
	if !inOrder(tree.out, "TASK", "alone", "shop", "effects", "9", "1", "usd_cents", "10000", "700", "9300", "0 of 4000", "└─ part", "effects", "5", "1", "usd_cents", "1000", "700", "300") {
		t.Error(tree.out)
	}
	for args, want := range map[string]string{"part": "part", "--as second": "part shop", "shop --as second": "part shop", "--as auditor": "alone part shop", "shop --as operator": "part shop"} {
		page := object[wire.List[wire.Task]](t, do(append([]string{"task", "tree", "--json"}, strings.Fields(args)...)...).want(t, 0))
		var ids []string
		for _, task := range page.Items {
			ids = append(ids, string(task.TaskID))
		}
		if got := strings.Join(ids, " "); got != want || page.Position == (events.Position{}) {
			t.Errorf("%s: %s at %s, want %s", args, got, page.Position, want)
		}
	}
	do("task", "tree", "alone", "--as", "producer").want(t, 1).says(t, "unknown_task")
	do("task", "close", "shop", "--reason", "done").want(t, 0)
	if tree := do("task", "tree", "shop").want(t, 0); !strings.Contains(tree.out, "shop (closed)") {
		t.Error(tree.out)
	}
}
