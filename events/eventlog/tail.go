package eventlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/effectd/effectd/events"
)

const (
	prefetch  = 128                    // messages that a consumer sends ahead
	heartbeat = 500 * time.Millisecond // of the server; a consumer is given up after two
	abandoned = 30 * time.Second       // until the server removes a consumer nobody pulls from
)

// Tail implements [Log].
func (s *Stream) Tail(ctx context.Context, from uint64, prev events.Digest, fn func(events.Stored) error) error {
	t := tailing{s: s, next: max(from, 1), prev: prev, fn: fn}
	for n := 1; ; n++ {
		reached := t.next
		err := t.catchUp(ctx)
		if err == nil {
			err = t.wait(ctx)
		}
		var h *halt
		switch {
		case errors.As(err, &h):
			return h.err
		case ctx.Err() != nil:
			return ctx.Err()
		case s.nc.IsClosed():
			return ErrClosed
		case err == nil, t.next > reached:
			n = 0
		// The log did not answer, or the consumer went away. Look again.
		case pause(ctx, n) != nil:
			return ctx.Err()
		}
	}
}

// errLeftOut: a consumer left out a sequence. Reading tells whether it is there.
var errLeftOut = errors.New("a sequence was left out")

// tailing is one Tail: next is the sequence to deliver next, prev the digest of
// the entry before it, empty if not known.
type tailing struct {
	s    *Stream
	next uint64
	prev events.Digest
	fn   func(events.Stored) error
}

// halt carries an error that ends a Tail, apart from those that it outlives.
type halt struct{ err error }

func (h *halt) Error() string { return h.err.Error() }

// catchUp reads and delivers until the log has nothing more.
func (t *tailing) catchUp(ctx context.Context) error {
	for {
		entries, err := t.s.Read(ctx, t.next, 0)
		for _, e := range entries {
			if err := t.deliver(e); err != nil {
				return err
			}
		}
		var d *Distrust
		switch {
		case errors.As(err, &d):
			return &halt{d}
		case err != nil || len(entries) == 0:
			return err
		}
	}
}

// deliver hands out the entry at t.next.
func (t *tailing) deliver(e events.Stored) error {
	if t.prev != "" {
		if err := linked(t.prev, e); err != nil {
			return &halt{err}
		}
	}
	if err := t.fn(e); err != nil {
		return &halt{err}
	}
	t.next, t.prev = e.Seq+1, e.SHA256
	return nil
}

// wait delivers what is new, or waits for it. It returns when catching up is
// needed; nil is no trouble.
func (t *tailing) wait(ctx context.Context) error {
	if t.s.cfg.Poll > 0 {
		return sleep(ctx, t.s.cfg.Poll)
	}
	return t.follow(ctx)
}

// follow delivers from a consumer of its own until that breaks in any way: the
// connection was lost, the consumer removed, a sequence left out.
func (t *tailing) follow(ctx context.Context) error {
	consumer, err := t.s.consume(ctx, jetstream.ConsumerConfig{
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       t.next,
		AckPolicy:         jetstream.AckNonePolicy,
		MemoryStorage:     true,
		Replicas:          1,
		InactiveThreshold: abandoned,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer t.s.remove(consumer)
	messages, err := consumer.Messages(jetstream.PullMaxMessages(prefetch), jetstream.PullHeartbeat(heartbeat))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer messages.Stop()
	defer t.s.onDisconnect(messages.Stop)()
	for {
		received, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		m, _, err := contents(received)
		if err != nil {
			return err
		}
		if m.seq != t.next {
			return errLeftOut
		}
		e, err := t.s.opener.open(m)
		if err != nil {
			return &halt{err}
		}
		if err := t.deliver(e); err != nil {
			return err
		}
	}
}

// consume makes a consumer. A request that a server without a leader swallows
// must not hold up what would find another one.
func (s *Stream) consume(ctx context.Context, cfg jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.AckWait)
	defer cancel()
	return s.stream.CreateConsumer(ctx, cfg)
}

func contents(msg jetstream.Msg) (message, uint64, error) {
	meta, err := msg.Metadata()
	if err != nil {
		return message{}, 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return message{meta.Sequence.Stream, msg.Data()}, meta.NumDelivered, nil
}

// onDisconnect calls stop once when the connection is lost. A consumer may be
// gone after that, and its silence would be noticed only seconds later.
func (s *Stream) onDisconnect(stop func()) (cancel func()) {
	changes := s.nc.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, open := <-changes; open {
			stop()
		}
	}()
	return func() {
		s.nc.RemoveStatusListener(changes)
		<-done
	}
}

// remove deletes a consumer of ours; if it cannot, the server does in time.
func (s *Stream) remove(c jetstream.Consumer) {
	if !s.nc.IsConnected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.AckWait)
	defer cancel()
	_ = s.stream.DeleteConsumer(ctx, c.CachedInfo().Name)
}
