package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/oklog/ulid/v2"

	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/events/wire"
)

// stream is the log's stream with a publisher that has one message in flight. It
// is used by one goroutine.
type stream struct {
	js      jetstream.JetStream
	nc      *nats.Conn
	inbox   string
	replies chan *nats.Msg
	seq     uint64
}

// openStream makes the stream as a ledger's is made.
func openStream(ctx context.Context, nc *nats.Conn) (*stream, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	if _, err := js.CreateStream(ctx, eventlog.Config{MaxBytes: 64 << 30}.StreamConfig()); err != nil {
		return nil, fmt.Errorf("create the stream: %w", err)
	}
	s := &stream{js: js, nc: nc, inbox: nc.NewInbox(), replies: make(chan *nats.Msg, 1)}
	_, err = nc.ChanSubscribe(s.inbox, s.replies)
	return s, err
}

// ackWithin is when a publisher gives up.
const ackWithin = 30 * time.Second

// append publishes one message behind the last one and waits until it is durable.
func (s *stream) append(ctx context.Context, body []byte) error {
	err := s.nc.PublishMsg(&nats.Msg{Subject: wire.LogSubject, Reply: s.inbox, Data: body, Header: nats.Header{
		nats.MsgIdHdr:           {ulid.Make().String()},
		nats.ExpectedLastSeqHdr: {strconv.FormatUint(s.seq, 10)},
	}})
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	timer := time.NewTimer(ackWithin)
	defer timer.Stop()
	select {
	case m := <-s.replies:
		var ack struct {
			Seq   uint64 `json:"seq"`
			Error struct {
				Description string `json:"description"`
			} `json:"error"`
		}
		if err := json.Unmarshal(m.Data, &ack); err != nil || ack.Seq != s.seq+1 {
			return fmt.Errorf("publish %d: acknowledged at %d: %s", s.seq+1, ack.Seq, ack.Error.Description)
		}
		s.seq = ack.Seq
		return nil
	case <-timer.C:
		return errors.New("publish: no acknowledgement")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
