package bench

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/events/wire"
)

// shape is what the ledger wrote and answered for one effect: the bare pipeline
// writes and answers the same for each.
type shape struct {
	submitted []events.Event // prepared, permitted, admitted: decided together
	claimed   []events.Event
	settled   []events.Event
	reply     events.Raw
}

// learn submits one effect to a ledger and reads what became of it.
func learn(ctx context.Context, r *real) (shape, error) {
	one := load{wait: wire.WaitTerminal, name: "learn"}
	effect, err := r.producers[0].Submit(ctx, one.request(0, 0))
	if err == nil {
		err = one.check(&effect)
	}
	if err != nil {
		return shape{}, err
	}
	entries, err := r.entriesOf(ctx, effect.EffectID)
	if err != nil {
		return shape{}, err
	}
	if len(entries) != 3 || len(entries[0]) != 3 || len(entries[1]) != 1 || len(entries[2]) != 1 {
		return shape{}, fmt.Errorf("a settled effect is not 5 events in 3 entries: %d entries", len(entries))
	}
	// As the client decodes it: encoded again it has the members of the real reply.
	return shape{entries[0], entries[1], entries[2], events.CanonicalOf(effect)}, nil
}

// entriesOf reads the events of an effect from the log, entry by entry.
func (r *real) entriesOf(ctx context.Context, id events.EffectID) (found [][]events.Event, err error) {
	ready := r.node.Ready()
	auditor, err := client.Dial(ready.NATSURL, filepath.Join(ready.Data, "keys", "auditor.nk"), home.DefaultTenant, "auditor")
	if err != nil {
		return nil, err
	}
	defer auditor.Close()
	js, err := jetstream.New(auditor.Conn())
	if err != nil {
		return nil, err
	}
	log, err := eventlog.Attach(ctx, js, eventlog.Config{LedgerID: events.LedgerID(ready.LedgerID)})
	if err != nil {
		return nil, err
	}
	entries, err := log.Read(ctx, 1, 256)
	for _, entry := range entries {
		var of []events.Event
		for _, ev := range entry.Events {
			if ev.EffectID == id {
				of = append(of, ev)
			}
		}
		if len(of) > 0 {
			found = append(found, of)
		}
	}
	return found, err
}
