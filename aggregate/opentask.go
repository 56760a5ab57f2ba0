package aggregate

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// decide opens a root (operator) or a child of a task that the caller holds.
func (c OpenTask) decide(t *turn) *wire.Error {
	user, refusal := t.user(c.Caller, events.RoleOperator, events.RoleProducer)
	if refusal != nil {
		return refusal
	}
	r := &c.Request
	if user.Role == events.RoleProducer && r.Parent == "" {
		return wire.FieldError(wire.Forbidden, "parent", "a producer opens only children of a task it holds")
	}
	opened := events.TaskOpened{Parent: r.Parent, Budgets: maps.Clone(r.Budgets), Exposure: r.Exposure,
		Holders: slices.Compact(slices.Sorted(slices.Values(r.Holders))), ExpiresAt: c.ExpiresAt}
	if len(opened.Holders) == 0 {
		opened.Holders = []events.Actor{c.Actor()}
	}
	if opened.Budgets == nil {
		opened.Budgets = events.Amounts{}
	}
	for i, h := range opened.Holders {
		if tenant, principal, _ := strings.Cut(string(h), "/"); tenant != string(c.Tenant) || !events.ValidToken(principal) {
			return wire.FieldError(wire.InvalidRequest, "holders", "entry "+strconv.Itoa(i)+" is not <tenant>/<principal> of this tenant")
		}
	}
	if _, named := opened.Budgets[UnitEffects]; !named {
		opened.Budgets[UnitEffects] = c.defaultEffects(t)
	}
	if parent := t.s.Task(c.Tenant, r.Parent); parent != nil {
		opened.ExpiresAt = min(opened.ExpiresAt, parent.ExpiresAt)
	}
	known := t.s.Task(c.Tenant, r.TaskID)
	if known != nil && known.equals(&opened) && (user.Role == events.RoleOperator || known.OpenedBy == c.Actor() || known.Holds(c.Actor())) {
		t.d.TaskID, t.d.Repeat = r.TaskID, true
		return nil
	}
	if refusal := c.underParent(t, user, &opened); refusal != nil {
		return refusal
	}
	if known != nil {
		return wire.FieldError(wire.TaskExists, "task_id", "another task has this id")
	}
	if c.ExpiresAt <= t.in.At {
		return wire.FieldError(wire.Expired, "expires_at", "it is not in the future of ledger time")
	}
	about := subject{tenant: c.Tenant, actor: c.Actor(), task: r.TaskID}
	if t.exceeds(t.size(about, opened)) {
		return wire.Errorf(wire.RecordTooLarge, "the encoded record exceeds the limit of the ledger")
	}
	t.d.TaskID = r.TaskID
	t.emit(about, opened)
	return nil
}

// underParent checks that a child is opened under a task that is alive, and does
// not widen it. Its expiry is cut to the parent's already.
func (c OpenTask) underParent(t *turn, user events.User, opened *events.TaskOpened) *wire.Error {
	if c.Request.Parent == "" {
		return nil
	}
	chain := t.s.ancestry(c.Tenant, c.Request.Parent)
	if len(chain) == 0 || user.Role == events.RoleProducer && !chain[0].Holds(c.Actor()) {
		return wire.NoSuchTask("parent")
	}
	if len(chain) >= MaxTaskDepth {
		return wire.FieldError(wire.InvalidRequest, "parent", "the task tree is at its greatest depth")
	}
	if refusal := t.alive(chain, "parent"); refusal != nil {
		return refusal
	}
	parent := chain[0]
	for _, u := range sortedUnits(opened.Budgets) {
		if opened.Budgets[u] > parent.Accounts[u].Max {
			return wire.FieldError(wire.BudgetExceeded, "budgets."+string(u), "a child has no more than its parent")
		}
	}
	for _, h := range opened.Holders {
		if user.Role == events.RoleProducer && !parent.Holds(h) {
			return wire.FieldError(wire.InvalidRequest, "holders", "a child's holders are holders of its parent")
		}
	}
	return nil
}

func (c OpenTask) defaultEffects(t *turn) int64 {
	if parent := t.s.Task(c.Tenant, c.Request.Parent); parent != nil {
		return min(DefaultEffects, parent.Accounts[UnitEffects].Max)
	}
	return DefaultEffects
}

// equals reports whether opening the task again would change nothing.
func (t *Task) equals(o *events.TaskOpened) bool {
	if t.Parent != o.Parent || t.ExpiresAt != o.ExpiresAt || !slices.Equal(t.Holders, o.Holders) ||
		!maps.Equal(t.Exposure, o.Exposure) && len(t.Exposure)+len(o.Exposure) > 0 {
		return false
	}
	for u, limit := range o.Budgets {
		if t.Accounts[u].Max != limit {
			return false
		}
	}
	for u, a := range t.Accounts {
		if a.Max != o.Budgets[u] {
			return false
		}
	}
	return true
}

// decide ends the authority of a task and its descendants; alone, however many
// effects are below it.
func (c CloseTask) decide(t *turn) *wire.Error {
	user, refusal := t.user(c.Caller, events.RoleOperator, events.RoleProducer)
	if refusal != nil {
		return refusal
	}
	task := t.s.Task(c.Tenant, c.TaskID)
	if task == nil || user.Role == events.RoleProducer && !task.Holds(c.Actor()) && task.OpenedBy != c.Actor() {
		return wire.NoSuchTask("task_id")
	}
	if user.Role == events.RoleProducer && task.Parent == "" {
		return wire.FieldError(wire.Forbidden, "task_id", "a root task is closed by an operator")
	}
	t.d.TaskID = task.ID
	if task.Closed != nil {
		t.d.Repeat = true
		return nil
	}
	if refusal := checkReason(c.Reason); refusal != nil {
		return refusal
	}
	t.emit(subject{tenant: c.Tenant, actor: c.Actor(), task: task.ID}, events.TaskClosed{Reason: c.Reason})
	return nil
}
