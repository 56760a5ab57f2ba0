package embedded

import (
	"time"

	"github.com/effectd/effectd/aggregate/ledger"
	"github.com/effectd/effectd/events"
)

// started is the fixed moment of the monotonic readings.
var started = time.Now()

// now reads the clocks of the machine.
func now() ledger.Reading {
	t := time.Now()
	return ledger.Reading{Wall: events.InstantOf(t), Mono: t.Sub(started)}
}
