package dispatcher

import (
	"slices"
	"testing"

	"github.com/effectd/effectd/events"
)

// lineUp is a work set that keeps what it starts running.
func lineUp() (w *work, started *[]events.EffectID) {
	started = new([]events.EffectID)
	return newWork(func(t task) { *started = append(*started, t.id) }), started
}

// Each operation has its own slots: one that is slow holds up no other, a free slot
// goes to who waits longest, and an effect that comes again is the same (D6, D2).
func TestSlots(t *testing.T) {
	w, started := lineUp()
	slow := func(id events.EffectID) task { return task{id: id, operation: "slow", slots: 2} }
	quick := task{id: "quick", operation: "quick", slots: 1}
	for _, id := range []events.EffectID{"1", "2", "3", "4", "1", "3"} {
		w.add(slow(id))
	}
	w.add(quick)
	w.add(quick)
	want := func(ids ...events.EffectID) {
		t.Helper()
		if !slices.Equal(*started, ids) {
			t.Fatalf("started %v, want %v", *started, ids)
		}
	}
	want("1", "2", "quick")
	w.done(slow("2"))
	want("1", "2", "quick", "3")
	w.done(slow("1"))
	w.done(quick)
	want("1", "2", "quick", "3", "4")
	w.add(slow("2")) // it is over: what is asked again then is asked again
	w.done(slow("3"))
	want("1", "2", "quick", "3", "4", "2")
}

// What is held gives no slots any more, whatever comes and ends (D7).
func TestHeldWork(t *testing.T) {
	w, started := lineUp()
	first := task{id: "1", operation: "o", slots: 1}
	w.add(first)
	w.add(task{id: "2", operation: "o", slots: 1})
	w.hold()
	w.done(first)
	w.add(task{id: "3", operation: "other", slots: 1})
	if len(*started) != 1 {
		t.Fatalf("started %v after the hold", *started)
	}
}
