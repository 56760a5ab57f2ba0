package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/ledger"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// writer is the ledger as the service needs it.
type writer interface {
	Do(ctx context.Context, who events.Actor, c aggregate.Command) (ledger.Outcome, error)
}

// Service answers the dispatchers of other processes.
type Service struct {
	ctx           context.Context // of the commands
	writer        writer
	log           *slog.Logger
	subscriptions []*nats.Subscription
	serving       sync.WaitGroup
}

// queue is the group of all processes that write one ledger: one of them answers.
const queue = "effectd"

// Serve answers on the connection that writes the log, until Stop.
func Serve(ctx context.Context, conn *nats.Conn, id events.LedgerID, w writer, log *slog.Logger) (*Service, error) {
	s := &Service{ctx: context.WithoutCancel(ctx), writer: w, log: log}
	for what, command := range map[string]func([]byte) (aggregate.Command, error){wire.PeerClaim: claim, wire.PeerAbandon: abandon, wire.PeerResult: result} {
		sub, err := conn.QueueSubscribe(wire.PeerSubject(id, what), queue, func(m *nats.Msg) {
			s.serving.Go(func() { s.serve(m, what, command) })
		})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("peers: %w", err), s.Stop())
		}
		s.subscriptions = append(s.subscriptions, sub)
	}
	return s, nil
}

// Stop takes no further request and waits for those that are served.
func (s *Service) Stop() error {
	var faults []error
	for _, sub := range s.subscriptions {
		if err := sub.Unsubscribe(); !errors.Is(err, nats.ErrConnectionClosed) {
			faults = append(faults, err)
		}
	}
	s.serving.Wait()
	return errors.Join(faults...)
}

func (s *Service) serve(m *nats.Msg, what string, command func([]byte) (aggregate.Command, error)) {
	reply := s.decide(m.Data, command)
	if err := m.Respond(events.CanonicalOf(&reply)); err != nil {
		s.log.Warn("a peer is not answered", "request", what, "error", err)
	}
}

func (s *Service) decide(body []byte, command func([]byte) (aggregate.Command, error)) wire.PeerReply {
	c, err := command(body)
	if err != nil {
		return wire.PeerReply{Error: wire.Errorf(wire.InvalidRequest, "the request does not decode")}
	}
	o, err := s.writer.Do(s.ctx, events.SystemActor, c)
	var failed *wire.Error
	switch {
	case errors.As(err, &failed):
		return wire.PeerReply{Error: failed}
	case err != nil:
		return wire.PeerReply{Error: wire.Errorf(wire.LedgerUnavailable, "the ledger could not answer")}
	}
	return wire.PeerReply{Claimed: o.Claimed, Repeat: o.Repeat, Seq: o.State.Seq(), Refusal: o.Refusal}
}

// decode is strict: a request of another version is not half understood.
func decode[T any](body []byte) (v T, err error) {
	err = json.Unmarshal(body, &v, json.RejectUnknownMembers(true))
	return v, err
}

func claim(body []byte) (aggregate.Command, error) {
	r, err := decode[wire.ClaimRequest](body)
	return aggregate.ClaimEffect{EffectID: r.EffectID, IntentSHA256: r.IntentSHA256, Dispatcher: r.Dispatcher, NonceSHA256: r.NonceSHA256,
		DeadlineMS: r.DeadlineMS, CredentialSHA256: r.CredentialSHA256}, err
}

func abandon(body []byte) (aggregate.Command, error) {
	r, err := decode[wire.AbandonRequest](body)
	return aggregate.Abandon{EffectID: r.EffectID, IntentSHA256: r.IntentSHA256, Detail: r.Detail}, err
}

func result(body []byte) (aggregate.Command, error) {
	r, err := decode[wire.ResultRequest](body)
	if err != nil {
		return nil, err
	}
	proven, err := decode[aggregate.Result](r.Result)
	return aggregate.Report{EffectID: r.EffectID, IntentSHA256: r.IntentSHA256, Nonce: r.Nonce, Result: proven, AuditIncomplete: r.AuditIncomplete}, err
}
