package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
)

// shape is what the ledger wrote and answered for one effect: the bare pipeline
// writes and answers as many bytes.
type shape struct {
	submitted [3][]byte // prepared, permitted, admitted: decided together
	claimed   []byte
	result    []byte
	envelope  []byte // of an entry, without its events
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
	history, err := client.Call[wire.HistoryRequest, wire.History](ctx, r.operator, wire.EffectHistory, wire.HistoryRequest{EffectID: effect.EffectID})
	if err != nil {
		return shape{}, err
	}
	if len(history.Items) != 5 {
		return shape{}, fmt.Errorf("a settled effect has %d events, not 5", len(history.Items))
	}
	var s shape
	for i := range s.submitted {
		s.submitted[i] = history.Items[i].Event
	}
	s.claimed, s.result = history.Items[3].Event, history.Items[4].Event
	const id = "00000000000000000000000000"
	s.envelope = events.SealEncoded(events.Entry{V: events.Format, LedgerID: id, Seq: 1000, Prev: events.ZeroDigest,
		Time: events.InstantOf(time.Now()), Writer: id}, nil).Body
	// As the client decodes it: encoded again it has the members of the real reply.
	s.reply = events.CanonicalOf(effect)
	return s, nil
}

// A record stands for an event: as many bytes, of which the first are its kind,
// its length and the number of its effect.

type kind byte

const (
	filler kind = iota // prepared and permitted: nobody acts on them
	admit              // makes the consumer dispatch
	claim
	settle
)

const headSize = 1 + 4 + 8

func record(k kind, effect uint64, text []byte) []byte {
	b := append(make([]byte, 0, len(text)), text...)
	b[0] = byte(k)
	binary.LittleEndian.PutUint32(b[1:], uint32(len(text)))
	binary.LittleEndian.PutUint64(b[5:], effect)
	return b
}

// eachRecord calls f for the records of an entry, which has skip bytes before
// them and a separator behind each.
func eachRecord(entry []byte, skip int, f func(kind, uint64)) error {
	for rest := entry[skip:]; len(rest) > 0; {
		size := 0
		if len(rest) >= headSize {
			size = int(binary.LittleEndian.Uint32(rest[1:]))
		}
		if size < headSize || size >= len(rest) {
			return fmt.Errorf("a record of %d bytes among the last %d of an entry", size, len(rest))
		}
		f(kind(rest[0]), binary.LittleEndian.Uint64(rest[5:]))
		rest = rest[size+1:]
	}
	return nil
}
