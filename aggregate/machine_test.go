package aggregate_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/rehearsal"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
	"pgregory.net/rapid"
)

// TestLawHoldsUnderRandomCommands does random commands and holds every state and
// every decision against A1 to A8.
func TestLawHoldsUnderRandomCommands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := rehearsal.Walker{World: rehearsal.New()}
		w.Pick = picks(t)
		w.Calm = w.Pick(4) > 0
		once, stored := newOnce(), map[aggregate.Key]string{}
		store(w.State, keysOf(w.State), stored)
		for range 20 + w.Pick(250) {
			before, known := w.State, len(w.Entries)
			digest := before.Digest()
			commands, decisions := w.Step()
			if before.Digest() != digest {
				t.Fatal("a branch changed its origin")
			}
			for _, fault := range w.State.Check() {
				t.Fatal(fault)
			}
			for _, e := range w.Entries[known:] {
				once.entry(t, &e)
				store(w.State, w.Touched, stored)
			}
			for i, d := range decisions {
				wellFormed(t, w.State, d)
				if most := aggregate.MostEvents(commands[i]); len(d.Events) > most {
					t.Fatalf("%T led to %d events, most is %d", commands[i], len(d.Events), most)
				}
			}
		}
		all := map[aggregate.Key]string{}
		store(w.State, keysOf(w.State), all)
		if !reflect.DeepEqual(all, stored) {
			t.Fatal("the touched records are not the changed ones")
		}
		sameFold(t, w.World, rapid.IntRange(0, len(w.Entries)).Draw(t, "cut"))
		sameRecords(t, w.State)
	})
}

// TestDecisionsAreEqual decides every command of a walk twice, on two branches.
func TestDecisionsAreEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := rehearsal.Walker{World: rehearsal.New()}
		w.Pick = picks(t)
		for range 20 + w.Pick(60) {
			w.Step()
		}
		c := w.Random()
		in := aggregate.Input{At: w.At, Seq: w.State.Seq() + 1, Index: 3}
		a, b := w.State.Branch(), w.State.Branch()
		if x, y := a.Decide(c, in), b.Decide(c, in); !reflect.DeepEqual(x, y) {
			t.Fatalf("%T: %+v and %+v", c, x, y)
		}
		if a.Digest() != b.Digest() {
			t.Fatal("equal decisions left different states")
		}
	})
}

func keysOf(s *aggregate.State) (keys []aggregate.Key) {
	s.EachRecord(func(k aggregate.Key, _ []byte) { keys = append(keys, k) })
	return keys
}

// store keeps records as a projection does: those of keys, or none if the state
// does not hold them any more.
func store(s *aggregate.State, keys []aggregate.Key, into map[aggregate.Key]string) {
	for _, k := range keys {
		if b, ok := s.Record(k); ok {
			into[k] = string(b)
		} else {
			delete(into, k)
		}
	}
}

// picks spreads rapid's draws, which favour small numbers, evenly: a walk that
// mostly does its first kind of command never gets far.
func picks(t *rapid.T) func(n int) int {
	seed, drawn := rapid.Uint64().Draw(t, "seed"), uint64(0)
	return func(n int) int {
		drawn++
		x := (seed ^ drawn*0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>29) * 0x94d049bb133111eb
		return int((x ^ x>>32) % uint64(n))
	}
}

// once is A2, A3 and A4 over the log alone.
type once struct {
	seen map[string]bool
	ids  map[events.EventID]bool
}

func newOnce() *once { return &once{seen: map[string]bool{}, ids: map[events.EventID]bool{}} }

func (o *once) entry(t *rapid.T, e *events.Stored) {
	for i := range e.Events {
		ev := &e.Events[i]
		if o.ids[ev.ID] {
			t.Fatalf("event id %s twice", ev.ID)
		}
		o.ids[ev.ID] = true
		switch ev.Data.(type) {
		case events.Prepared:
			o.first(t, fmt.Sprintf("causal %s %s %s", ev.Tenant, ev.RunID, ev.CausalID))
			o.first(t, fmt.Sprintf("prepared %s", ev.EffectID))
		case events.Permitted, events.Admitted, events.Dispatched, events.Unknown, events.Refused, events.Settled:
			o.first(t, fmt.Sprintf("%s %s", ev.Type, ev.EffectID))
		case events.RunFinished, events.RunCancelled:
			o.first(t, fmt.Sprintf("%s %s %s", ev.Type, ev.Tenant, ev.RunID))
		case events.TaskOpened, events.TaskClosed:
			o.first(t, fmt.Sprintf("%s %s %s", ev.Type, ev.Tenant, ev.TaskID))
		}
	}
	opened, err := events.Open(e.Body)
	if err != nil || !reflect.DeepEqual(events.CanonicalOf(opened.Entry), events.CanonicalOf(e.Entry)) {
		t.Fatalf("entry %d does not read back: %v", e.Seq, err)
	}
}

func (o *once) first(t *rapid.T, what string) {
	if o.seen[what] {
		t.Fatalf("%s twice", what)
	}
	o.seen[what] = true
}

// wellFormed holds what every decision promises, and that every view can be made.
func wellFormed(t *rapid.T, s *aggregate.State, d aggregate.Decision) {
	if len(d.Events) != len(d.Encoded) {
		t.Fatal("not every event is encoded")
	}
	if d.Refusal != nil && d.Refusal.Code.Status() == 500 {
		t.Fatalf("refused with %q, which is no code", d.Refusal.Code)
	}
	e := s.Effect(d.EffectID)
	if e == nil {
		return
	}
	v := s.View(e, e.UpdatedAt)
	events.CanonicalOf(v)
	if (v.State == wire.StateSettled) != (v.Outcome != "") {
		t.Fatalf("state %s with outcome %q", v.State, v.Outcome)
	}
	for _, l := range v.Reservation {
		if l.Amount < 0 {
			t.Fatalf("negative reservation %+v", l)
		}
	}
	for task := s.Task(e.Tenant, e.TaskID()); task != nil; task = s.Task(task.Tenant, task.Parent) {
		for u, b := range s.TaskView(task).Budgets {
			if b.Available < 0 || b.Unknown > b.Reserved || b.Reserved < 0 || b.Spent < 0 || b.Spent > events.MaxAmount {
				t.Fatalf("task %s unit %s: impossible budget %+v", task.ID, u, b)
			}
		}
	}
}

// sameFold: Fold(prefix) + suffix == Fold(all) == what was decided (A8).
func sameFold(t *rapid.T, w *rehearsal.World, cut int) {
	prefix := aggregate.New()
	for i := range w.Entries[:cut] {
		prefix.Apply(&w.Entries[i])
	}
	resumed := restored(t, prefix)
	for i := cut; i < len(w.Entries); i++ {
		if err := aggregate.Follows(prefix, &w.Entries[i]); err != nil {
			t.Fatal(err)
		}
		prefix.Apply(&w.Entries[i])
		resumed.Apply(&w.Entries[i])
	}
	if prefix.Digest() != w.State.Digest() {
		t.Fatal("the fold differs from what was decided")
	}
	if resumed.Digest() != w.State.Digest() {
		t.Fatal("the fold from stored records differs")
	}
}

// sameRecords: a state restored from its records is the state (A8), and decides
// alike: the derived indexes are the same too.
func sameRecords(t *rapid.T, s *aggregate.State) {
	back := restored(t, s)
	if back.Digest() != s.Digest() {
		t.Fatal("the restored state differs")
	}
	if back.NextDue() != s.NextDue() || !reflect.DeepEqual(back.Orphans(), s.Orphans()) {
		t.Fatal("the restored state has other work to do")
	}
	in := aggregate.Input{At: s.Head().Time + 1, Seq: s.Seq() + 1}
	sweep := aggregate.Sweep{Limit: 100, Recheck: true}
	if a, b := s.Branch().Decide(sweep, in), back.Decide(sweep, in); !reflect.DeepEqual(a, b) {
		t.Fatalf("the restored state decides otherwise:\n%+v\n%+v", a, b)
	}
}

func restored(t *rapid.T, s *aggregate.State) *aggregate.State {
	back := aggregate.New()
	s.EachRecord(func(k aggregate.Key, b []byte) {
		if err := back.Load(k, b); err != nil {
			t.Fatal(err)
		}
	})
	return back
}
