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

const (
	fetchMessages = 512
	fetchBytes    = 4 << 20
)

// batch is the answer to one direct get.
type batch struct {
	msgs    []message
	pending uint64 // messages that the server counts after these
}

// fetch gets up to limit messages from sequence from by one direct get. The
// server skips what it cannot read without a word: look at the sequences. It
// is asked for a batch even where one message will do, because only then is
// the answer bounded by what the store counts as stored.
func (s *Stream) fetch(ctx context.Context, from uint64, limit int) (batch, error) {
	limit = min(limit, fetchMessages)
	replies := make(chan *nats.Msg, limit+1)
	inbox := s.nc.NewInbox()
	sub, err := s.nc.ChanSubscribe(inbox, replies)
	if err != nil {
		return batch{}, s.lost(err)
	}
	defer sub.Unsubscribe() //nolint:errcheck // fails only on a closed connection
	down := s.nc.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	defer s.nc.RemoveStatusListener(down)
	request := fmt.Appendf(nil, `{"seq":%d,"batch":%d,"max_bytes":%d}`, from, limit, fetchBytes)
	if err := s.nc.PublishRequest(s.api+"DIRECT.GET."+wire.LogStream, inbox, request); err != nil {
		return batch{}, s.lost(err)
	}
	var b batch
	timer := time.NewTimer(s.cfg.AckWait)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return batch{}, ctx.Err()
		case <-down:
			return batch{}, s.lost(nats.ErrDisconnected)
		case <-timer.C:
			return batch{}, s.lost(errors.New("direct get: no answer in time"))
		case reply := <-replies:
			more, err := s.collect(ctx, &b, reply)
			if err != nil || !more {
				return b, err
			}
			timer.Reset(s.cfg.AckWait)
		}
	}
}

// collect adds one reply to a direct get and reports whether more will come.
func (s *Stream) collect(ctx context.Context, b *batch, reply *nats.Msg) (bool, error) {
	switch status := reply.Header.Get("Status"); status {
	case "":
	case "204": // end of batch
		var err error
		if b.pending, err = strconv.ParseUint(reply.Header.Get("Nats-Num-Pending"), 10, 64); err != nil {
			return false, fmt.Errorf("%w: direct get: malformed end of batch", ErrUnavailable)
		}
		return false, nil
	case "404": // nothing at or after from
		return false, nil
	case "503": // no responders
		return false, s.unanswered(ctx, errors.New("direct get: nobody answers"))
	default:
		return false, fmt.Errorf("%w: direct get: status %s", ErrUnavailable, status)
	}
	seq, err := strconv.ParseUint(reply.Header.Get("Nats-Sequence"), 10, 64)
	if err != nil {
		return false, fmt.Errorf("%w: direct get: malformed sequence", ErrUnavailable)
	}
	if reply.Header.Get("Nats-Subject") != wire.LogSubject {
		return false, distrust(seq, "it was stored under another subject")
	}
	b.msgs = append(b.msgs, message{seq, reply.Data})
	return true, nil
}

func (s *Stream) lost(err error) error {
	if s.nc.IsClosed() {
		return ErrClosed
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// A replica may be behind, and a leader that lost its followers does not know
// it for some seconds; so one answer of a cluster does not prove an absence.
const (
	leaderLooks    = 12
	leaderInterval = time.Second
)

// absent reports whether a sequence that should hold an entry is proven not to.
func (s *Stream) absent(ctx context.Context, seq uint64) (bool, error) {
	if s.at.Replicas <= 1 {
		b, err := s.fetch(ctx, seq, 1)
		return err == nil && (len(b.msgs) == 0 || b.msgs[0].seq != seq), err
	}
	for n := range leaderLooks {
		if n > 0 {
			if err := sleep(ctx, leaderInterval); err != nil {
				return false, err
			}
		}
		if absent, err := s.absentAtLeader(ctx, seq); err != nil || !absent {
			return false, err
		}
	}
	return true, nil
}

func (s *Stream) absentAtLeader(ctx context.Context, seq uint64) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.AckWait)
	defer cancel()
	reply, err := s.nc.RequestWithContext(ctx, s.api+"STREAM.MSG.GET."+wire.LogStream, fmt.Appendf(nil, `{"seq":%d}`, seq))
	if err != nil {
		return false, s.lost(err)
	}
	var answer struct {
		Error struct {
			Code int `json:"err_code"`
		} `json:"error"`
	}
	if err := json.Unmarshal(reply.Data, &answer); err != nil {
		return false, fmt.Errorf("%w: get message: malformed answer", ErrUnavailable)
	}
	const messageNotFound = 10037
	if code := answer.Error.Code; code != 0 && code != messageNotFound {
		return false, fmt.Errorf("%w: get message: error %d", ErrUnavailable, code)
	}
	return answer.Error.Code == messageNotFound, nil
}

// Read implements [Log].
func (s *Stream) Read(ctx context.Context, from uint64, limit int) ([]events.Stored, error) {
	from = max(from, 1)
	if limit <= 0 || limit >= fetchMessages {
		limit = fetchMessages - 1
	}
	for n := 1; ; n++ {
		out, again, err := s.readOnce(ctx, from, limit)
		if !again {
			return out, err
		}
		// What looked like a gap is there after all. Ask again.
		if n == 4 {
			return nil, fmt.Errorf("%w: the log answers with gaps that are not there", ErrUnavailable)
		}
		if err := pause(ctx, n); err != nil {
			return nil, err
		}
	}
}

// readOnce reads from the entry before from, to see that from follows it and
// that "nothing there" is the end of the log and not a log cut short.
func (s *Stream) readOnce(ctx context.Context, from uint64, limit int) (out []events.Stored, again bool, err error) {
	first := from
	if from > 1 {
		first, limit = from-1, limit+1
	}
	b, err := s.fetch(ctx, first, limit)
	if err != nil {
		return nil, false, err
	}
	out, gap, err := s.opener.unroll(from, b.msgs)
	switch {
	case err != nil:
		return out, false, err
	case gap == 0 && len(out) > 0:
		return out, false, nil
	case gap == 0 && from == 1:
		return s.readEmpty(ctx)
	case gap == 0 && b.pending == 0:
		return nil, false, nil
	case gap == 0:
		gap = from // the server counts it but does not deliver it
	}
	absent, err := s.absent(ctx, gap)
	if err != nil {
		return out, false, err
	}
	if absent {
		return out, false, distrust(gap, "missing")
	}
	return nil, true, nil
}

// readEmpty tells a log without entries from one whose entries are unreadable.
func (s *Stream) readEmpty(ctx context.Context) ([]events.Stored, bool, error) {
	st, err := s.Status(ctx)
	switch {
	case err != nil:
		return nil, false, err
	case st.LastSeq == 0:
		return nil, false, nil
	}
	absent, err := s.absent(ctx, 1)
	if err == nil && absent {
		err = distrust(1, "missing")
	}
	return nil, err == nil, err
}
