package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/effectd/effectd/events/wire"
)

// ErrNoIntake: the ledger has no queue of requests. Nothing happened.
var ErrNoIntake = fmt.Errorf("%w: the ledger takes no requests from a queue", ErrUnreachable)

// Queue puts a request into the intake, and returns when it is kept there. The
// ledger decides it later: see the effect by its run and causal id, or the denial.
// A wait in the request means nothing. After [ErrNoAnswer] queue the same request
// again: it is the same effect.
func (c *Client) Queue(ctx context.Context, r wire.SubmitRequest) (wire.Queued, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return wire.Queued{}, fmt.Errorf("queue: encode request: %w", err)
	}
	m, err := c.roundTrip(ctx, wire.RequestsSubject(c.tenant, c.principal), body, Patience)
	if errors.Is(err, nats.ErrNoResponders) {
		err = ErrNoIntake
	}
	if err != nil {
		return wire.Queued{}, fmt.Errorf("queue: %w", err)
	}
	var ack struct {
		wire.Queued
		Error *struct {
			ErrCode     int    `json:"err_code"`
			Description string `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &ack); err != nil || ack.Error == nil && ack.Stream != wire.RequestStream {
		return wire.Queued{}, fmt.Errorf("queue: %w: the acknowledgement is none", ErrNoAnswer)
	}
	if ack.Error != nil {
		return wire.Queued{}, unqueued(ack.Error.ErrCode, ack.Error.Description)
	}
	return ack.Queued, nil
}

// unqueued is why the stream did not take a request.
func unqueued(code int, says string) error {
	const tooLarge = 10054
	if code == tooLarge {
		return wire.Errorf(wire.RecordTooLarge, "the queue takes no request of that size")
	}
	return wire.Errorf(wire.CapacityExhausted, "the queue does not take the request: "+says)
}
