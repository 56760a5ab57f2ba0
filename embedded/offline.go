package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/projector"
	"github.com/effectd/effectd/projector/anchor"
)

// OpenLog reads the log of a stopped node: that of an external server, or of the
// store, through a server of its own that nobody else can reach. The release
// gives everything back.
func OpenLog(ctx context.Context, opts Options) (log eventlog.Log, release func(), err error) {
	n := &Node{opts: opts.withDefaults()}
	n.opts.Listen = "127.0.0.1:0"
	log, err = n.openLog(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, n.release(ctx))
	}
	return log, func() { _ = n.release(ctx) }, nil
}

func (n *Node) openLog(ctx context.Context) (eventlog.Log, error) {
	err := n.take()
	if err != nil {
		return nil, err
	}
	if n.opts.NATSURL != "" {
		n.link, err = dialExternal(ctx, n.opts, n.config.TLS)
	} else {
		n.link, err = n.connectToCopy(ctx)
	}
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(n.link.ledger)
	if err != nil {
		return nil, err
	}
	return eventlog.Attach(ctx, js, eventlog.Config{LedgerID: n.home.LedgerID(), Replicas: n.link.replicas(n.config)})
}

// connectToCopy starts the server on a copy of the store: starting on a damaged
// one it would cut it, and with it the evidence.
func (n *Node) connectToCopy(ctx context.Context) (*link, error) {
	var err error
	if n.copied, err = os.MkdirTemp("", "effectd-"); err != nil {
		return nil, err
	}
	if err := os.CopyFS(n.copied, os.DirFS(n.home.NATSDir())); err != nil {
		return nil, fmt.Errorf("copy the store: %w", err)
	}
	private := n.config
	private.TLS = home.TLSConfig{} // nobody else connects
	return connectTo(ctx, n.opts, n.copied, n.home, private)
}

// Rebuild drops the projection of a stopped node and folds it again from the log,
// if that is the log which the anchor has seen: a good projection is not given up
// for a damaged log.
func Rebuild(ctx context.Context, opts Options) (err error) {
	n := &Node{opts: opts.withDefaults()}
	n.opts.Listen = "127.0.0.1:0"
	defer func() { err = errors.Join(err, n.release(ctx)) }()
	log, err := n.openLog(ctx)
	if err != nil {
		return err
	}
	if err := CheckAnchor(ctx, n.opts, log); err != nil {
		return err
	}
	if err := projector.Reset(n.home.ProjectionDir(), projector.Options{}); err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	if n.projection, err = openProjection(n.home.ProjectionDir(), n.home.LedgerID(), n.opts.Logger, n.now); err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	return n.projection.CatchUp(ctx, log, func(done, total uint64) { n.opts.Progress("projection", done, total) })
}

// enter takes the directory, and reaches the server.
func (n *Node) enter(ctx context.Context) error {
	if err := n.take(); err != nil {
		return err
	}
	var err error
	n.link, err = connect(ctx, n.opts, n.home, n.config)
	return err
}

// take opens the directory and locks it.
func (n *Node) take() error {
	var err error
	if n.home, err = home.Open(n.opts.Data, n.opts.Config); err != nil {
		return err
	}
	if n.opts.NATSURL == "" && n.home.Elsewhere() {
		return fmt.Errorf("%s: the log is on an external server: name it with --nats, and a key with --nkey", n.home.Dir())
	}
	if n.config, err = n.home.LoadConfig(); err != nil {
		return err
	}
	n.lock, err = home.Acquire(n.home.Dir())
	return err
}

// CheckAnchor compares a log with the anchor of a data directory, whether a node
// runs there or not: nil, or a *eventlog.Distrust that says what differs.
func CheckAnchor(ctx context.Context, opts Options, log eventlog.Log) error {
	opts = opts.withDefaults()
	h, err := home.Open(opts.Data, opts.Config)
	if err != nil {
		return err
	}
	mark, err := anchor.Read(vfs.Default, opts.anchorDir(h))
	if err != nil {
		return distrust(0, "anchor: "+err.Error())
	}
	status, err := log.Status(ctx)
	if err != nil {
		return err
	}
	if status.Fingerprint(h.LedgerID()) != mark.Fingerprint {
		return distrust(0, "the stream has another fingerprint than the anchor: it was made anew")
	}
	return checkMark(ctx, log, status.LastSeq, "the anchor", mark.Seq, mark.SHA256)
}
