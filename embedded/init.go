package embedded

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/ledger"
	"github.com/effectd/effectd/aggregate/ledger/intake"
	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/projector/anchor"
)

// ErrReplicas: the external server cannot keep as many copies of the log as are
// configured.
var ErrReplicas = errors.New("the NATS server cannot keep so many copies of the log")

// InitOptions is where a ledger is created.
type InitOptions struct {
	Data     string
	NATSURL  string // an external server for the log instead of the embedded one
	NKeyFile string // the seed of the ledger's user there; default: below Data, made when it is missing
	Logger   *slog.Logger
}

// InitResult is what was created.
type InitResult struct {
	LedgerID string   `json:"ledger_id"`
	Data     string   `json:"data"`
	Keys     []string `json:"keys"`          // files, one per role, and the ledger's own
	NKeyFile string   `json:"nkey,omitzero"` // the ledger's own, on an external server
}

// Init creates the ledger: directory, keys, streams, first entries and anchor. It is
// the only thing that ever creates the streams (M2). A directory that has a ledger
// is refused, and a server with the stream of another one. What an interrupted Init
// left is gone on with, so an external server can be configured in between: until
// then the error is [ErrServer].
func Init(ctx context.Context, o InitOptions) (InitResult, error) {
	opts := Options{Data: o.Data, Listen: "127.0.0.1:0", NATSURL: o.NATSURL, NKeyFile: o.NKeyFile, Logger: o.Logger}.withDefaults()
	begin := home.InitOptions{Policy: policy.Default, Now: time.Now(), External: o.NATSURL != ""}
	h, err := home.Init(o.Data, begin, func(h *home.Home) (err error) {
		if opts.NATSURL != "" && opts.NKeyFile == "" {
			if opts.NKeyFile, err = h.LedgerKeyFile(); err != nil {
				return err
			}
		}
		return establish(ctx, opts, h)
	})
	if err != nil {
		return InitResult{}, err
	}
	keys, err := filepath.Glob(filepath.Join(h.KeysDir(), "*.nk"))
	return InitResult{LedgerID: string(h.LedgerID()), Data: h.Dir(), Keys: keys, NKeyFile: opts.NKeyFile}, err
}

// establish creates the stream, its first entries and the anchor.
func establish(ctx context.Context, o Options, h *home.Home) error {
	cfg, err := h.LoadConfig()
	if err != nil {
		return err
	}
	link, err := connect(ctx, o, h, cfg)
	if err != nil {
		return err
	}
	return errors.Join(found(ctx, link, h, cfg), link.close(ctx))
}

// create makes the stream, or attaches to the one that an interrupted init of this
// ledger made.
func create(ctx context.Context, js jetstream.JetStream, c eventlog.Config) (*eventlog.Stream, error) {
	log, err := eventlog.Create(ctx, js, c)
	if !errors.Is(err, eventlog.ErrExists) {
		return log, noCopies(err, c.Replicas)
	}
	if of, e := eventlog.MadeFor(ctx, js); e != nil || of != c.LedgerID {
		return nil, errors.Join(err, e)
	}
	return eventlog.Attach(ctx, js, c)
}

// noCopies marks the refusal of a server that is no cluster, or one too small.
func noCopies(err error, replicas int) error {
	var refused *jetstream.APIError
	if errors.As(err, &refused) && (refused.ErrorCode == errNotClustered || refused.ErrorCode == errNoPeers) {
		return fmt.Errorf("%w: %d: %w", ErrReplicas, replicas, err)
	}
	return err
}

// Error codes of the server that the client has no names for.
const (
	errNoPeers      jetstream.ErrorCode = 10005
	errNotClustered jetstream.ErrorCode = 10074
)

func found(ctx context.Context, link *link, h *home.Home, cfg home.Config) error {
	js, err := jetstream.New(link.ledger)
	if err != nil {
		return err
	}
	log, err := create(ctx, js, eventlog.Config{LedgerID: h.LedgerID(), Replicas: link.replicas(cfg), MaxBytes: int64(cfg.Limits.LogBytes)})
	if err != nil {
		return fmt.Errorf("create the log: %w", err)
	}
	if err := intake.Create(ctx, js, intakeConfig(cfg, link.replicas(cfg))); err != nil {
		return err
	}
	status, err := log.Status(ctx)
	if err != nil {
		return err
	}
	users, err := h.Users()
	if err != nil {
		return err
	}
	fingerprint := status.Fingerprint(h.LedgerID())
	writer := events.Incarnation(newID())
	l := ledger.New(ledger.Config{Writer: writer, Read: now, Entropy: rand.Reader}, log, aggregate.New())
	running, stop := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() { defer close(over); _ = l.Run(running) }()
	defer func() { stop(); <-over }()
	for _, c := range []aggregate.Command{
		aggregate.OpenLedger{LedgerID: h.LedgerID(), Writer: writer, Node: h.Node(cfg), Program: Program, Limits: cfg.LedgerLimits(), Fingerprint: fingerprint},
		aggregate.ChangeAccess{Users: users},
		aggregate.ChangePolicy{Text: policy.Default},
	} {
		if o, err := l.Do(ctx, events.SystemActor, c); err != nil {
			return err
		} else if o.Refusal != nil {
			return o.Refusal
		}
	}
	head := l.State().Head()
	return anchor.Create(vfs.Default, h.AnchorDir(), anchor.Mark{LedgerID: h.LedgerID(), Fingerprint: fingerprint, Seq: head.Seq, SHA256: head.SHA256,
		Time: events.InstantOf(time.Now())})
}
