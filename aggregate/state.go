package aggregate

import (
	"fmt"

	"github.com/effectd/effectd/events"
	"github.com/tidwall/btree"
)

// State is the live state after entry Seq. It is not safe for concurrent use;
// [State.Branch] gives an independent one.
type State struct {
	head     Head
	law      *law // immutable; replaced when the log changes it
	tasks    *btree.Map[string, *Task]
	effects  *btree.Map[string, *Effect]
	causal   *btree.Map[string, *Causal]
	runs     *btree.Map[string, *Run]
	due      *btree.Map[string, events.EffectID] // (instant, effect): when the ledger itself must act
	open     *btree.Map[string, events.EffectID] // effects before their claim: what a change of law can end
	prepared *btree.Map[string, int64]           // live prepared effects per principal
	holding  int                                 // effects that hold a reservation
	touched  map[Key]struct{}                    // records changed since Branch
}

// Head is what the ledger is and how far the state has come.
type Head struct {
	Seq         uint64          `json:"seq"`
	SHA256      events.Digest   `json:"sha256"` // of entry Seq
	LedgerID    events.LedgerID `json:"ledger_id"`
	Fingerprint events.Digest   `json:"fingerprint"`
	Time        events.Instant  `json:"time"` // of entry Seq
	Limits      events.Limits   `json:"limits"`
	// Nodes holds the last life of each node that opened the ledger. A claim of an
	// earlier one has provably ended (one process per node).
	Nodes map[string]Life `json:"nodes"`
	// Retractions counts the events that can end effects before their claim:
	// closed tasks, cancelled runs, changed policies, retired operations.
	Retractions int64 `json:"retractions"`
	LiveBytes   int64 `json:"live_bytes"` // encoded records of the live effects
	// Positions of the last event, to name the position of a reply.
	Last events.Position `json:"last"`
}

// Life is one life of a node's process, and since when it has the ledger.
type Life struct {
	Incarnation events.Incarnation `json:"incarnation"`
	Since       events.Instant     `json:"since"`
}

// New is the state before the first entry.
func New() *State {
	return &State{
		head:     Head{SHA256: events.ZeroDigest, Nodes: map[string]Life{}},
		law:      &law{users: map[events.Actor]events.User{}, versions: map[events.OperationName][]*Operation{}},
		tasks:    btree.NewMap[string, *Task](32),
		effects:  btree.NewMap[string, *Effect](32),
		causal:   btree.NewMap[string, *Causal](32),
		runs:     btree.NewMap[string, *Run](32),
		due:      btree.NewMap[string, events.EffectID](32),
		open:     btree.NewMap[string, events.EffectID](32),
		prepared: btree.NewMap[string, int64](32),
		touched:  map[Key]struct{}{},
	}
}

// Branch returns a state that starts equal and changes independently, in
// constant time. The origin may be read, and branched again, but should not
// change while branches of it are in use by other goroutines.
func (s *State) Branch() *State {
	b := *s
	b.tasks, b.effects, b.causal, b.runs = s.tasks.Copy(), s.effects.Copy(), s.causal.Copy(), s.runs.Copy()
	b.due, b.open, b.prepared = s.due.Copy(), s.open.Copy(), s.prepared.Copy()
	b.touched = map[Key]struct{}{}
	return &b
}

// Head returns what the ledger is and how far the state has come.
func (s *State) Head() Head { return s.head }

// Seq is the sequence of the last entry applied.
func (s *State) Seq() uint64 { return s.head.Seq }

// Effect returns the record of an effect; nil if there is none. The record is
// shared: never change it.
func (s *State) Effect(id events.EffectID) *Effect {
	e, _ := s.effects.Get(string(id))
	return e
}

// Task returns the record of a task; nil if there is none. Never change it.
func (s *State) Task(tenant events.Tenant, id events.TaskID) *Task {
	t, _ := s.tasks.Get(taskKey(tenant, id))
	return t
}

// Run returns the record of a run; nil if there is none. Never change it.
func (s *State) Run(tenant events.Tenant, id events.RunID) *Run {
	r, _ := s.runs.Get(runKey(tenant, id))
	return r
}

// Causal returns what (tenant, run_id, causal_id) names; nil if nothing.
func (s *State) Causal(tenant events.Tenant, run events.RunID, causal events.CausalID) *Causal {
	c, _ := s.causal.Get(causalKey(tenant, run, causal))
	return c
}

// EachEffect calls f for every live effect in the order of their ids until f
// returns false.
func (s *State) EachEffect(f func(*Effect) bool) {
	s.effects.Scan(func(_ string, e *Effect) bool { return f(e) })
}

// EachTask calls f for every task until f returns false.
func (s *State) EachTask(f func(*Task) bool) {
	s.tasks.Scan(func(_ string, t *Task) bool { return f(t) })
}

// TasksAfter calls f for the tasks of a tenant in the order of their ids, behind
// one of them, until f returns false.
func (s *State) TasksAfter(tenant events.Tenant, id events.TaskID, f func(*Task) bool) {
	s.tasks.Ascend(taskKey(tenant, id), func(_ string, t *Task) bool {
		return t.Tenant == tenant && (t.ID == id || f(t))
	})
}

// Holding is the number of effects that hold a reservation: admitted, dispatched
// and unknown ones.
func (s *State) Holding() int { return s.holding }

// Open is the number of effects before their claim.
func (s *State) Open() int { return s.open.Len() }

// EffectCount is the number of live effect records.
func (s *State) EffectCount() int { return s.effects.Len() }

// Keys of the maps. NUL cannot stand in an identifier, so no two names collide.

func taskKey(t events.Tenant, id events.TaskID) string { return string(t) + "\x00" + string(id) }
func runKey(t events.Tenant, id events.RunID) string   { return string(t) + "\x00" + string(id) }

func causalKey(t events.Tenant, run events.RunID, causal events.CausalID) string {
	return string(t) + "\x00" + string(run) + "\x00" + string(causal)
}

// CausalOf finds what names an effect that may have left the live state; nil if
// nothing does. It scans: only for what is not in the live state.
func (s *State) CausalOf(id events.EffectID) *Causal {
	var found *Causal
	s.causal.Scan(func(_ string, c *Causal) bool {
		if c.EffectID == id {
			found = c
		}
		return found == nil
	})
	return found
}

// Follows checks that an entry is the next one of this state's log.
func Follows(s *State, e *events.Stored) error {
	switch {
	case e.Seq != s.head.Seq+1:
		return fmt.Errorf("entry %d does not follow entry %d", e.Seq, s.head.Seq)
	case e.Prev != s.head.SHA256:
		return fmt.Errorf("entry %d does not chain to entry %d", e.Seq, s.head.Seq)
	case s.head.LedgerID != "" && e.LedgerID != s.head.LedgerID:
		return fmt.Errorf("entry %d belongs to another ledger", e.Seq)
	}
	return nil
}

// MostEvents is the most events that a command leads to.
func MostEvents(c Command) int {
	if sweep, ok := c.(Sweep); ok {
		return 2*sweep.Limit + 1
	}
	return 4
}
