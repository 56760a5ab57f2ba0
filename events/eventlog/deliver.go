package eventlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// maxAckPending bounds the entries that are delivered and not acknowledged.
	maxAckPending = 1024
	// redeliver is when an entry comes again whose delivery or ack was lost.
	redeliver = 5 * time.Second
)

// Deliveries implements [Log].
func (s *Stream) Deliveries(ctx context.Context, durable string, from uint64) (Deliveries, error) {
	d := &deliveries{s: s, durable: durable, from: max(from, 1)}
	if err := d.open(ctx); err != nil {
		return nil, fmt.Errorf("deliveries %s: %w", durable, err)
	}
	return d, nil
}

type deliveries struct {
	s       *Stream
	durable string
	from    uint64

	messages jetstream.MessagesContext // nil while broken
	stopped  bool
}

// ConsumerConfig is the durable consumer that Deliveries makes; an owner of an
// external server may make it beforehand from this.
func ConsumerConfig(durable string, from uint64) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:       durable,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:   max(from, 1),
		AckPolicy:     jetstream.AckExplicitPolicy,
		MaxDeliver:    -1, // an entry delivered too often would silently stop coming
		MaxAckPending: maxAckPending,
		AckWait:       redeliver,
	}
}

// open finds or makes the consumer and starts the prefetch.
func (d *deliveries) open(ctx context.Context) error {
	consumer, err := d.find(ctx)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		consumer, err = d.s.consume(ctx, ConsumerConfig(d.durable, d.from))
	}
	if err != nil {
		return d.s.unanswered(ctx, err)
	}
	if c := consumer.CachedInfo().Config; c.AckPolicy != jetstream.AckExplicitPolicy || c.MaxDeliver > 0 ||
		c.FilterSubject != "" || len(c.FilterSubjects) > 0 || c.HeadersOnly || c.InactiveThreshold > 0 {
		return &Distrust{Reason: "consumer " + d.durable + " would leave out entries"}
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(prefetch), jetstream.PullHeartbeat(heartbeat))
	if err != nil {
		return d.s.lost(err)
	}
	d.messages = messages
	return nil
}

func (d *deliveries) find(ctx context.Context) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, d.s.cfg.AckWait)
	defer cancel()
	return d.s.stream.Consumer(ctx, d.durable)
}

func (d *deliveries) close() {
	if d.messages != nil {
		d.messages.Stop()
		d.messages = nil
	}
}

// Next implements [Deliveries].
func (d *deliveries) Next(ctx context.Context) (Delivery, error) {
	for n := 0; ; n++ {
		delivery, err := d.next(ctx)
		var distrusted *Distrust
		switch {
		case err == nil, errors.As(err, &distrusted):
			return delivery, err
		case ctx.Err() != nil:
			return Delivery{}, ctx.Err()
		case d.stopped, d.s.nc.IsClosed():
			return Delivery{}, ErrClosed
		}
		if n > 0 && pause(ctx, n) != nil {
			return Delivery{}, ctx.Err()
		}
	}
}

func (d *deliveries) next(ctx context.Context) (Delivery, error) {
	if d.stopped {
		return Delivery{}, ErrClosed
	}
	if d.messages == nil {
		if err := d.open(ctx); err != nil {
			return Delivery{}, err
		}
	}
	msg, err := d.messages.Next(jetstream.NextContext(ctx))
	if err != nil {
		if ctx.Err() == nil {
			d.close()
		}
		return Delivery{}, err
	}
	m, times, err := contents(msg)
	if err != nil {
		return Delivery{}, err
	}
	e, err := d.s.opener.open(m)
	if err != nil {
		return Delivery{}, err
	}
	return Delivery{Stored: e, Times: times, ack: msg.Ack}, nil
}

// Stop implements [Deliveries]. Call it when no Next is running.
func (d *deliveries) Stop() {
	d.stopped = true
	d.close()
}
