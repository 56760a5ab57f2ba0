package intake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events/wire"
)

const (
	// ackWait is longer than one attempt and the pause after it.
	ackWait   = 30 * time.Second
	prefetch  = 64 // pull requests are that many messages; one at a time comes
	heartbeat = 5 * time.Second
	// forgotten is when the server drops the consumer of a line that nobody runs any
	// more. The queue itself forgets nothing.
	forgotten = 24 * time.Hour
)

// line decides the requests of one principal, one after the other (I2).
type line struct {
	*Intake
	caller aggregate.Caller
}

func (l *line) run(ctx context.Context) {
	for n := 0; ; n++ {
		err := l.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		l.log.Warn("the intake of a principal begins again", "principal", l.caller.Actor(), "error", err)
		if pause(ctx, n) != nil {
			return
		}
	}
}

// follow takes requests until something fails.
func (l *line) follow(ctx context.Context) error {
	consumer, err := l.open(ctx)
	if err != nil {
		return err
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(prefetch), jetstream.PullHeartbeat(heartbeat))
	if err != nil {
		return err
	}
	defer messages.Stop()
	for {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		if err := l.bringToEnd(ctx, m); err != nil {
			return err
		}
	}
}

// open makes the consumer anew: what an earlier life had taken comes at once, and
// before what follows it.
func (l *line) open(ctx context.Context) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, apiWait)
	defer cancel()
	name := "intake-" + wire.NameOf(l.caller.Tenant, l.caller.Principal)
	if err := l.js.DeleteConsumer(ctx, wire.RequestStream, name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil, fmt.Errorf("consumer %s: %w", name, err)
	}
	c, err := l.js.CreateConsumer(ctx, wire.RequestStream, jetstream.ConsumerConfig{
		Durable: name, FilterSubject: wire.RequestsSubject(l.caller.Tenant, l.caller.Principal),
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxDeliver: -1, MaxAckPending: 1, InactiveThreshold: forgotten})
	if err != nil {
		return nil, fmt.Errorf("consumer %s: %w", name, err)
	}
	return c, nil
}

// bringToEnd brings one request to a durable end and acks it (I1). While the ledger
// cannot take it, it stays out: nothing of this principal overtakes it (I4).
func (l *line) bringToEnd(ctx context.Context, m jetstream.Msg) error {
	meta, err := m.Metadata()
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		request, refusal := wire.Decode[wire.SubmitRequest](m.Data())
		if refusal == nil {
			refusal = l.ledger.Accept(ctx, l.caller, request)
		}
		if refusal == nil {
			return m.Ack()
		}
		if !waits(refusal.Code) {
			err := l.denials.put(ctx, l.denial(refusal, request, meta.Sequence.Stream))
			if err == nil {
				return m.Ack()
			}
			refusal = wire.Errorf(wire.LedgerUnavailable, "the denial cannot be stored: "+err.Error())
		}
		if n == 0 {
			l.log.Warn("a request waits in the intake", "principal", l.caller.Actor(), "request", meta.Sequence.Stream, "code", refusal.Code, "message", refusal.Message)
		}
		if err := errors.Join(pause(ctx, n), m.InProgress()); err != nil {
			return err
		}
	}
}

// denial is what is kept of a refused request: ids only if they are some.
func (l *line) denial(refusal *wire.Error, r wire.SubmitRequest, seq uint64) wire.Denial {
	d := l.denials.of(l.caller, wire.EffectSubmit, refusal)
	d.RequestSeq = seq
	about{RunID: r.RunID, CausalID: r.CausalID}.tell(&d)
	return d
}

// waits reports whether a request that is refused with a code is kept and asked
// again. Everything else is an answer: nothing retries by itself.
func waits(c wire.Code) bool {
	switch c {
	case wire.LedgerUnavailable, wire.CommitUnknown, wire.ClockUntrusted, wire.LedgerUntrusted, // nothing is decided now
		wire.QuotaExceeded, wire.CapacityExhausted: // no effect came to be, for want of room
		return true
	}
	return false
}

// pause lets some time go by after the n-th failure: from 50 ms to 5 s.
func pause(ctx context.Context, n int) error {
	wait := time.NewTimer(min(5*time.Second, 50*time.Millisecond<<min(n, 10)))
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-wait.C:
		return nil
	}
}
