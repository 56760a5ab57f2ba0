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
	log        *eventlog.Stream // nil when the stream is missing or unfit
	anchor     *anchor.Anchor   // nil when it is missing
	projection *projector.Projection
	ledger     *ledger.Ledger
	dispatcher *dispatcher.Dispatcher
	spool      *spool.Spool
	service    *endpoint.Service

	reloading sync.Mutex
	taken     atomic.Bool        // this life is in the log
	stopping  context.CancelFunc // the intake, the dispatcher and what follows the log
	group     *errgroup.Group
	done      chan struct{}
	err       error // why the node ended by itself; valid after done
}

// Start runs a node until [Node.Stop]. A log that cannot be trusted is an error
// only if nothing at all can be read; else the node serves reads and says why.
func Start(ctx context.Context, opts Options) (*Node, error) {
	n := &Node{opts: opts.withDefaults(), done: make(chan struct{}), incarnation: events.Incarnation(newID())}
	if err := n.start(ctx); err != nil {
		n.release(ctx)
		return nil, err
	}
	return n, nil
}

func newID() string { return ulid.MustNew(ulid.Now(), rand.Reader).String() }

func (n *Node) start(ctx context.Context) error {
	var err error
	if n.home, err = home.Open(n.opts.Data, n.opts.Config); err != nil {
		return err
	}
	if n.config, err = n.home.LoadConfig(); err != nil {
		return err
	}
	if n.lock, err = home.Acquire(n.home.Dir()); err != nil {
		return err
	}
	if n.link, err = connect(ctx, n.opts, n.home, n.config); err != nil {
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
		Logger: n.opts.Logger}, n.log, n.projection.State().Branch())
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
	n.log, distrust = eventlog.Attach(ctx, js, eventlog.Config{LedgerID: n.home.LedgerID(), Replicas: n.replicas()})
	if distrust != nil && !errors.Is(distrust, eventlog.ErrUntrusted) {
		return nil, distrust
	}
	if n.projection, fatal = openProjection(n.home.ProjectionDir(), n.opts.Logger, n.now); fatal != nil {
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
		return distrust, nil
	}
	// What is intact is folded in any case: reads go on.
	if err := n.projection.CatchUp(ctx, n.log, func(done, total uint64) { n.opts.Progress("projection", done, total) }); distrust == nil {
		distrust = err
	}
	return distrust, nil
}

// replicas is the least number of copies of the log.
func (n *Node) replicas() int {
	if n.opts.NATSURL == "" {
		return 1
	}
	return n.config.Replicas
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
	n.group = new(errgroup.Group)
	writing, stopWriting := context.WithCancel(context.WithoutCancel(ctx))
	writer := make(chan struct{})
	go func() { defer close(writer); _ = n.ledger.Run(writing) }()
	n.group.Go(func() error { <-ctx.Done(); return nil })

	trusted := n.ledger.Distrusted() == ""
	if trusted {
		if err := n.takeOver(ctx); err != nil {
			stopWriting()
			<-writer
			return err
		}
		n.follow(ctx)
	}
	dispatching := make(chan struct{})
	if err := n.serve(ctx, trusted, dispatching); err != nil {
		n.stopping()
		stopWriting()
		<-writer
		return err
	}
	go func() {
		<-ctx.Done()
		<-dispatching // M6
		stopWriting()
		<-writer
		n.err = n.group.Wait()
		close(n.done)
	}()
	return n.announce()
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
}

// serve answers requests, and dispatches if the log is trusted.
func (n *Node) serve(ctx context.Context, trusted bool, dispatching chan<- struct{}) error {
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
	queries := projector.NewQueries(n.projection, n.log, n)

	var err error
	if n.service, err = endpoint.New(ctx, n.link.answer, Version, n.opts.Logger); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	for _, verbs := range []map[wire.Verb]endpoint.Serve{commands.Serve(), queries.Serve()} {
		for verb, serve := range verbs {
			if err := n.service.Add(verb, serve); err != nil {
				return err
			}
		}
	}
	if !trusted {
		close(dispatching)
		return nil
	}
	go func() { defer close(dispatching); n.dispatch(ctx) }()
	return nil
}
