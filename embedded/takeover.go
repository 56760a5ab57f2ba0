package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/ledger/peer"
	"github.com/effectd/effectd/aggregate/operation"
	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/embedded/natsserver"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/events/wire"
)

// takeOver records this life of the node in the log and loads the owner's files
// as new versions of the law. While the clock is not trusted it leaves that to a
// later call: reads are served, nothing is written.
func (n *Node) takeOver(ctx context.Context) error {
	err := n.ledger.CatchUp(ctx)
	if errors.Is(err, eventlog.ErrUntrusted) {
		n.ledger.Distrust(err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	status, err := n.log.Status(ctx)
	if err != nil {
		return err
	}
	err = n.do(ctx, aggregate.OpenLedger{LedgerID: n.home.LedgerID(), Writer: n.incarnation, Node: n.home.Node(n.config), Program: Program,
		Limits: n.config.LedgerLimits(), Fingerprint: status.Fingerprint(n.home.LedgerID())})
	if clockUntrusted(err) {
		n.opts.Logger.Warn("the clock is not trusted: nothing is written until it is, or an operator confirms it")
		return nil
	}
	if err != nil {
		return err
	}
	n.taken.Store(true)
	n.reloading.Lock()
	defer n.reloading.Unlock()
	return n.loadLaw(ctx)
}

// takenOver waits until the take-over is in the log.
func (n *Node) takenOver(ctx context.Context) bool {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for !n.taken.Load() {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		if n.ledger.Distrusted() != "" {
			return false
		}
		if _, trusted := n.ledger.Now(); !trusted {
			continue
		}
		if err := n.takeOver(ctx); err != nil {
			n.opts.Logger.Error("cannot take over", "error", err)
		}
	}
	return true
}

func clockUntrusted(err error) bool {
	var e *wire.Error
	return errors.As(err, &e) && e.Code == wire.ClockUntrusted
}

// do has a command of the ledger itself decided; a refusal is an error.
func (n *Node) do(ctx context.Context, c aggregate.Command) error {
	o, err := n.ledger.Do(ctx, events.SystemActor, c)
	if err != nil {
		return err
	}
	if o.Refusal != nil {
		return o.Refusal
	}
	return nil
}

// LoadContracts compiles every operation file, and says every fault of all of
// them.
func LoadContracts(h *home.Home) ([]*operation.Contract, error) {
	files, _, err := h.OperationFiles()
	if err != nil {
		return nil, err
	}
	var contracts []*operation.Contract
	var faults []error
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		c, err := operation.Compile(file, text)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		contracts = append(contracts, c)
	}
	return contracts, errors.Join(faults...)
}

// dispatch runs the dispatcher, once what earlier lives left is settled (M5).
func (n *Node) dispatch(ctx context.Context) {
	if !n.takenOver(ctx) || !n.settleEarlierLives(ctx) {
		return
	}
	sweeping := make(chan struct{})
	go func() { defer close(sweeping); _ = n.ledger.Sweep(ctx, 250*time.Millisecond) }()
	defer func() { <-sweeping }()
	answering := make(chan struct{})
	go func() { defer close(answering); n.answerPeers(ctx) }()
	defer func() { <-answering }()
	taking := make(chan struct{})
	go func() { defer close(taking); n.takeRequests(ctx) }()
	defer func() { <-taking }()
	deliveries, err := n.deliveries(ctx)
	if err != nil {
		if ctx.Err() == nil {
			n.ledger.Distrust("the dispatch consumer cannot be opened: " + err.Error())
		}
		return
	}
	defer deliveries.Stop()
	if err := n.dispatcher.Run(ctx, deliveries); err != nil {
		n.opts.Logger.Error("dispatch ended", "error", err)
	}
}

// answerPeers decides what dispatchers of other processes ask. Without it this node
// dispatches alone.
func (n *Node) answerPeers(ctx context.Context) {
	if err := peer.Serve(ctx, n.link.ledger, n.ledger, n.opts.Logger); err != nil {
		n.opts.Logger.Error("other processes are not answered", "error", err)
	}
}

// deliveries opens the dispatch consumer, however long the log is away.
func (n *Node) deliveries(ctx context.Context) (eventlog.Deliveries, error) {
	for {
		d, err := n.log.Deliveries(ctx, "dispatch", max(1, n.ledger.State().Seq()))
		if err == nil || ctx.Err() != nil || !errors.Is(err, eventlog.ErrUnavailable) {
			return d, err
		}
		n.opts.Logger.Warn("nothing is dispatched yet", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// settleEarlierLives replays the spool, then ends the claims and attempts of
// processes that have provably ended. False if ctx ended first.
func (n *Node) settleEarlierLives(ctx context.Context) bool {
	for ctx.Err() == nil {
		err := n.dispatcher.Replay(ctx)
		for _, id := range n.ledger.State().Orphans() {
			if err == nil {
				err = n.do(ctx, aggregate.Orphaned{EffectID: id})
			}
		}
		if err == nil {
			return true
		}
		n.opts.Logger.Warn("earlier results cannot be recorded yet", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	return false
}

// auditConsumers makes the durable consumers through which auditors read the log:
// they may not make any themselves.
func (n *Node) auditConsumers(ctx context.Context, users []events.User) error {
	js, err := jetstream.New(n.link.ledger)
	if err != nil {
		return err
	}
	for _, u := range users {
		if u.Role != events.RoleAuditor {
			continue
		}
		_, err := js.CreateOrUpdateConsumer(ctx, wire.LogStream, jetstream.ConsumerConfig{
			Durable: natsserver.AuditConsumer(u.Tenant, u.Principal), AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: -1, MaxAckPending: 1024})
		if err != nil {
			return fmt.Errorf("consumer of auditor %s/%s: %w", u.Tenant, u.Principal, err)
		}
	}
	return n.denialConsumers(ctx, js, users)
}
