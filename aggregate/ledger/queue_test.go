package ledger

import (
	"testing"

	"github.com/effectd/effectd/events"
)

// queued is a queue with a command of each of these, in this order.
func queued(t *testing.T, who ...events.Actor) *queue {
	t.Helper()
	q := newQueue()
	for _, w := range who {
		if !q.put(&pending{who: w}) {
			t.Fatal("the queue is closed")
		}
	}
	return q
}

// Principals take turns, however many commands one has waiting; the ledger's own
// commands go first (SPEC 12).
func TestTurns(t *testing.T) {
	q := queued(t, "a", "a", "a", "a", "b", "b", "c", events.SystemActor, "b", events.SystemActor)
	for i, want := range []events.Actor{events.SystemActor, events.SystemActor, "a", "b", "c", "a", "b", "a", "b", "a"} {
		if p := q.next(); p == nil || p.who != want {
			t.Fatalf("turn %d is of %+v, want %s", i, p, want)
		}
	}
	if q.next() != nil {
		t.Fatal("a command came twice")
	}
}

// Who left before its command was offered to the log is left out, and is told so;
// who leaves after that is not (W4).
func TestLeavers(t *testing.T) {
	q := queued(t, "a", "a", "a", "a")
	first := q.next()
	second := q.next()
	if !q.leave(second) || !q.left(second) {
		t.Fatal("nobody has taken it, and it cannot be left")
	}
	if q.take([]*pending{first, second}) || q.left(first) {
		t.Fatal("an entry with a command of who left is offered")
	}
	if !q.take([]*pending{first}) || q.leave(first) {
		t.Fatal("what is offered to the log can be left")
	}
	third := q.lines["a"][0]
	q.leave(third)
	if fourth := q.next(); fourth == nil || fourth == third {
		t.Fatal("who left has his turn")
	}
	if q.put(&pending{who: "b"}); len(q.close()) != 1 || q.put(&pending{who: "b"}) {
		t.Fatal("a closed queue takes commands, or keeps them")
	}
}
