package embedded_test

import (
	"testing"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// The way of one effect, and that a repeat after a restart does nothing again.
func TestChargeSettles(t *testing.T) {
	s := newService(t)
	r := running(t, s)
	e := r.submit("r", "c")
	settledAs(t, e, events.OutcomeSucceeded)
	if e.Repeat || e.Receipt == nil || e.Permit.State != wire.PermitConsumed || e.Means != events.MeansCompleted {
		t.Fatal(show(e))
	}
	r.account(0, 5, 0)
	r.restart()
	if again := r.submit("r", "c"); again.EffectID != e.EffectID || !again.Repeat {
		t.Fatal(show(again))
	}
	s.served(t, 1)
}
