package audit

import (
	"strings"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
)

// taskOpened checks a node against its parent and who opened it.
func (a *Audit) taskOpened(ev *events.Event, d events.TaskOpened) {
	key := taskKey{ev.Tenant, ev.TaskID}
	if !a.check(ruleUnique, a.books[key] == nil && ev.TaskID != "", DuplicateTask, "the task is open already, or has no id") {
		return
	}
	u, _ := a.role(ev.Actor, ev.Tenant, events.RoleOperator, events.RoleProducer)
	a.check(ruleAuthority, d.Parent != "" || u.Role == events.RoleOperator, Unauthorized, "only an operator opens a root")
	a.check(ruleTransitions, d.ExpiresAt > ev.Time, IllegalTransition, "the task is over when it opens")
	for _, h := range d.Holders {
		tenant, _, _ := strings.Cut(string(h), "/")
		a.check(ruleAuthority, tenant == string(ev.Tenant), Unauthorized, "a holder is of another tenant")
	}
	if d.Parent != "" {
		a.child(ev, d, u)
	}
	t := &task{parent: d.Parent, holders: d.Holders, expires: d.ExpiresAt, exposure: d.Exposure, accounts: map[events.Unit]*account{}}
	for unit, limit := range d.Budgets {
		a.check(ruleBudget, limit >= 0 && limit <= events.MaxAmount, BudgetOverdrawn, "a budget is not an amount")
		t.account(unit).max = limit
	}
	a.books[key] = t
}

// child checks that a node neither widens nor outlives its parent.
func (a *Audit) child(ev *events.Event, d events.TaskOpened, opener events.User) {
	_, tasks := a.books.chain(ev.Tenant, d.Parent)
	if !a.check(ruleTransitions, len(tasks) > 0 && len(tasks) < aggregate.MaxTaskDepth, IllegalTransition, "the parent does not exist, or is too deep") {
		return
	}
	parent := tasks[0]
	a.check(ruleAuthority, alive(tasks, ev.Time) == "", Unauthorized, "the parent, or an ancestor of it, is closed or expired")
	a.check(ruleBudget, d.ExpiresAt <= parent.expires, BudgetOverdrawn, "the child outlives its parent")
	for unit, limit := range d.Budgets {
		c := parent.accounts[unit]
		a.check(ruleBudget, limit == 0 || c != nil && limit <= c.max, BudgetOverdrawn, "the child has more than its parent")
	}
	if opener.Role == events.RoleProducer {
		a.check(ruleAuthority, parent.holds(ev.Actor), Unauthorized, "the producer does not hold the parent")
		for _, h := range d.Holders {
			a.check(ruleAuthority, parent.holds(h), Unauthorized, "a holder does not hold the parent")
		}
	}
}

func (a *Audit) taskClosed(ev *events.Event) {
	t := a.books[taskKey{ev.Tenant, ev.TaskID}]
	if !a.check(ruleTransitions, t != nil && !t.closed, IllegalTransition, "the task does not exist, or is closed already") {
		return
	}
	u, _ := a.role(ev.Actor, ev.Tenant, events.RoleOperator, events.RoleProducer)
	a.check(ruleAuthority, u.Role == events.RoleOperator || t.holds(ev.Actor) && t.parent != "", Unauthorized, "who closes the task may not")
	t.closed = true
}
