package audit

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
)

// books are the accounts of every task, kept from the log alone.
type books map[taskKey]*task

type taskKey struct {
	tenant events.Tenant
	id     events.TaskID
}

// task is one node, with its accounts.
type task struct {
	parent   events.TaskID
	holders  []events.Actor
	expires  events.Instant
	closed   bool
	exposure events.Amounts
	accounts map[events.Unit]*account
}

type account struct{ max, reserved, spent, unknown, overrun int64 }

func (t *task) account(u events.Unit) *account {
	if t.accounts[u] == nil {
		t.accounts[u] = &account{}
	}
	return t.accounts[u]
}

func (t *task) holds(a events.Actor) bool { return slices.Contains(t.holders, a) }

// chain is a task and its ancestors, the task first; nil if one does not exist.
func (b books) chain(tenant events.Tenant, id events.TaskID) (ids []events.TaskID, tasks []*task) {
	for id != "" {
		t := b[taskKey{tenant, id}]
		if t == nil || len(ids) > aggregate.MaxTaskDepth {
			return nil, nil
		}
		ids, tasks = append(ids, id), append(tasks, t)
		id = t.parent
	}
	return ids, tasks
}

// alive says why a task gives no authority at a time, or "".
func alive(tasks []*task, at events.Instant) events.Reason {
	for _, t := range tasks {
		if t.closed {
			return events.ReasonTaskClosed
		}
	}
	for _, t := range tasks {
		if at >= t.expires {
			return events.ReasonExpired
		}
	}
	return ""
}

// reservation checks that an admission holds exactly its bound, and one of
// "effects", in the task and every ancestor, and that there was room for it.
func (a *Audit) reservation(e *life, lines []events.ReservationLine) {
	b := &e.prepared.Binding
	ids, tasks := a.books.chain(e.tenant, b.TaskID)
	var want []events.ReservationLine
	for i, id := range ids {
		for u, amount := range b.MaxCost {
			want = append(want, events.ReservationLine{TaskID: id, Unit: u, Amount: amount})
			a.room(tasks[i], id, u, amount)
		}
		want = append(want, events.ReservationLine{TaskID: id, Unit: aggregate.UnitEffects, Amount: 1})
		a.room(tasks[i], id, aggregate.UnitEffects, 1)
	}
	slices.SortFunc(want, func(x, y events.ReservationLine) int {
		return cmp.Or(cmp.Compare(x.TaskID, y.TaskID), cmp.Compare(x.Unit, y.Unit))
	})
	a.check(ruleReservations, len(ids) > 0 && slices.Equal(want, lines), ReservationWrong,
		"the reservation is not the bound, in the task and every ancestor")
	e.lines = lines
	a.books.add(e.tenant, lines, func(c *account, n int64) { c.reserved += n })
}

// room checks one account before it is reserved from.
func (a *Audit) room(t *task, id events.TaskID, u events.Unit, amount int64) {
	var c account
	if known := t.accounts[u]; known != nil {
		c = *known
	}
	a.check(ruleBudget, c.reserved+c.spent+amount <= c.max, BudgetOverdrawn, fmt.Sprintf("task %s has less %s left than is reserved", id, u))
	if limit, capped := t.exposure[u]; capped {
		a.check(ruleBudget, c.reserved+amount <= limit, ExposureOverdrawn, fmt.Sprintf("task %s is exposed beyond its cap of %s", id, u))
	}
}

func (b books) add(tenant events.Tenant, lines []events.ReservationLine, f func(*account, int64)) {
	for _, l := range lines {
		if t := b[taskKey{tenant, l.TaskID}]; t != nil {
			f(t.account(l.Unit), l.Amount)
		}
	}
}

// charge spends a cost in the task and every ancestor.
func (a *Audit) charge(e *life, cost, overrun events.Amounts) {
	_, tasks := a.books.chain(e.tenant, e.prepared.Binding.TaskID)
	for _, t := range tasks {
		for u, amount := range cost {
			c := t.account(u)
			c.spent = min(c.spent+max(amount, 0), events.MaxAmount)
			c.overrun = min(c.overrun+max(overrun[u], 0), events.MaxAmount)
		}
	}
}

// balanced checks the invariant of SPEC 10 in every account above an effect.
func (a *Audit) balanced(e *life) {
	ids, tasks := a.books.chain(e.tenant, e.prepared.Binding.TaskID)
	for i, t := range tasks {
		for u, c := range t.accounts {
			a.check(ruleBudget, c.reserved >= 0 && c.reserved+c.spent-c.overrun <= c.max, BudgetOverdrawn,
				fmt.Sprintf("task %s: reserved and spent %s exceed the budget without recorded overrun", ids[i], u))
		}
	}
}

// compare holds the folded state against the books, for the tasks that an entry
// is about.
func (a *Audit) compare(e *events.Stored) {
	seen := map[taskKey]bool{}
	for i := range e.Events {
		ids, _ := a.books.chain(e.Events[i].Tenant, e.Events[i].TaskID)
		for _, id := range ids {
			key := taskKey{e.Events[i].Tenant, id}
			if !seen[key] {
				seen[key] = true
				a.compareTask(key)
			}
		}
	}
}

func (a *Audit) compareTask(key taskKey) {
	folded, own := a.state.Task(key.tenant, key.id), a.books[key]
	same := folded != nil && folded.Parent == own.parent && (folded.Closed != nil) == own.closed
	if same {
		for u, f := range folded.Accounts {
			c := own.account(u)
			same = same && account{f.Max, f.Reserved, f.Spent, f.Unknown, f.Overrun} == *c
		}
		same = same && len(folded.Accounts) == len(own.accounts)
	}
	a.check(ruleBudget, same, BooksDiffer, fmt.Sprintf("task %s: the fold has other accounts than the log", key.id))
}
