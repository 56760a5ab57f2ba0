package aggregate

import (
	"fmt"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// Check recomputes A1, A5 and A6 from the effects and says every way in which
// the accounts of the tasks differ. Costs of collected effects are not in the
// effects any more, so spent amounts are checked while nothing was collected.
func (s *State) Check() []error {
	var faults []error
	want := map[string]map[events.Unit]Account{}
	collected := false
	s.causal.Scan(func(_ string, c *Causal) bool { collected = collected || c.Collected; return true })
	s.EachEffect(func(e *Effect) bool {
		s.expect(want, e)
		return true
	})
	s.EachTask(func(t *Task) bool {
		for u, got := range t.Accounts {
			expected := want[taskKey(t.Tenant, t.ID)][u]
			if got.Reserved != expected.Reserved || got.Unknown != expected.Unknown || !collected && got.Spent != expected.Spent {
				faults = append(faults, fmt.Errorf("task %s unit %s: account %+v, effects say %+v", t.ID, u, got, expected))
			}
			if got.Reserved < 0 || got.Unknown < 0 || got.Unknown > got.Reserved {
				faults = append(faults, fmt.Errorf("task %s unit %s: impossible account %+v", t.ID, u, got))
			}
			if got.Reserved+got.Spent-got.Overrun > got.Max {
				faults = append(faults, fmt.Errorf("task %s unit %s: reserved %d + spent %d exceed %d without overrun", t.ID, u, got.Reserved, got.Spent, got.Max))
			}
		}
		return true
	})
	return faults
}

// expect adds what one effect must hold and have spent in every task above it.
func (s *State) expect(want map[string]map[events.Unit]Account, e *Effect) {
	add := func(id events.TaskID, u events.Unit, f func(*Account)) {
		key := taskKey(e.Tenant, id)
		if want[key] == nil {
			want[key] = map[events.Unit]Account{}
		}
		a := want[key][u]
		f(&a)
		want[key][u] = a
	}
	if e.holds() {
		for _, l := range e.lines() {
			add(l.TaskID, l.Unit, func(a *Account) {
				a.Reserved += l.Amount
				if e.State == wire.StateUnknown {
					a.Unknown += l.Amount
				}
			})
		}
	}
	if e.Settled == nil {
		return
	}
	for _, t := range s.ancestry(e.Tenant, e.TaskID()) {
		for u, amount := range e.spent() {
			add(t.ID, u, func(a *Account) { a.Spent = saturated(a.Spent + amount) })
		}
	}
}
