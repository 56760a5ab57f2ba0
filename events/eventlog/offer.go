package eventlog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// answer is what one attempt proves.
type answer int

const (
	silent        answer = iota // nothing
	stored                      // the entry is durable at its sequence
	refused                     // this attempt stored nothing and would not if repeated now
	unsent                      // this attempt reached no stream
	wrongSequence               // this attempt stored nothing; another one may have
	broken                      // something else than the log answered
)

// offer publishes the entry once and waits for the acknowledgement.
func (s *Stream) offer(ctx context.Context, e events.Stored) (answer, error) {
	reply, err := s.request(ctx, &nats.Msg{
		Subject: wire.LogSubject,
		Header: nats.Header{
			nats.MsgIdHdr:           {string(e.Events[0].ID)},
			nats.ExpectedLastSeqHdr: {strconv.FormatUint(e.Seq-1, 10)},
		},
		Data: e.Body,
	})
	if err != nil {
		return s.unacknowledged(err)
	}
	return judge(reply.Data, e.Seq)
}

// acks is where the acknowledgements of this log arrive: one subscription for
// all appends, since one is in flight at a time.
type acks struct {
	inbox   string
	asked   uint64
	replies chan *nats.Msg
	down    chan nats.Status
}

func (s *Stream) listen() error {
	if s.acks != nil {
		return nil
	}
	a := &acks{inbox: s.nc.NewInbox() + ".", replies: make(chan *nats.Msg, 64)}
	if _, err := s.nc.ChanSubscribe(a.inbox+"*", a.replies); err != nil {
		return fmt.Errorf("%w: %w", errNotSent, err)
	}
	a.down = s.nc.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	s.acks = a
	return nil
}

var (
	errNotSent = errors.New("not sent")
	errNoAck   = errors.New("no acknowledgement in time")
)

// request is nats.Conn.RequestMsg, but it ends at once when the connection is
// lost, and needs nothing but the publish on the way.
func (s *Stream) request(ctx context.Context, msg *nats.Msg) (*nats.Msg, error) {
	if err := s.listen(); err != nil {
		return nil, err
	}
	drain(s.acks.down)
	s.acks.asked++
	msg.Reply = s.acks.inbox + strconv.FormatUint(s.acks.asked, 10)
	if err := s.nc.PublishMsg(msg); err != nil {
		return nil, err
	}
	timer := time.NewTimer(s.cfg.AckWait)
	defer timer.Stop()
	for {
		select {
		case reply := <-s.acks.replies:
			switch {
			case reply.Subject != msg.Reply: // of an attempt that was given up
			case reply.Header.Get("Status") == "503":
				return nil, nats.ErrNoResponders
			default:
				return reply, nil
			}
		case <-s.acks.down:
			return nil, nats.ErrDisconnected
		case <-timer.C:
			return nil, errNoAck
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func drain(changes chan nats.Status) {
	for {
		select {
		case <-changes:
		default:
			return
		}
	}
}

func (s *Stream) unacknowledged(err error) (answer, error) {
	switch {
	case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, nats.ErrHeadersNotSupported):
		return refused, fmt.Errorf("%w: %w", ErrUnavailable, err)
	case errors.Is(err, errNotSent), errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrConnectionDraining),
		errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrNoResponders):
		return unsent, err
	}
	// A publish that is not permitted gets no answer but an error beside it.
	if last := s.nc.LastError(); errors.Is(last, nats.ErrPermissionViolation) {
		err = fmt.Errorf("%w (%w)", err, last)
	}
	return silent, err
}

// Errors of the server that prove that the attempt stored nothing.
const (
	codeAccountLimit     = 10002
	codeInsufficient     = 10023
	codeMemory           = 10028
	codeStorage          = 10047
	codeMessageTooLarge  = 10054
	codeWrongSequence    = 10071
	codeStoreFailed      = 10077
	codeHeaderTooLarge   = 10097
	codeSealed           = 10109
	codeWrongSequenceToo = 10164
)

// judge reads an acknowledgement of an entry that was offered for seq.
func judge(body []byte, seq uint64) (answer, error) {
	var ack struct {
		Stream    string `json:"stream"`
		Seq       uint64 `json:"seq"`
		Duplicate bool   `json:"duplicate"`
		Error     struct {
			Code        int    `json:"err_code"`
			Description string `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(body, &ack); err != nil {
		return silent, errors.New("malformed acknowledgement")
	}
	err := fmt.Errorf("%s (%d)", ack.Error.Description, ack.Error.Code)
	switch ack.Error.Code {
	case 0:
		return acknowledged(ack.Stream, ack.Seq, ack.Duplicate, seq)
	case codeWrongSequence, codeWrongSequenceToo:
		return wrongSequence, err
	case codeAccountLimit, codeInsufficient, codeMemory, codeStorage:
		return refused, fmt.Errorf("%w: %w", ErrFull, err)
	case codeMessageTooLarge, codeHeaderTooLarge, codeSealed:
		return refused, fmt.Errorf("%w: %w", ErrUnavailable, err)
	case codeStoreFailed:
		switch ack.Error.Description {
		case "maximum bytes exceeded", "maximum messages exceeded", "maximum messages per subject exceeded":
			return refused, fmt.Errorf("%w: %w", ErrFull, err)
		}
	}
	return silent, err
}

func acknowledged(stream string, at uint64, duplicate bool, seq uint64) (answer, error) {
	switch {
	case stream != wire.LogStream:
		return broken, &Distrust{Reason: wire.LogSubject + " is stored by another stream"}
	case duplicate && at == seq:
		return silent, errors.New("acknowledged as a duplicate")
	case duplicate:
		return refused, fmt.Errorf("%w: its first event is in the log at %d already", ErrUnavailable, at)
	case at != seq:
		return broken, distrust(seq, "the server stored it at %d", at)
	}
	return stored, nil
}
