package embedded

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/oklog/ulid/v2"
	"golang.org/x/sync/errgroup"

	"github.com/effectd/effectd/aggregate/ledger"
	"github.com/effectd/effectd/aggregate/ledger/intake"
	"github.com/effectd/effectd/aggregate/operation"
	"github.com/effectd/effectd/dispatcher"
	"github.com/effectd/effectd/dispatcher/spool"
	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/events/wire"
	"github.com/effectd/effectd/events/wire/endpoint"
	"github.com/effectd/effectd/projector"
	"github.com/effectd/effectd/projector/anchor"
	"github.com/effectd/effectd/reconciler"
)

// Version of the program: a semantic version.
const Version = "0.1.0"

// Program names the program in the log.
const Program = "effectd/" + Version

// Node is one running node.
type Node struct {
	opts        Options
	home        *home.Home
	lock        *home.Lock
	config      home.Config
	incarnation events.Incarnation

	link       *link
	copied     string           // a copy of the store that is removed in the end; empty if none
	log        *eventlog.Stream // nil when the stream is missing or unfit
	anchor     *anchor.Anchor   // nil when it is missing
	projection *projector.Projection
	ledger     *ledger.Ledger
	dispatcher *dispatcher.Dispatcher
	spool      *spool.Spool
	service    *endpoint.Service
	intake     *intake.Intake
	denials    *intake.Denials

	reloading sync.Mutex // guards the two below
	reload    reload
	gone      bool // node.json is removed for good
	fullness  atomic.Pointer[string]
	logRoom   atomic.Pointer[ledger.Room]
	taken     atomic.Bool        // this life is in the log
	stopping  context.CancelFunc // the dispatcher and what follows the log
	endWaits  context.CancelFunc // requests that wait for an effect
	group     errgroup.Group
	done      chan struct{}
	err       error // why the node ended by itself; valid after done
}

// Start runs a node until [Node.Stop]. A log that cannot be trusted is an error
// only if nothing at all can be read; else the node serves reads and says why.
func Start(ctx context.Context, opts Options) (*Node, error) {
	n := &Node{opts: opts.withDefaults(), done: make(chan struct{}), incarnation: events.Incarnation(newID())}
	if err := n.start(ctx); err != nil {
		return nil, errors.Join(err, n.release(ctx))
	}
	return n, nil
}

func newID() string { return ulid.MustNew(ulid.Now(), rand.Reader).String() }

func (n *Node) start(ctx context.Context) error {
	err := n.enter(ctx)
	if err != nil {
		return err
	}
	if n.spool, err = spool.Open(vfs.Default, n.home.SpoolDir(), int64(n.config.SpoolBytes)); err != nil {
		return err
	}
	distrust, err := n.open(ctx)
	if err != nil {
		return err
	}
	n.ledger = ledger.New(ledger.Config{Writer: n.incarnation, Read: now, Entropy: rand.Reader, Shared: n.opts.NATSURL != "",
		Full: n.full, Room: n.room, Logger: n.opts.Logger}, n.log, n.projection.State().Branch())
	if distrust != nil {
		n.ledger.Distrust(distrust.Error())
	}
	return n.run(ctx)
}

// open opens log, anchor and projection. The first return says why they cannot
// be trusted together, the second why nothing can be served at all.
func (n *Node) open(ctx context.Context) (distrust, fatal error) {
	js, err := jetstream.New(n.link.ledger)
	if err != nil {
		return nil, err
	}
	n.denials = intake.NewDenials(ctx, js, intakeConfig(n.config, n.link.replicas(n.config)), n.now, n.opts.Logger)
	n.log, distrust = eventlog.Attach(ctx, js, eventlog.Config{LedgerID: n.home.LedgerID(), Replicas: n.link.replicas(n.config)})
	if distrust != nil && !errors.Is(distrust, eventlog.ErrUntrusted) {
		return nil, distrust
	}
	if n.projection, fatal = openProjection(n.home.ProjectionDir(), n.home.LedgerID(), n.opts.Logger, n.now); fatal != nil {
		return nil, fatal
	}
	mark, err := n.openAnchor()
	if distrust == nil {
		distrust = err
	}
	if distrust == nil {
		distrust = n.checkHistory(ctx, mark)
	}
	if n.log == nil {
		return known(distrust, mark), nil
	}
	// What is intact is folded in any case: reads go on.
	if err := n.projection.CatchUp(ctx, n.log, func(done, total uint64) { n.opts.Progress("projection", done, total) }); distrust == nil {
		distrust = err
	}
	if distrust != nil && !errors.Is(distrust, eventlog.ErrUntrusted) {
		return nil, distrust // it could not be looked at: that proves nothing
	}
	return distrust, nil
}

func (n *Node) shutdownBudget() time.Duration {
	if n.opts.ShutdownBudget > 0 {
		return n.opts.ShutdownBudget
	}
	return time.Duration(n.config.ShutdownBudget)
}

// now is ledger time; before the writer is there, the wall clock.
func (n *Node) now() events.Instant {
	if n.ledger == nil {
		return now().Wall
	}
	at, _ := n.ledger.Now()
	return at
}

// run starts everything that lives until Stop.
func (n *Node) run(ctx context.Context) error {
	ctx, n.stopping = context.WithCancel(context.WithoutCancel(ctx))
	writing, stopWriting := context.WithCancel(context.WithoutCancel(ctx))
	writer, dispatching := make(chan struct{}), make(chan struct{})
	go func() { defer close(writer); _ = n.ledger.Run(writing) }()
	go func() {
		<-ctx.Done()
		<-dispatching // M6
		stopWriting()
		<-writer
		n.err = n.group.Wait()
		n.markEnd(ctx) // M7
		close(n.done)
	}()
	err := n.begin(ctx)
	if err == nil && n.ledger.Distrusted() == "" {
		go func() { defer close(dispatching); n.dispatch(ctx) }()
	} else {
		close(dispatching)
	}
	if err == nil {
		n.reloading.Lock()
		err = n.announce()
		n.reloading.Unlock()
	}
	if err != nil {
		n.stopping()
		<-n.done
	}
	return err
}

// begin takes the ledger over, if it can be trusted, and serves.
func (n *Node) begin(ctx context.Context) error {
	if n.ledger.Distrusted() == "" {
		if err := n.takeOver(ctx); err != nil {
			return err
		}
	}
	if n.ledger.Distrusted() == "" {
		n.follow(ctx)
	}
	return n.serve(ctx)
}

// follow keeps projection, anchor and trust up with the log.
func (n *Node) follow(ctx context.Context) {
	n.group.Go(func() error {
		err := n.projection.Run(ctx, n.log)
		if ctx.Err() == nil {
			n.ledger.Distrust(err.Error())
		}
		return nil
	})
	n.group.Go(func() error { return n.keepAnchor(ctx) })
	n.group.Go(func() error { return n.watch(ctx) })
	n.measureOnce(ctx)
	n.group.Go(func() error { return n.measure(ctx) })
}

// serve answers requests.
func (n *Node) serve(ctx context.Context) error {
	self := events.Dispatcher{Node: n.home.Node(n.config), Incarnation: n.incarnation}
	adapter := dispatcher.HTTP{Now: time.Now}
	adapters := map[string]dispatcher.Adapter{operation.KindHTTP: adapter, operation.KindFile: dispatcher.File{Now: time.Now}}
	maps.Copy(adapters, n.opts.Adapters)
	secret := secrets(n.opts.Config)
	n.dispatcher = dispatcher.New(dispatcher.Config{Self: self, Now: time.Now, Entropy: rand.Reader, Secret: secret,
		Adapters:       adapters,
		ShutdownBudget: n.shutdownBudget(), Logger: n.opts.Logger}, n.ledger, marker{n}, n.spool)
	reconcile := reconciler.New(reconciler.Config{Now: time.Now, Secret: secret, Asker: adapter}, n.ledger)
	commands := ledger.NewEndpoints(n.ledger, n.projection, reconcile, self)
	queries := projector.NewQueries(n.projection, n.reader(), n)
	err := n.openIntake(ctx, commands)
	if err != nil {
		return err
	}

	ctx, n.endWaits = context.WithCancel(ctx)
	if n.service, err = endpoint.New(ctx, n.link.answer, Version, n.opts.Logger); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	served := map[wire.Verb]endpoint.Serve{}
	for verb, serve := range commands.Serve() {
		served[verb] = n.denials.Noting(n.afterTakeOver(verb, serve))
	}
	maps.Copy(served, queries.Serve())
	served[wire.DenialsRead] = n.denialList
	quota := &quota{limit: func() int64 { return n.ledger.State().Head().Limits.RequestsInFlight }}
	for _, verb := range wire.Verbs() {
		serve, ok := served[verb]
		if !ok {
			serve = unsupported
		}
		if err := n.service.Add(verb, quota.bound(serve)); err != nil {
			return err
		}
	}
	// Only what the server has taken in is served: who is told "ready" is answered.
	return n.link.answer.FlushTimeout(10 * time.Second)
}

// afterTakeOver refuses commands until this life of the node is in the log: what
// it decides must come after that. To confirm the clock is what may lead there.
func (n *Node) afterTakeOver(verb wire.Verb, serve endpoint.Serve) endpoint.Serve {
	if verb == wire.LedgerConfirm {
		return serve
	}
	return func(ctx context.Context, r endpoint.Request) (any, *wire.Error) {
		if !n.taken.Load() && n.ledger.Distrusted() == "" {
			return nil, wire.Errorf(wire.ClockUntrusted, "the node has not taken the ledger over yet: its clock is not trusted; wait or confirm it")
		}
		return serve(ctx, r)
	}
}

// logReader is the log as histories need it.
type logReader interface {
	Read(ctx context.Context, from uint64, most int) ([]events.Stored, error)
}

// noLog is read where there is no stream to read.
type noLog struct{}

func (noLog) Read(context.Context, uint64, int) ([]events.Stored, error) {
	return nil, eventlog.ErrUnavailable
}

func (n *Node) reader() logReader {
	if n.log == nil {
		return noLog{}
	}
	return n.log
}

// unsupported answers for the verbs of the contract that this version does not
// serve.
func unsupported(context.Context, endpoint.Request) (any, *wire.Error) {
	return nil, wire.Errorf(wire.Unsupported, "this version of effectd does not serve this verb")
}
