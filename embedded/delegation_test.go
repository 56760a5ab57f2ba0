package embedded_test

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// open opens a task as somebody.
func (r *rig) open(who string, change func(*wire.TaskOpenRequest)) (wire.Task, error) {
	r.Helper()
	request := wire.TaskOpenRequest{TaskID: "part", Parent: "shop", Budgets: events.Amounts{"usd_cents": 60, "effects": 10},
		Holders: []events.Actor{"main/second"}, ExpiresAt: time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}
	change(&request)
	return r.as(who).TaskOpen(r.Context(), request)
}

func (r *rig) mustOpen(who string, change func(*wire.TaskOpenRequest)) wire.Task {
	r.Helper()
	task, err := r.open(who, change)
	if err != nil {
		r.Fatal(err)
	}
	return task
}

// chargeIn charges in a task and waits for the end.
func (r *rig) chargeIn(who string, task events.TaskID, causal string, amount int) (wire.Effect, error) {
	r.Helper()
	request := charge(who, causal, amount)
	request.TaskID = task
	return r.as(who).Submit(r.Context(), wire.SubmitRequest{PrepareRequest: request, Wait: wire.WaitTerminal, TimeoutMS: patience.Milliseconds()})
}

// delegating is a node whose task "shop" has 100 cents and two holders.
func delegating(t testing.TB, s *service, change func(*wire.TaskOpenRequest)) *rig {
	t.Helper()
	r := newRig(t, s)
	r.addUser("second", events.RoleProducer)
	r.addUser("third", events.RoleProducer)
	r.start()
	r.mustOpen("operator", func(q *wire.TaskOpenRequest) {
		q.TaskID, q.Parent, q.Budgets = "shop", "", events.Amounts{"usd_cents": 100, "effects": 50}
		q.Holders = []events.Actor{"main/producer", "main/second"}
		change(q)
	})
	return r
}

func same(*wire.TaskOpenRequest) {}

// A producer hands on no more than it holds: not to others, not in other units,
// not for longer (SPEC 10).
func TestChildTaskIsNoWider(t *testing.T) {
	t.Parallel()
	r := delegating(t, newService(t), same)
	shop := r.task("shop")
	before := r.last()
	for name, c := range map[string]struct {
		who    string
		change func(*wire.TaskOpenRequest)
		code   wire.Code
		field  string
	}{
		"more than the parent":      {"producer", func(q *wire.TaskOpenRequest) { q.Budgets["usd_cents"] = 101 }, wire.BudgetExceeded, "budgets.usd_cents"},
		"another unit":              {"producer", func(q *wire.TaskOpenRequest) { q.Budgets["calls"] = 1 }, wire.BudgetExceeded, "budgets.calls"},
		"more effects":              {"producer", func(q *wire.TaskOpenRequest) { q.Budgets["effects"] = 51 }, wire.BudgetExceeded, "budgets.effects"},
		"somebody else":             {"producer", func(q *wire.TaskOpenRequest) { q.Holders = append(q.Holders, "main/third") }, wire.InvalidRequest, "holders"},
		"of another tenant":         {"producer", func(q *wire.TaskOpenRequest) { q.Holders = []events.Actor{"other/second"} }, wire.InvalidRequest, "holders"},
		"a root":                    {"producer", func(q *wire.TaskOpenRequest) { q.Parent = "" }, wire.Forbidden, "parent"},
		"below another's":           {"third", same, wire.UnknownTask, "parent"},
		"below none":                {"producer", func(q *wire.TaskOpenRequest) { q.Parent = "none" }, wire.UnknownTask, "parent"},
		"below itself":              {"producer", func(q *wire.TaskOpenRequest) { q.Parent = q.TaskID }, wire.UnknownTask, "parent"},
		"another shop":              {"producer", func(q *wire.TaskOpenRequest) { q.TaskID = "shop" }, wire.TaskExists, "task_id"},
		"no time":                   {"producer", func(q *wire.TaskOpenRequest) { q.ExpiresAt = "2020-01-01T00:00:00Z" }, wire.Expired, "expires_at"},
		"the operator's is no more": {"operator", func(q *wire.TaskOpenRequest) { q.Budgets["usd_cents"] = 101 }, wire.BudgetExceeded, "budgets.usd_cents"},
	} {
		_, err := r.open(c.who, c.change)
		var refusal *wire.Error
		if !errors.As(err, &refusal) || refusal.Code != c.code || refusal.Field != c.field {
			t.Errorf("%s: %v, want %s at %s", name, err, c.code, c.field)
		}
	}
	if last := r.last(); last != before {
		t.Fatalf("%d entries of refused tasks", last-before)
	}

	longer := func(q *wire.TaskOpenRequest) { q.ExpiresAt = "2200-01-01T00:00:00Z" }
	for _, repeat := range []bool{false, true} {
		part := r.mustOpen("producer", longer)
		if part.ExpiresAt != shop.ExpiresAt || part.Parent != "shop" || part.Repeat != repeat || !slices.Equal(part.Holders, []events.Actor{"main/second"}) {
			t.Fatalf("%+v", part)
		}
	}
	_, err := r.open("producer", func(q *wire.TaskOpenRequest) { longer(q); q.Budgets["usd_cents"] = 59 })
	refusedWith(t, err, wire.TaskExists)
	_, err = r.chargeIn("producer", "part", "c", 5) // it opened the task, and does not hold it
	refusedWith(t, err, wire.UnknownTask)
	deep := r.mustOpen("second", func(q *wire.TaskOpenRequest) { q.TaskID, q.Parent, q.Holders = "deep", "part", nil })
	if !slices.Equal(deep.Holders, []events.Actor{"main/second"}) || deep.ExpiresAt.Time().After(shop.ExpiresAt.Time()) {
		t.Fatalf("%+v", deep)
	}
	_, err = r.open("second", func(q *wire.TaskOpenRequest) {
		q.TaskID, q.Parent, q.Holders = "back", "part", []events.Actor{"main/producer"}
	})
	refusedWith(t, err, wire.InvalidRequest)
}

// Children share what their parent has, whatever they were promised: every
// admission is checked at every level, and every cost charged there.
func TestChildrenShareTheParent(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := delegating(t, s, same)
	r.mustOpen("producer", same)
	r.mustOpen("producer", func(q *wire.TaskOpenRequest) { q.TaskID, q.Holders = "rest", []events.Actor{"main/producer"} })
	r.mustOpen("second", func(q *wire.TaskOpenRequest) {
		q.TaskID, q.Parent, q.Budgets = "deep", "part", events.Amounts{"usd_cents": 50}
	})
	e, err := r.chargeIn("second", "deep", "1", 50)
	if err != nil {
		t.Fatal(err)
	}
	settledAs(t, e, events.OutcomeSucceeded)
	_, err = r.chargeIn("second", "part", "2", 11) // 10 are left of its own 60
	refusedWith(t, err, wire.BudgetExceeded)
	_, err = r.chargeIn("producer", "rest", "3", 51) // 60 of its own, and 50 of the parent's
	refusedWith(t, err, wire.BudgetExceeded)
	if e, err = r.chargeIn("producer", "rest", "4", 50); err != nil {
		t.Fatal(err)
	}
	settledAs(t, e, events.OutcomeSucceeded)
	_, err = r.chargeIn("second", "part", "5", 1)
	refusedWith(t, err, wire.BudgetExceeded)
	for id, want := range map[events.TaskID]wire.Budget{
		"shop": {Max: 100, Spent: 100}, "part": {Max: 60, Spent: 50}, "deep": {Max: 50, Spent: 50}, "rest": {Max: 60, Spent: 50},
	} {
		if got := r.task(id).Budgets["usd_cents"]; got != want {
			t.Errorf("%s: %+v, want %+v", id, got, want)
		}
	}
	s.served(t, 2)
	folded(t, readAll(t, r.log()))
}

// A child ends with its parent. What is unknown under it stays held at every level,
// and evidence settles it as before.
func TestChildEndsWithParent(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := delegating(t, s, same)
	r.mustOpen("producer", same)
	s.answers(lose)
	lost, err := r.chargeIn("second", "part", "lost", 7)
	if err != nil {
		t.Fatal(err)
	}
	unknownFor(t, lost, events.ReasonResponseLost)
	request := charge("second", "held", 5)
	request.TaskID = "part"
	held, err := r.as("second").Prepare(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.as("producer").TaskClose(t.Context(), wire.TaskCloseRequest{TaskID: "shop"})
	refusedWith(t, err, wire.Forbidden) // a root is the operator's
	_, err = r.as("third").TaskClose(t.Context(), wire.TaskCloseRequest{TaskID: "part"})
	refusedWith(t, err, wire.UnknownTask)
	for _, repeat := range []bool{false, true} {
		if task, err := r.as("operator").TaskClose(t.Context(), wire.TaskCloseRequest{TaskID: "shop", Reason: "over"}); err != nil || task.Closed == nil || task.Repeat != repeat {
			t.Fatal(task, err)
		}
	}
	if e := r.get(held.EffectID); e.State != wire.StateRefused || e.Reason != events.ReasonTaskClosed {
		t.Fatal(show(e))
	}
	_, err = r.chargeIn("second", "part", "late", 5)
	refusedWith(t, err, wire.TaskClosed)
	_, err = r.open("second", func(q *wire.TaskOpenRequest) { q.TaskID, q.Parent = "late", "part" })
	refusedWith(t, err, wire.TaskClosed)
	unknownFor(t, r.get(lost.EffectID), events.ReasonResponseLost)
	for _, id := range []events.TaskID{"shop", "part"} {
		if b := r.task(id).Budgets["usd_cents"]; b.Reserved != 7 || b.Unknown != 7 {
			t.Errorf("%s: %+v", id, b)
		}
	}
	settledAs(t, r.reconcile(lost.EffectID), events.OutcomeSucceeded)
	for _, id := range []events.TaskID{"shop", "part"} {
		if b := r.task(id).Budgets["usd_cents"]; b.Reserved != 0 || b.Spent != 7 {
			t.Errorf("%s: %+v", id, b)
		}
	}
	s.served(t, 1)
}

// A child does not outlive a parent whose time has passed.
func TestChildDoesNotOutlive(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := delegating(t, s, same)
	var held wire.Effect
	err := error(wire.Errorf(wire.Expired, ""))
	for life := time.Second; codeOf(err) == wire.Expired; life *= 2 { // a slow machine may be late with its requests
		short, child := events.TaskID("short-"+life.String()), events.TaskID("child-"+life.String())
		r.mustOpen("producer", func(q *wire.TaskOpenRequest) {
			q.TaskID, q.Holders, q.ExpiresAt = short, nil, time.Now().Add(life).UTC().Format(time.RFC3339Nano)
		})
		if _, err = r.open("producer", func(q *wire.TaskOpenRequest) { q.TaskID, q.Parent, q.Holders = child, short, nil }); err != nil {
			continue
		}
		request := charge("r", life.String(), 5)
		request.TaskID = child
		held, err = r.as("producer").Prepare(t.Context(), request)
	}
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the child ends with its parent", func() bool { held = r.get(held.EffectID); return held.State == wire.StateRefused })
	if held.Reason != events.ReasonExpired {
		t.Fatal(show(held))
	}
	_, err = r.chargeIn("producer", held.TaskID, "late", 5)
	refusedWith(t, err, wire.Expired)
	_, err = r.open("producer", func(q *wire.TaskOpenRequest) { q.TaskID, q.Parent, q.Holders = "late", held.TaskID, nil })
	refusedWith(t, err, wire.Expired)
	s.served(t, 0)
}

// A service that loses its answers stops new effects once what is in doubt reaches
// the cap of a task, whichever of its children asks; evidence makes room again.
func TestExposure(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := delegating(t, s, func(q *wire.TaskOpenRequest) { q.Exposure = events.Amounts{"usd_cents": 15} })
	r.mustOpen("producer", same)
	r.mustOpen("producer", func(q *wire.TaskOpenRequest) { q.TaskID, q.Holders = "rest", []events.Actor{"main/producer"} })
	s.answers(lose)
	var lost, stopped atomic.Int64
	var unknown atomic.Pointer[wire.Effect]
	r.many(40, func(i int) error {
		who, task := "producer", events.TaskID("rest")
		if i%2 == 0 {
			who, task = "second", "part"
		}
		e, err := r.chargeIn(who, task, fmt.Sprint(i), 5)
		switch {
		case err == nil && e.State == wire.StateUnknown:
			lost.Add(1)
			unknown.Store(&e)
		case codeOf(err) == wire.ExposureExceeded:
			stopped.Add(1)
		default:
			return fmt.Errorf("%s: %w", e.State, err)
		}
		return nil
	})
	if lost.Load() != 3 || stopped.Load() != 37 {
		t.Fatalf("%d lost, %d stopped", lost.Load(), stopped.Load())
	}
	s.served(t, 3)
	r.account(15, 0, 15)

	s.answers(nil)
	_, err := r.chargeIn("second", "part", "next", 5)
	refusedWith(t, err, wire.ExposureExceeded) // it works again, and what is in doubt still is
	if e, err := r.as("second").Get(t.Context(), wire.GetRequest{RunID: "second", CausalID: "next"}); err != nil || e.State != wire.StatePermitted {
		t.Fatal(err, show(e))
	}
	settledAs(t, r.reconcile(unknown.Load().EffectID), events.OutcomeSucceeded)
	e, err := r.chargeIn("second", "part", "next", 5)
	if err != nil {
		t.Fatal(err)
	}
	settledAs(t, e, events.OutcomeSucceeded)
	r.account(10, 10, 10)
	s.served(t, 4)
	folded(t, readAll(t, r.log()))
}
