package projector

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"
	"github.com/effectd/effectd/aggregate"
)

// snapshot is a state and its rows (P4). It is used inside
// [Projection.snapshot] alone.
type snapshot struct {
	state *aggregate.State
	rows  *pebble.Snapshot
}

// snapshot gives f the state that is shown, or a later one, and its rows.
func (p *Projection) snapshot(f func(snapshot) error) error {
	return p.read(func(db *pebble.DB) (err error) {
		s, err := p.freeze(db)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.rows.Close()) }()
		return f(s)
	})
}

// freeze stores what is not stored yet: then the rows are those of the state.
func (p *Projection) freeze(db *pebble.DB) (snapshot, error) {
	p.storing.Lock()
	defer p.storing.Unlock()
	if err := p.storeNext(db); err != nil {
		return snapshot{}, err
	}
	return snapshot{state: p.stored, rows: db.NewSnapshot()}, nil
}
