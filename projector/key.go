package projector

import (
	"encoding/binary"
	"errors"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// format is the version of the key space and of what its rows hold. Another one
// is not read but rebuilt.
const format = "1"

// The tables beside the records of the state.
const (
	tableFormat      byte = 'V'
	tableCreated     byte = 'C'
	tableState       byte = 'S'
	tableOperation   byte = 'O'
	tableTask        byte = 'T'
	tablePosition    byte = 'P'
	tableName        byte = 'N'
	tableNamed       byte = 'B'
	tableIntent      byte = 'I'
	tableIdempotency byte = 'K'
)

// listTables hold the live effects, one row each.
var listTables = [...]byte{tableCreated, tableState, tableOperation, tableTask}

// keyOf joins names behind their lengths.
func keyOf(table byte, names ...string) []byte {
	size := 1
	for _, n := range names {
		size += len(n) + 2
	}
	key := append(make([]byte, 0, size+32), table)
	for _, n := range names {
		key = binary.AppendUvarint(key, uint64(len(n)))
		key = append(key, n...)
	}
	return key
}

var errName = errors.New("a key or value has a malformed name")

// cutName takes one name off the front.
func cutName(b []byte) (name string, rest []byte, err error) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return "", nil, errName
	}
	return string(b[size : size+int(n)]), b[size+int(n):], nil
}

// effectOf reads the effect of a row of a list table behind the table's byte.
func effectOf(table byte, rest []byte) (events.EffectID, error) {
	names := 2
	if table == tableCreated {
		names = 1
	}
	var err error
	for range names {
		if _, rest, err = cutName(rest); err != nil {
			return "", err
		}
	}
	return events.EffectID(rest), nil
}

func formatKey() []byte { return []byte{tableFormat} }

func recordKey(k aggregate.Key) []byte {
	return append(append(make([]byte, 0, 1+len(k.ID)), byte(k.Kind)), k.ID...)
}

func createdPrefix(t events.Tenant) []byte { return keyOf(tableCreated, string(t)) }

func statePrefix(t events.Tenant, s wire.State) []byte {
	return keyOf(tableState, string(t), string(s))
}

func operationPrefix(t events.Tenant, o events.OperationName) []byte {
	return keyOf(tableOperation, string(t), string(o))
}

func taskPrefix(t events.Tenant, id events.TaskID) []byte {
	return keyOf(tableTask, string(t), string(id))
}

func positionPrefix(id events.EffectID) []byte { return keyOf(tablePosition, string(id)) }

func positionKey(id events.EffectID, p events.Position) []byte {
	key := binary.BigEndian.AppendUint64(positionPrefix(id), p.Seq)
	return binary.BigEndian.AppendUint32(key, uint32(p.Index))
}

// positionOf reads what follows a [positionPrefix].
func positionOf(rest []byte) (events.Position, error) {
	if len(rest) != 12 {
		return events.Position{}, errName
	}
	return events.Position{Seq: binary.BigEndian.Uint64(rest), Index: int(binary.BigEndian.Uint32(rest[8:]))}, nil
}

func nameKey(n Name) []byte {
	return keyOf(tableName, string(n.Tenant), string(n.RunID), string(n.CausalID))
}

func namedKey(id events.EffectID) []byte { return keyOf(tableNamed, string(id)) }

func intentKey(d events.Digest) []byte { return keyOf(tableIntent, string(d)) }

func idempotencyKey(k events.IdempotencyKey) []byte { return keyOf(tableIdempotency, string(k)) }

// after is the first key behind every key with the prefix.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}
