package ledger

import (
	"sync"
	"time"

	"github.com/effectd/effectd/events"
)

// Reading is one look at the clocks of the machine.
type Reading struct {
	Wall events.Instant // the wall clock
	Mono time.Duration  // monotonic time since some fixed moment
}

// MaxClockStep is how far the wall clock may step against the monotonic clock, or
// the last entry may lie in the future at start, before writes stop.
const MaxClockStep = 5 * time.Second

// clock gives ledger time: max(wall clock, time of the last entry + monotonic
// time since). It is safe for concurrent use.
type clock struct {
	read func() Reading

	mu      sync.Mutex
	good    Reading // the last reading that was trusted
	base    Reading // when the last entry was written, in ledger time
	trusted bool
}

// newClock starts from the time of the last entry; zero if there is none.
func newClock(read func() Reading, last events.Instant) *clock {
	now := read()
	c := &clock{read: read, good: now, base: Reading{Wall: last, Mono: now.Mono}, trusted: true}
	if last.Sub(now.Wall) > MaxClockStep {
		// Until the wall clock passes the last entry, it is behind by more than a step.
		c.trusted, c.good = false, Reading{Wall: last, Mono: now.Mono}
	}
	return c
}

// now is ledger time, and whether the wall clock is trusted.
func (c *clock) now() (events.Instant, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.read()
	expected := c.good.Wall.Add(r.Mono - c.good.Mono)
	step := r.Wall.Sub(expected)
	if c.trusted = -MaxClockStep <= step && step <= MaxClockStep; c.trusted {
		c.good = r
	}
	return max(r.Wall, c.base.Wall.Add(r.Mono-c.base.Mono)), c.trusted
}

// wrote records the ledger time of an entry.
func (c *clock) wrote(at events.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at > c.base.Wall {
		c.base = Reading{Wall: at, Mono: c.read().Mono}
	}
}

// confirm trusts the wall clock as it stands.
func (c *clock) confirm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.good, c.trusted = c.read(), true
}
