package events

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ErrCorrupt is in the chain of every decoding error: the bytes are not an
// entry that this or an earlier version wrote. Never skip such an entry.
var ErrCorrupt = errors.New("corrupt entry")

// Stored is an entry together with the bytes that hold it.
type Stored struct {
	Entry
	Body   []byte // canonical JSON, as stored
	SHA256 Digest // of Body: the prev of the next entry
	Sizes  []int  // encoded bytes of each event
}

// Seal encodes an entry.
func Seal(e Entry) Stored {
	encoded := make([][]byte, len(e.Events))
	for i := range e.Events {
		encoded[i] = CanonicalOf(&e.Events[i])
	}
	return SealEncoded(e, encoded)
}

// SealEncoded is [Seal] for events that are encoded already, in their order.
func SealEncoded(e Entry, encoded [][]byte) Stored {
	size := 256
	for _, b := range encoded {
		size += len(b) + 1
	}
	// Members in canonical order: events, ledger_id, prev, seq, time, v, writer.
	body := append(make([]byte, 0, size), `{"events":[`...)
	sizes := make([]int, len(encoded))
	for i, b := range encoded {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, b...)
		sizes[i] = len(b)
	}
	body = appendText(append(body, `],"ledger_id":`...), string(e.LedgerID))
	body = appendText(append(body, `,"prev":`...), string(e.Prev))
	body = strconv.AppendUint(append(body, `,"seq":`...), e.Seq, 10)
	body = appendText(append(body, `,"time":`...), e.Time.String())
	body = strconv.AppendInt(append(body, `,"v":`...), int64(e.V), 10)
	body = appendText(append(body, `,"writer":`...), string(e.Writer))
	body = append(body, '}')
	return Stored{Entry: e, Body: body, SHA256: DigestBytes(body), Sizes: sizes}
}

// appendText appends a JSON string; invalid UTF-8 becomes U+FFFD.
func appendText(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s)
	return dst
}

// storedEvent is an event whose data waits for its type to be known.
type storedEvent struct {
	Event
	Data jsontext.Value `json:"data"`
}

// strict refuses unknown members. Duplicate ones need no check of their own:
// encoding what was decoded would not give the same bytes.
var strict = json.JoinOptions(json.RejectUnknownMembers(true), jsontext.AllowDuplicateNames(true))

// Open decodes stored bytes, which it keeps: they must not change any more. It
// fails, wrapping [ErrCorrupt], on anything that is not exactly what [Seal]
// writes: an unknown type, member or version, or bytes that are not in
// canonical form. Its errors carry no value of a payload.
func Open(body []byte) (Stored, error) {
	var raw struct {
		Events   []storedEvent `json:"events"`
		LedgerID LedgerID      `json:"ledger_id"`
		Prev     Digest        `json:"prev"`
		Seq      uint64        `json:"seq"`
		Time     Instant       `json:"time"`
		V        int           `json:"v"`
		Writer   Incarnation   `json:"writer"`
	}
	if err := json.Unmarshal(body, &raw, strict); err != nil {
		return Stored{}, corrupt(err)
	}
	if raw.V != Format {
		return Stored{}, fmt.Errorf("%w: unknown entry version %d", ErrCorrupt, raw.V)
	}
	if len(raw.Events) == 0 {
		return Stored{}, fmt.Errorf("%w: no events", ErrCorrupt)
	}
	e := Entry{V: raw.V, LedgerID: raw.LedgerID, Seq: raw.Seq, Prev: raw.Prev, Time: raw.Time, Writer: raw.Writer,
		Events: make([]Event, len(raw.Events))}
	encoded := make([][]byte, len(raw.Events))
	for i := range raw.Events {
		var err error
		if e.Events[i], err = raw.Events[i].open(); err == nil {
			encoded[i], err = appendCanonical(nil, &e.Events[i])
		}
		if err != nil {
			return Stored{}, fmt.Errorf("event %d: %w", i, corrupt(err))
		}
	}
	s := SealEncoded(e, encoded)
	if fault, _ := outOfBounds(body, math.MaxInt); fault != "" || !bytes.Equal(s.Body, body) {
		return Stored{}, fmt.Errorf("%w: not in canonical form", ErrCorrupt)
	}
	s.Body = body
	return s, nil
}

func (s *storedEvent) open() (Event, error) {
	if s.V != Format {
		return Event{}, fmt.Errorf("%w: unknown event version %d", ErrCorrupt, s.V)
	}
	decode, known := decoders[s.Type]
	if !known {
		return Event{}, fmt.Errorf("%w: unknown event type", ErrCorrupt)
	}
	e := s.Event
	var err error
	e.Data, err = decode(s.Data)
	return e, err
}

// corrupt wraps what the decoder says, without the value that it says it about.
func corrupt(err error) error {
	var semantic *json.SemanticError
	switch {
	case errors.Is(err, ErrCorrupt):
		return err
	case errors.Is(err, json.ErrUnknownName):
		return fmt.Errorf("%w: unknown member", ErrCorrupt)
	case errors.As(err, &semantic):
		return fmt.Errorf("%w: wrong value at %s", ErrCorrupt, semantic.JSONPointer)
	}
	return fmt.Errorf("%w: malformed JSON", ErrCorrupt)
}

// Types lists every event type with the zero value of its data.
func Types() []Data {
	return []Data{
		LedgerOpened{}, LedgerRecovered{}, OperationRegistered{}, OperationRetired{}, PolicyChanged{}, AccessChanged{},
		TaskOpened{}, TaskClosed{}, Prepared{}, Permitted{}, Refused{}, Admitted{}, Dispatched{}, Settled{}, Unknown{},
		ReconcileStarted{}, ReconcileEnded{}, Acknowledged{}, Contradicted{}, RunCancelled{}, RunFinished{}, Collected{},
	}
}

var decoders = map[Type]func(jsontext.Value) (Data, error){
	TypeLedgerOpened:        decodeAs[LedgerOpened],
	TypeLedgerRecovered:     decodeAs[LedgerRecovered],
	TypeOperationRegistered: decodeAs[OperationRegistered],
	TypeOperationRetired:    decodeAs[OperationRetired],
	TypePolicyChanged:       decodeAs[PolicyChanged],
	TypeAccessChanged:       decodeAs[AccessChanged],
	TypeTaskOpened:          decodeAs[TaskOpened],
	TypeTaskClosed:          decodeAs[TaskClosed],
	TypePrepared:            decodeAs[Prepared],
	TypePermitted:           decodeAs[Permitted],
	TypeRefused:             decodeAs[Refused],
	TypeAdmitted:            decodeAs[Admitted],
	TypeDispatched:          decodeAs[Dispatched],
	TypeSettled:             decodeAs[Settled],
	TypeUnknown:             decodeAs[Unknown],
	TypeReconcileStarted:    decodeAs[ReconcileStarted],
	TypeReconcileEnded:      decodeAs[ReconcileEnded],
	TypeAcknowledged:        decodeAs[Acknowledged],
	TypeContradicted:        decodeAs[Contradicted],
	TypeRunCancelled:        decodeAs[RunCancelled],
	TypeRunFinished:         decodeAs[RunFinished],
	TypeCollected:           decodeAs[Collected],
}

func decodeAs[T Data](b jsontext.Value) (Data, error) {
	var d T
	if len(b) == 0 {
		return d, fmt.Errorf("%w: no data", ErrCorrupt)
	}
	err := json.Unmarshal(b, &d, strict)
	return d, err
}
