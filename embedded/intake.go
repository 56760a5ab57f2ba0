package embedded

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/effectd/effectd/aggregate/ledger"
	"github.com/effectd/effectd/aggregate/ledger/intake"
	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/embedded/natsserver"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
	"github.com/effectd/effectd/events/wire/endpoint"
)

// intakeConfig is how the streams of requests and denials are bounded.
func intakeConfig(c home.Config, replicas int) intake.Config {
	return intake.Config{RequestBytes: int64(c.RequestBytes), RecordBytes: int64(c.Limits.RecordBytes), DenialBytes: int64(c.DenialBytes), Replicas: replicas}
}

// openIntake attaches to the queue of requests. A ledger that has none is served
// without.
func (n *Node) openIntake(ctx context.Context, commands *ledger.Endpoints) error {
	js, err := jetstream.New(n.link.ledger)
	if err != nil {
		return err
	}
	n.intake = intake.New(ctx, js, intakeConfig(n.config, n.link.replicas(n.config)), commands, n.denials, n.opts.Logger)
	n.group.Go(func() error { n.denials.Run(ctx); return nil })
	if off := n.intake.Off(); off != "" {
		n.opts.Logger.Warn("no requests are taken from a queue", "reason", off)
	}
	return nil
}

// takeRequests decides what waits in the queue until ctx ends.
func (n *Node) takeRequests(ctx context.Context) {
	n.intake.Serve(n.ledger.State().Users())
	n.intake.Run(ctx)
}

// denialConsumers makes the consumers through which operators and auditors follow
// the denials of their tenant: they may not make any themselves.
func (n *Node) denialConsumers(ctx context.Context, js jetstream.JetStream, users []events.User) error {
	if n.denials.Off() != "" {
		return nil
	}
	for _, u := range users {
		if !readsDenials(u.Role) {
			continue
		}
		_, err := js.CreateOrUpdateConsumer(ctx, wire.DenialStream, jetstream.ConsumerConfig{
			Durable: natsserver.DenialConsumer(u.Tenant, u.Principal), FilterSubject: wire.DeniedPrefix + string(u.Tenant) + ".*",
			AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: -1, MaxAckPending: 1024})
		if err != nil {
			return fmt.Errorf("consumer of denials for %s/%s: %w", u.Tenant, u.Principal, err)
		}
	}
	return nil
}

func readsDenials(r events.Role) bool { return r == events.RoleOperator || r == events.RoleAuditor }

// denialList answers with denials of the caller's tenant.
func (n *Node) denialList(ctx context.Context, r endpoint.Request) (any, *wire.Error) {
	user, known := n.projection.State().User(events.ActorOf(r.Tenant, r.Principal))
	if !known || !readsDenials(user.Role) {
		return nil, wire.Errorf(wire.Forbidden, "an operator or auditor reads the denials")
	}
	request, refusal := wire.Decode[wire.DenialListRequest](r.Body)
	if refusal != nil {
		return nil, refusal
	}
	if off := n.denials.Off(); off != "" {
		return nil, wire.Errorf(wire.Unsupported, off)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	page, err := n.denials.Read(ctx, r.Tenant, request)
	if err != nil {
		n.opts.Logger.Warn("denials cannot be read", "error", err)
		return nil, wire.Errorf(wire.LedgerUnavailable, "the denials cannot be read now")
	}
	page.Position = n.projection.State().Head().Last
	return page, nil
}

// intakeStatus is how the queue stands.
func (n *Node) intakeStatus(ctx context.Context) wire.Intake {
	s := wire.Intake{Reason: n.intake.Off(), DenialsDropped: n.denials.Dropped()}
	if n.ledger.Distrusted() != "" {
		s.Reason = "the ledger is not trusted"
	}
	if s.Serving = s.Reason == ""; !s.Serving {
		return s
	}
	var err error
	if s.Waiting, err = n.intake.Waiting(ctx); err != nil {
		s.Serving, s.Reason = false, "the stream "+wire.RequestStream+" does not answer"
	}
	return s
}
