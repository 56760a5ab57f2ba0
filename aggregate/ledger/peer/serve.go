package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/ledger"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// maxInFlight is how many requests of peers are decided at a time.
const maxInFlight = 1024

// decider is the writer as its peers need it.
type decider interface {
	Do(ctx context.Context, who events.Actor, c aggregate.Command) (ledger.Outcome, error)
	State() *aggregate.State
}

// Serve has decided what peers ask until ctx ends or the writer does not trust the
// log, and returns when what was taken up is answered. The connection is the one
// that writes the log; no user reaches it.
func Serve(ctx context.Context, conn *nats.Conn, l decider, log *slog.Logger) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	s := &serving{ledger: l, log: log, leave: leave, slots: make(chan struct{}, maxInFlight)}
	defer s.drain()
	id := l.State().Head().LedgerID
	for _, verb := range wire.NodeVerbs() {
		sub, err := conn.QueueSubscribe(wire.NodeSubject(id, verb), wire.ServiceName, func(m *nats.Msg) { s.accept(ctx, verb, m) })
		if err != nil {
			return fmt.Errorf("serve peers: %s: %w", verb, err)
		}
		defer func() { _ = sub.Unsubscribe() }() // of a connection that is closed: it is gone
	}
	<-ctx.Done()
	return nil
}

// serving is Serve at work.
type serving struct {
	ledger decider
	log    *slog.Logger
	leave  context.CancelFunc
	slots  chan struct{} // one for each request being decided
}

// drain waits for what is being decided, and leaves no slot to what comes later.
func (s *serving) drain() {
	for range maxInFlight {
		s.slots <- struct{}{}
	}
}

// accept starts the work on a request, and never blocks.
func (s *serving) accept(ctx context.Context, verb wire.NodeVerb, m *nats.Msg) {
	if !strings.HasPrefix(m.Reply, wire.InboxPrefix) { // R2
		s.log.Warn("a peer's request is dropped: its reply subject is no inbox", "verb", verb)
		return
	}
	select {
	case s.slots <- struct{}{}:
	default:
		s.refuse(m, wire.Errorf(wire.LedgerUnavailable, "too many requests of peers are in flight, or the node is stopping; nothing was written"))
		return
	}
	go func() {
		defer func() { <-s.slots }()
		c, refusal := s.command(verb, m.Data)
		if refusal != nil {
			s.refuse(m, refusal)
			return
		}
		// A stop does not cut it off: the writer answers in bounded time.
		o, err := s.ledger.Do(context.WithoutCancel(ctx), events.SystemActor, c)
		if err != nil {
			refusal := asWire(err)
			if refusal.Code == wire.LedgerUntrusted {
				s.leave() // another process of the ledger may know better
			}
			s.refuse(m, refusal)
			return
		}
		head := o.State.Head()
		s.send(m, &nats.Msg{Data: events.CanonicalOf(wire.DecisionReply{Claimed: o.Claimed, Repeat: o.Repeat, EffectID: o.EffectID,
			Seq: head.Seq, SHA256: head.SHA256, At: o.At, Refusal: o.Refusal})})
	}()
}

// command reads a request, strictly (R1).
func (s *serving) command(verb wire.NodeVerb, body []byte) (aggregate.Command, *wire.Error) {
	switch verb {
	case wire.NodeClaim:
		r, refusal := wire.Decode[wire.ClaimRequest](body)
		return claimOf(r), s.ours(r.NodeEffect, refusal)
	case wire.NodeResult:
		r, refusal := wire.Decode[wire.ResultRequest](body)
		return reportOf(r), s.ours(r.NodeEffect, refusal)
	case wire.NodeAbandon:
		r, refusal := wire.Decode[wire.AbandonRequest](body)
		return abandonOf(r), s.ours(r.NodeEffect, refusal)
	}
	return nil, wire.Errorf(wire.Unsupported, "peers cannot ask this")
}

// ours refuses what is meant for another ledger.
func (s *serving) ours(about wire.NodeEffect, refusal *wire.Error) *wire.Error {
	if refusal == nil && about.LedgerID != s.ledger.State().Head().LedgerID {
		return wire.FieldError(wire.InvalidRequest, "ledger_id", "it is another ledger")
	}
	return refusal
}

func (s *serving) refuse(m *nats.Msg, e *wire.Error) {
	s.send(m, &nats.Msg{Data: events.CanonicalOf(wire.ErrorReply{Error: e}), Header: nats.Header{
		wire.HeaderErrorCode: {strconv.Itoa(e.Code.Status())},
		wire.HeaderError:     {string(e.Code)},
	}})
}

// send answers. Who does not get the answer asks again.
func (s *serving) send(m, answer *nats.Msg) {
	if err := m.RespondMsg(answer); err != nil {
		s.log.Warn("reply to a peer not sent", "error", err)
	}
}

func asWire(err error) *wire.Error {
	var e *wire.Error
	if errors.As(err, &e) {
		return e
	}
	return wire.Errorf(wire.CommitUnknown, "the ledger could not answer")
}
