package projector

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/effectd/effectd/aggregate"
)

// load reads the state of a store, and makes an empty store one of this format.
// It reads every row, so that Pebble checks it, and accepts the store only if the
// records and the list rows agree (P6).
func load(db *pebble.DB) (*aggregate.State, error) {
	state, err := loadState(db)
	if err == nil && state != nil {
		err = check(db, state)
	}
	if err == nil {
		err = scan(db, nil, func(_, _ []byte) error { return nil })
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrRebuild, err)
	case state != nil:
		return state, nil
	}
	return aggregate.New(), db.Set(formatKey(), []byte(format), pebble.NoSync)
}

// loadState returns nil for an empty store.
func loadState(db *pebble.DB) (*aggregate.State, error) {
	empty, err := isEmpty(db)
	if err != nil || empty {
		return nil, err
	}
	found, err := get(db, formatKey())
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		return nil, errors.New("it has no format version")
	case err != nil:
		return nil, err
	case string(found) != format:
		return nil, errors.New("it has another format version")
	}
	state, records := aggregate.New(), 0
	for _, kind := range aggregate.Kinds() {
		err := scan(db, []byte{byte(kind)}, func(id, value []byte) error {
			records++
			return state.Load(aggregate.Key{Kind: kind, ID: string(id)}, value)
		})
		if err != nil {
			return nil, err
		}
	}
	if records > 0 && state.Seq() == 0 {
		return nil, errors.New("it has records without a position")
	}
	return state, nil
}

func isEmpty(db *pebble.DB) (bool, error) {
	it, err := db.NewIter(nil)
	if err != nil {
		return false, err
	}
	empty := !it.First()
	return empty, errors.Join(it.Error(), it.Close())
}

// check compares what the rows say about each other. Pebble's checksums find
// rows that changed; this finds rows that are not there.
func check(db pebble.Reader, s *aggregate.State) error {
	var size, rows int64
	whole := true
	s.EachEffect(func(e *aggregate.Effect) bool {
		size += e.Size
		whole = s.Task(e.Tenant, e.TaskID()) != nil && s.Run(e.Tenant, e.Prepared.Context.RunID) != nil
		return whole
	})
	switch {
	case !whole:
		return errors.New("task or run records are missing")
	case size != s.Head().LiveBytes:
		return errors.New("effect records are missing")
	}
	if faults := s.Check(); len(faults) > 0 {
		return fmt.Errorf("tasks and effects do not agree: %w", faults[0])
	}
	for i, table := range listTables {
		err := scan(db, []byte{table}, func(rest, _ []byte) error {
			rows++
			id, err := effectOf(table, rest)
			if err != nil {
				return err
			}
			if want := listRows(s.Effect(id))[i]; want == nil || !bytes.Equal(want[1:], rest) {
				return fmt.Errorf("table %c has a row that no effect accounts for", table)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if want := int64(s.EffectCount()) * int64(len(listTables)); rows != want {
		return fmt.Errorf("the list tables have %d rows instead of %d", rows, want)
	}
	return nil
}

// scan calls f for every row with the prefix, in order, with the rest of its key.
func scan(db pebble.Reader, prefix []byte, f func(rest, value []byte) error) error {
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		return err
	}
	for valid := it.First(); valid && err == nil; valid = it.Next() {
		var value []byte
		if value, err = it.ValueAndErr(); err == nil {
			err = f(it.Key()[len(prefix):], value)
		}
	}
	return errors.Join(err, it.Error(), it.Close())
}

// get returns a copy of one row; [pebble.ErrNotFound] if there is none.
func get(db pebble.Reader, key []byte) ([]byte, error) {
	value, closer, err := db.Get(key)
	if err != nil {
		return nil, err
	}
	out := bytes.Clone(value)
	return out, closer.Close()
}
