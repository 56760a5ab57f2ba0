package projector

import (
	"context"
	"errors"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
	"github.com/effectd/effectd/events/wire/endpoint"
)

// Standing is what the projection cannot know of its node. The zero Standing
// trusts nothing.
type Standing struct {
	Trusted      bool
	Reason       string // why it is not trusted, and at which position
	ClockTrusted bool
	Dispatching  bool
	Node         string
	Program      string
	LogBytes     int64
	Intake       wire.Intake
}

// node says how it stands, and which entry it has acknowledged to callers last.
type node interface {
	Standing() Standing
	Acknowledged() uint64
	// Distrust says that the log was found unfit.
	Distrust(reason string)
}

// Queries answers reads from the projection, also when the log is not trusted any
// more.
type Queries struct {
	projection *Projection
	log        reader
	node       node
}

// NewQueries connects a projection with the log, which holds the events of a
// history, and with its node.
func NewQueries(p *Projection, l reader, n node) *Queries {
	return &Queries{projection: p, log: l, node: n}
}

// Serve returns what serves each verb that reads.
func (q *Queries) Serve() map[wire.Verb]endpoint.Serve {
	return map[wire.Verb]endpoint.Serve{
		wire.EffectGet:     serve(q.get),
		wire.EffectList:    serve(q.list),
		wire.EffectHistory: serve(q.history),
		wire.PermitPending: serve(q.pending),
		wire.TaskGet:       serve(q.task),
		wire.TaskList:      serve(q.tasks),
		wire.RunGet:        serve(q.run),
		wire.OperationList: serve(q.operations),
		wire.LedgerStatus:  serve(q.status),
	}
}

func serve[Q any](f func(context.Context, aggregate.Caller, Q) (any, *wire.Error)) endpoint.Serve {
	return func(ctx context.Context, r endpoint.Request) (any, *wire.Error) {
		request, refusal := wire.Decode[Q](r.Body)
		if refusal != nil {
			return nil, refusal
		}
		return f(ctx, aggregate.Caller{Tenant: r.Caller.Tenant, Principal: r.Caller.Principal}, request)
	}
}

// freshness bounds the wait for what this node has acknowledged itself.
const freshness = 2 * time.Second

// reach waits until the projection is at the position that a request asks for;
// without one, until it is fresh.
func (q *Queries) reach(ctx context.Context, minPosition string, timeoutMS int64) *wire.Error {
	if minPosition == "" {
		return q.fresh(ctx)
	}
	at, err := events.ParsePosition(minPosition)
	if err != nil {
		return wire.FieldError(wire.InvalidRequest, "min_position", "want a position such as 1042.0")
	}
	ctx, cancel := context.WithTimeout(ctx, wire.WaitFor(timeoutMS))
	defer cancel()
	err = q.projection.AwaitPosition(ctx, at)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return wire.FieldError(wire.WaitTimeout, "min_position", "the projection is not there yet; ask again")
	}
	return unreadable(err)
}

// fresh waits until the projection holds what this node has acknowledged: who got
// a reply here reads its own write here. A projection that does not get there
// answers with the position it has; a request that is ended meanwhile is not
// answered from before that write.
func (q *Queries) fresh(ctx context.Context) *wire.Error {
	if q.projection.stopped.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, freshness)
	defer cancel()
	err := q.projection.AwaitPosition(ctx, events.Position{Seq: q.node.Acknowledged()})
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return unreadable(err)
	}
	return nil
}

func unreadable(err error) *wire.Error {
	if errors.Is(err, ErrClosed) || errors.Is(err, context.Canceled) {
		return wire.Errorf(wire.LedgerUnavailable, "the node is stopping")
	}
	return wire.Errorf(wire.LedgerUnavailable, "what was asked for could not be read")
}
