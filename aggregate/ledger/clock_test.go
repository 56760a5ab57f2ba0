package ledger

import (
	"testing"
	"time"

	"github.com/effectd/effectd/events"
)

// Ledger time is the wall clock, and never less than the time of the last entry and
// what has passed since: a wall clock that was set back a little stops no expiry (W5).
func TestLedgerTimeGoesOn(t *testing.T) {
	r := Reading{Wall: start, Mono: time.Hour}
	c := newClock(func() Reading { return r }, start.Add(-time.Minute))
	want := func(at events.Instant) {
		t.Helper()
		if got, trusted := c.now(); got != at || !trusted {
			t.Fatalf("%s, trusted %v, want %s", got, trusted, at)
		}
	}
	want(start)
	c.wrote(start)
	r.Wall -= events.Instant(4 * time.Second)
	want(start)
	r.Wall, r.Mono = r.Wall.Add(3*time.Second), r.Mono+3*time.Second
	want(start.Add(3 * time.Second))
	r.Wall, r.Mono = r.Wall.Add(8*time.Second), r.Mono+4*time.Second
	want(start.Add(7 * time.Second))
	c.wrote(start.Add(time.Second)) // of an earlier entry
	want(start.Add(7 * time.Second))
	c.wrote(start.Add(9 * time.Second)) // another writer's
	want(start.Add(9 * time.Second))
}
