package projector

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
	"github.com/go-json-experiment/json"
)

// snapshot is the state and the store at one position (P4). It is used inside
// [Projection.read] alone.
type snapshot struct {
	state *aggregate.State
	rows  *pebble.Snapshot
}

// snapshot gives f both at one position. A batch is in the store a moment before
// its state is shown: then it waits for that moment.
func (p *Projection) snapshot(ctx context.Context, f func(snapshot) error) error {
	for {
		var ahead uint64
		err := p.read(func(db *pebble.DB) (err error) {
			s := snapshot{state: p.State(), rows: db.NewSnapshot()}
			defer func() { err = errors.Join(err, s.rows.Close()) }()
			stored, err := storedSeq(s.rows)
			if err != nil {
				return err
			}
			if stored != s.state.Seq() {
				ahead = stored
				return nil
			}
			return f(s)
		})
		if err != nil || ahead == 0 {
			return err
		}
		if err := p.AwaitPosition(ctx, events.Position{Seq: ahead}); err != nil {
			return err
		}
	}
}

// storedSeq is the position of a store, 0 for an empty one.
func storedSeq(rows pebble.Reader) (uint64, error) {
	value, err := get(rows, recordKey(aggregate.Key{Kind: aggregate.KindHead}))
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, nil
	}
	var head struct {
		Seq uint64 `json:"seq"`
	}
	if err == nil {
		err = json.Unmarshal(value, &head)
	}
	if err != nil {
		return 0, fmt.Errorf("read head: %w", err)
	}
	return head.Seq, nil
}
