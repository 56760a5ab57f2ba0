package aggregate

import (
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// MaxTaskDepth is the longest chain from a task to its root, both included.
const MaxTaskDepth = 16

// DefaultEffects is the budget of unit "effects" where a task names none.
const DefaultEffects = 1000

// UnitEffects counts admissions.
const UnitEffects events.Unit = "effects"

// Task is the live record of one node of a task tree.
type Task struct {
	Tenant    events.Tenant           `json:"tenant"`
	ID        events.TaskID           `json:"id"`
	Parent    events.TaskID           `json:"parent,omitzero"`
	OpenedBy  events.Actor            `json:"opened_by"`
	Holders   []events.Actor          `json:"holders"`
	ExpiresAt events.Instant          `json:"expires_at"`
	Exposure  events.Amounts          `json:"exposure,omitempty"`
	Accounts  map[events.Unit]Account `json:"accounts"`
	Closed    *wire.TaskClosure       `json:"closed,omitzero"`
	Position  events.Position         `json:"position"`
	Depth     int                     `json:"depth"`
}

// Account is the budget of one unit. Reserved includes Unknown, the part that
// unknown effects hold. Overrun is the part of Spent that no reservation
// covered.
type Account struct {
	Max      int64 `json:"max"`
	Reserved int64 `json:"reserved"`
	Spent    int64 `json:"spent"`
	Unknown  int64 `json:"unknown"`
	Overrun  int64 `json:"overrun,omitzero"`
}

// free is what can still be reserved; negative after an overrun.
func (a Account) free() int64 { return a.Max - a.Reserved - a.Spent }

// Holds reports whether a principal may use the task.
func (t *Task) Holds(a events.Actor) bool {
	for _, h := range t.Holders {
		if h == a {
			return true
		}
	}
	return false
}

// clone returns a record that may be changed.
func (t *Task) clone() *Task {
	c := *t
	c.Accounts = make(map[events.Unit]Account, len(t.Accounts))
	for u, a := range t.Accounts {
		c.Accounts[u] = a
	}
	return &c
}

// Under reports whether a task is another one or a descendant of it.
func (s *State) Under(t *Task, id events.TaskID) bool {
	for _, a := range s.ancestry(t.Tenant, t.ID) {
		if a.ID == id {
			return true
		}
	}
	return false
}

// ancestry returns the task and its ancestors, the task first; nil if the task
// does not exist.
func (s *State) ancestry(tenant events.Tenant, id events.TaskID) []*Task {
	var out []*Task
	for id != "" && len(out) <= MaxTaskDepth {
		t := s.Task(tenant, id)
		if t == nil {
			return nil
		}
		out = append(out, t)
		id = t.Parent
	}
	return out
}
