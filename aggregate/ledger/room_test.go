package ledger

import (
	"fmt"
	"testing"

	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/events/wire"
)

// What one entry takes itself is counted while it is decided, and given back when
// it was not stored (W7).
func TestRoomOfATurn(t *testing.T) {
	w := newWriting(t, "o")
	before := w.Appended()
	room := Room{Free: spareBytes + entryBytes + 10<<10, Appended: before}
	w.cfg.Room = func() Room { return room }
	let := w.holds()
	const asked = 50
	for i := range asked {
		w.asks(t, "o", fmt.Sprint(i))
	}
	w.launches(t)
	refused := 0
	for _, o := range w.flying.outcomes {
		if o.Refusal != nil && o.Refusal.Code == wire.CapacityExhausted {
			refused++
		}
	}
	if refused == 0 || refused == asked {
		t.Fatalf("%d of %d are refused", refused, asked)
	}
	if w.Appended() <= before {
		t.Fatal("what is in flight takes no room")
	}
	let(eventlog.ErrUnavailable)
	w.lands(t)
	if w.Appended() != before {
		t.Fatalf("%d bytes are taken by what was not stored", w.Appended()-before)
	}
}
