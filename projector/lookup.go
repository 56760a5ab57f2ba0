package projector

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"
	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
)

// EffectOfName is the effect that a run and causal id name; empty if none. It
// may have left the live state.
func (p *Projection) EffectOfName(n Name) (events.EffectID, error) { return p.effect(nameKey(n)) }

// EffectOfIntent is the effect whose admission fixed the intent; empty if none.
func (p *Projection) EffectOfIntent(d events.Digest) (events.EffectID, error) {
	return p.effect(intentKey(d))
}

// EffectOfIdempotencyKey is the effect that a key was derived from; empty if none.
func (p *Projection) EffectOfIdempotencyKey(k events.IdempotencyKey) (events.EffectID, error) {
	return p.effect(idempotencyKey(k))
}

func (p *Projection) effect(key []byte) (events.EffectID, error) {
	id, err := p.row(key)
	return events.EffectID(id), err
}

// NameOf is what the producer calls an effect; the zero Name if there is none.
// The effect may have left the live state.
func (p *Projection) NameOf(id events.EffectID) (Name, error) {
	value, err := p.row(namedKey(id))
	if err != nil || value == nil {
		return Name{}, err
	}
	return readName(value)
}

// row reads one row; nil if there is none.
func (p *Projection) row(key []byte) (value []byte, err error) {
	err = p.snapshot(func(s snapshot) error {
		value, err = get(s.rows, key)
		if errors.Is(err, pebble.ErrNotFound) {
			return nil
		}
		return err
	})
	return value, err
}

// Positions are the positions of the events that name an effect, in their order,
// behind the one given.
func (p *Projection) Positions(id events.EffectID, behind events.Position) ([]events.Position, error) {
	var out []events.Position
	err := p.snapshot(func(s snapshot) error {
		return scan(s.rows, positionPrefix(id), func(rest, _ []byte) error {
			at, err := positionOf(rest)
			if err == nil && behind.Less(at) {
				out = append(out, at)
			}
			return err
		})
	})
	return out, err
}

// collected is what remains in a state of an effect that left it; nil if the
// effect is live, or there is none. Without a store it looks at every name.
func (p *Projection) collected(s *aggregate.State, id events.EffectID) (*aggregate.Causal, error) {
	n, err := p.NameOf(id)
	switch {
	case errors.Is(err, ErrClosed):
		return nil, err
	case err != nil:
		return collected(s.CausalOf(id), id), nil //nolint:nilerr // without a store every name is looked at
	}
	return collected(s.Causal(n.Tenant, n.RunID, n.CausalID), id), nil
}

func collected(c *aggregate.Causal, id events.EffectID) *aggregate.Causal {
	if c == nil || !c.Collected || c.EffectID != id {
		return nil
	}
	return c
}
