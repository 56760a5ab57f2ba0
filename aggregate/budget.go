package aggregate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// reserve computes what an effect holds in its task and every ancestor, or says
// what the budgets lack.
func (t *turn) reserve(e *Effect, chain []*Task) ([]events.ReservationLine, *wire.Error) {
	amounts := needs(e)
	var lines []events.ReservationLine
	for _, task := range chain {
		for _, u := range sortedUnits(amounts) {
			want, account := amounts[u], task.Accounts[u]
			if want > account.free() {
				return nil, task.exceeded(u, want)
			}
			if limit, capped := task.Exposure[u]; capped && want+account.Reserved > limit {
				return nil, wire.FieldError(wire.ExposureExceeded, string(u), "task "+string(task.ID)+" would be exposed beyond its cap")
			}
			lines = append(lines, events.ReservationLine{TaskID: task.ID, Unit: u, Amount: want})
		}
	}
	slices.SortFunc(lines, func(a, b events.ReservationLine) int {
		return cmp.Or(cmp.Compare(a.TaskID, b.TaskID), cmp.Compare(a.Unit, b.Unit))
	})
	return lines, nil
}

// exceeded says what the task lacks for an effect.
func (t *Task) exceeded(u events.Unit, want int64) *wire.Error {
	account, budgeted := t.Accounts[u]
	text := fmt.Sprintf("task %s has %d left and the effect may cost %d", t.ID, account.free(), want)
	if !budgeted {
		text = fmt.Sprintf("task %s has no budget in this unit, only in %s", t.ID, t.units())
	}
	return wire.FieldError(wire.BudgetExceeded, string(u), text)
}

// units names what the task has budgets in, as many as a message should.
func (t *Task) units() string {
	const most = 8
	var names []string
	for i, u := range slices.Sorted(maps.Keys(t.Accounts)) {
		if i == most {
			names = append(names, "…")
			break
		}
		names = append(names, string(u))
	}
	return strings.Join(names, ", ")
}

// needs is what the admission of an effect reserves at every level.
func needs(e *Effect) events.Amounts {
	amounts := maps.Clone(e.Prepared.Binding.MaxCost)
	if amounts == nil {
		amounts = events.Amounts{}
	}
	amounts[UnitEffects] = 1
	return amounts
}

// available is what a task and its ancestors leave of a unit: the least of them.
func available(chain []*Task, u events.Unit) int64 {
	left := events.MaxAmount
	for _, t := range chain {
		left = min(left, t.Accounts[u].free())
	}
	return max(0, left)
}

// charge turns what was measured into what is charged: a unit that was not
// measured costs its maximum, and so does one whose measure is no amount.
func charge(e *Effect, r Result) (cost, overrun events.Amounts, invalid bool) {
	if r.Outcome == events.OutcomeNoEffect {
		return events.Amounts{}, nil, false
	}
	cost, invalid = events.Amounts{}, r.CostInvalid
	for u, most := range e.Prepared.Binding.MaxCost {
		cost[u] = most
	}
	for u, measured := range r.Cost {
		if u == UnitEffects {
			continue // the ledger itself counts admissions
		}
		if measured < 0 || measured > events.MaxAmount {
			invalid = true
			continue
		}
		cost[u] = measured
	}
	for u, amount := range cost {
		if over := amount - e.Prepared.Binding.MaxCost[u]; over > 0 {
			if overrun == nil {
				overrun = events.Amounts{}
			}
			overrun[u] = over
		}
	}
	return cost, overrun, invalid
}

// spentOn is what an outcome spends: its cost, and one of "effects" unless it is
// no_effect.
func spentOn(o events.Outcome, cost events.Amounts) events.Amounts {
	if o == events.OutcomeNoEffect {
		return cost
	}
	spent := maps.Clone(cost)
	if spent == nil {
		spent = events.Amounts{}
	}
	spent[UnitEffects] = 1
	return spent
}

// hold adds a reservation to the accounts; sign −1 frees it.
func (s *State) hold(tenant events.Tenant, lines []events.ReservationLine, sign int64) {
	s.eachLine(tenant, lines, func(a *Account, amount int64) { a.Reserved += sign * amount })
}

// doubt marks a reservation as held by an unknown effect; sign −1 unmarks it.
func (s *State) doubt(tenant events.Tenant, lines []events.ReservationLine, sign int64) {
	s.eachLine(tenant, lines, func(a *Account, amount int64) { a.Unknown += sign * amount })
}

func (s *State) eachLine(tenant events.Tenant, lines []events.ReservationLine, f func(*Account, int64)) {
	for _, task := range linesByTask(lines) {
		s.changeTask(tenant, task[0].TaskID, func(t *Task) {
			for _, l := range task {
				a := t.Accounts[l.Unit]
				f(&a, l.Amount)
				t.Accounts[l.Unit] = a
			}
		})
	}
}

// linesByTask groups sorted lines.
func linesByTask(lines []events.ReservationLine) [][]events.ReservationLine {
	var out [][]events.ReservationLine
	for i, l := range lines {
		if i == 0 || lines[i-1].TaskID != l.TaskID {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], l)
	}
	return out
}

// spend charges a cost to the task and every ancestor.
func (s *State) spend(tenant events.Tenant, id events.TaskID, cost, overrun events.Amounts) {
	for _, task := range s.ancestry(tenant, id) {
		s.changeTask(tenant, task.ID, func(t *Task) {
			for u, amount := range cost {
				a := t.Accounts[u]
				a.Spent = saturated(a.Spent + amount)
				a.Overrun = saturated(a.Overrun + overrun[u])
				t.Accounts[u] = a
			}
		})
	}
}

// saturated keeps a sum an amount: services may state any cost, again and again,
// and an account that wraps around would be free again.
func saturated(sum int64) int64 { return min(sum, events.MaxAmount) }

// changeTask replaces the record of a task by a changed copy.
func (s *State) changeTask(tenant events.Tenant, id events.TaskID, f func(*Task)) {
	old := s.Task(tenant, id)
	if old == nil {
		return
	}
	t := old.clone()
	f(t)
	s.tasks.Set(taskKey(tenant, id), t)
	s.touch(KindTask, taskKey(tenant, id))
}

func sortedUnits(a events.Amounts) []events.Unit { return slices.Sorted(maps.Keys(a)) }
