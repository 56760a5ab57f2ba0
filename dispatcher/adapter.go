package dispatcher

import (
	"context"
	"errors"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/operation"
	"github.com/effectd/effectd/events"
)

// Send is all that an adapter learns of an effect: frozen payload, idempotency
// key, context and binding. No request, no connection, no state.
type Send struct {
	EffectID       events.EffectID
	IdempotencyKey events.IdempotencyKey
	Binding        events.Binding
	Context        events.Context
	Payload        operation.Payload
	Contract       *operation.Contract
	// Secret reads a secret that the contract names, at send time.
	Secret func(name string) (string, bool)
}

// Shot is one rendered send. It is fired at most once.
type Shot interface {
	// Fire sends and says what is proven. Deadline carries a monotonic reading and
	// is checked immediately before the first byte. A cancelled context ends the
	// wait for an answer, never the truth about what was sent.
	Fire(ctx context.Context, deadline time.Time) aggregate.Result
}

// Adapter is one way to reach the outside world.
type Adapter interface {
	// Render prepares the send without any I/O; an error means that it can never
	// be sent, and names no value.
	Render(s Send) (Shot, error)
}

// ErrShutdown is the cause of the context when a stop ends a running send.
var ErrShutdown = errors.New("dispatcher: shutdown")

// input is what the contract's expressions see of a send.
func (s Send) input() operation.Input {
	return operation.Input{Payload: s.Payload, Precondition: s.Binding.Precondition, Resource: s.Binding.Resource,
		EffectID: s.EffectID, IdempotencyKey: s.IdempotencyKey, Secret: s.Secret}
}
