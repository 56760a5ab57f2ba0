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

	mu   sync.Mutex
	good Reading // the last reading that was trusted
	// ahead is the time of the last entry when it lay in the future at start; zero
	// once the wall clock has come near it.
	ahead   events.Instant
	base    Reading // when the last entry was written, in ledger time
	trusted bool
}

// newClock starts from the time of the last entry; zero if there is none.
func newClock(read func() Reading, last events.Instant) *clock {
	now := read()
	c := &clock{read: read, good: now, base: Reading{Wall: last, Mono: now.Mono}, trusted: true}
	if last.Sub(now.Wall) > MaxClockStep {
		c.trusted, c.ahead = false, last
	}
	return c
}

// now is ledger time, and whether the wall clock is trusted.
func (c *clock) now() (events.Instant, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.read()
	c.observe(r)
	return max(r.Wall, c.base.Wall.Add(r.Mono-c.base.Mono)), c.trusted
}

// observe judges a reading: the wall clock must have moved like the monotonic one
// since the last reading that was trusted, and be near the last entry at least.
func (c *clock) observe(r Reading) {
	if c.ahead.Sub(r.Wall) <= MaxClockStep {
		c.ahead = 0
	}
	step := r.Wall.Sub(c.good.Wall.Add(r.Mono - c.good.Mono))
	steady := -MaxClockStep <= step && step <= MaxClockStep
	if steady {
		c.good = r
	}
	c.trusted = steady && c.ahead == 0
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
	c.good, c.ahead, c.trusted = c.read(), 0, true
}
