package projector

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"
	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
)

// listRows are the rows of a live effect in the list tables, in their order;
// none for nil.
func listRows(e *aggregate.Effect) [len(listTables)][]byte {
	var rows [len(listTables)][]byte
	if e == nil {
		return rows
	}
	for i, prefix := range [...][]byte{
		createdPrefix(e.Tenant), statePrefix(e.Tenant, e.State), operationPrefix(e.Tenant, e.Operation()), taskPrefix(e.Tenant, e.TaskID()),
	} {
		rows[i] = append(prefix, e.ID...)
	}
	return rows
}

// moveRows replaces the list rows of an effect's old record by those of its new
// one.
func moveRows(b *pebble.Batch, old, now *aggregate.Effect) error {
	from, to := listRows(old), listRows(now)
	for i := range listTables {
		if bytes.Equal(from[i], to[i]) {
			continue
		}
		if from[i] != nil {
			if err := b.Delete(from[i], nil); err != nil {
				return err
			}
		}
		if to[i] != nil {
			if err := b.Set(to[i], nil, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeRecord stores a record that changed, or removes one that is gone.
func writeRecord(b *pebble.Batch, s *aggregate.State, k aggregate.Key) error {
	value, held := s.Record(k)
	if !held {
		return b.Delete(recordKey(k), nil)
	}
	return b.Set(recordKey(k), value, nil)
}

// writeEvent stores the rows that follow from an event alone.
func writeEvent(b *pebble.Batch, ev *events.Event, at events.Position) error {
	for _, id := range effectsOf(ev) {
		if err := b.Set(positionKey(id, at), nil, nil); err != nil {
			return err
		}
	}
	id := []byte(ev.EffectID)
	switch d := ev.Data.(type) {
	case events.Prepared:
		name := Name{ev.Tenant, d.Context.RunID, d.Context.CausalID}
		if err := b.Set(nameKey(name), id, nil); err != nil {
			return err
		}
		if err := b.Set(namedKey(ev.EffectID), name.value(), nil); err != nil {
			return err
		}
		return b.Set(idempotencyKey(d.Binding.IdempotencyKey), id, nil)
	case events.Admitted:
		return b.Set(intentKey(ev.IntentSHA256), id, nil)
	default: // gives no name to an effect
		return nil
	}
}

// effectsOf are the effects that an event names.
func effectsOf(ev *events.Event) []events.EffectID {
	if d, ok := ev.Data.(events.Collected); ok {
		return d.Effects
	}
	if ev.EffectID == "" {
		return nil
	}
	return []events.EffectID{ev.EffectID}
}
