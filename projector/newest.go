package projector

import (
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
)

// span is a part of a list table: the rows with a prefix whose effect id is at
// least from and below to; empty: no bound.
type span struct {
	prefix   []byte
	from, to string
}

func (s span) options() *pebble.IterOptions {
	o := &pebble.IterOptions{LowerBound: append(slices.Clone(s.prefix), s.from...), UpperBound: after(s.prefix)}
	if s.to != "" {
		o.UpperBound = append(slices.Clone(s.prefix), s.to...)
	}
	return o
}

// newest calls f with the effect ids of several spans, newest first, until f
// returns false.
func newest(rows pebble.Reader, spans []span, f func(events.EffectID) bool) (err error) {
	its := make([]*pebble.Iterator, 0, len(spans))
	defer func() {
		for _, it := range its {
			err = errors.Join(err, it.Error(), it.Close())
		}
	}()
	heads := make([]string, len(spans)) // the id each iterator stands on; empty at its end
	for i, s := range spans {
		it, err := rows.NewIter(s.options())
		if err != nil {
			return err
		}
		its = append(its, it)
		heads[i] = idAt(it, s.prefix, it.Last())
	}
	for {
		i, id := greatest(heads)
		if id == "" || !f(events.EffectID(id)) {
			return nil
		}
		heads[i] = idAt(its[i], spans[i].prefix, its[i].Prev())
	}
}

func idAt(it *pebble.Iterator, prefix []byte, valid bool) string {
	if !valid {
		return ""
	}
	return string(it.Key()[len(prefix):])
}

func greatest(ids []string) (at int, id string) {
	for i, s := range ids {
		if s > id {
			at, id = i, s
		}
	}
	return at, id
}

// newestLive is [newest] over all live effects of a state, for when there is no
// store.
func newestLive(s *aggregate.State, before events.EffectID, f func(events.EffectID) bool) {
	var ids []events.EffectID
	s.EachEffect(func(e *aggregate.Effect) bool {
		if before != "" && e.ID >= before {
			return false
		}
		ids = append(ids, e.ID)
		return true
	})
	for _, id := range slices.Backward(ids) {
		if !f(id) {
			return
		}
	}
}
