package dispatcher

import (
	"context"
	"strings"
	"testing"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/ledger"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// mistaken is a writer whose log has the claim of another nonce than the dispatcher
// proves.
type mistaken struct{ *ledger.Ledger }

func (m mistaken) Do(ctx context.Context, who events.Actor, c aggregate.Command) (ledger.Outcome, error) {
	if r, ok := c.(aggregate.Report); ok {
		r.Nonce = "another"
		c = r
	}
	return m.Ledger.Do(ctx, who, c)
}

// A result whose claim the log does not know is evidence all the same: it is kept for
// an operator, and settles nothing (D5).
func TestRefusedResultIsKept(t *testing.T) {
	b := newBench(t)
	b.decider = mistaken{b.ledger}
	_, stop := b.dispatches()
	id := b.submits("charge", "1")
	b.eventually("the result is kept", func() bool { return b.spool.Len() == 1 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	records, _, err := b.spool.All()
	if err != nil || len(records) != 1 || records[0].EffectID != id || records[0].Claim != b.effect(id).Claim.Position ||
		!strings.Contains(string(records[0].Result), `"succeeded"`) {
		t.Fatalf("%+v %v", records, err)
	}
	if state := b.effect(id).State; state != wire.StateDispatched {
		t.Fatal(state)
	}
	b.said("fired charge")
}
