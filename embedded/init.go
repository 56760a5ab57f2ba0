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
	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/projector/anchor"
)

// InitOptions is where a ledger is created.
type InitOptions struct {
	Data   string
	Logger *slog.Logger
}

// InitResult is what was created.
type InitResult struct {
	LedgerID string   `json:"ledger_id"`
	Data     string   `json:"data"`
	Keys     []string `json:"keys"` // files, one per role
}

// Init creates the ledger: directory, keys, stream, first entries and anchor. It is
// the only thing that ever creates the stream (M2). A directory that has a ledger
// is refused; one that an interrupted Init left is begun again.
func Init(ctx context.Context, o InitOptions) (InitResult, error) {
	opts := Options{Data: o.Data, Listen: "127.0.0.1:0", Logger: o.Logger}.withDefaults()
	h, err := home.Init(o.Data, home.InitOptions{Policy: policy.Default, Now: time.Now()}, func(h *home.Home) error {
		return establish(ctx, opts, h)
	})
	if err != nil {
		return InitResult{}, err
	}
	keys, err := filepath.Glob(filepath.Join(h.KeysDir(), "*.nk"))
	return InitResult{LedgerID: string(h.LedgerID()), Data: h.Dir(), Keys: keys}, err
}

// establish creates the stream, its first entries and the anchor on a server of
// its own.
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

func found(ctx context.Context, link *link, h *home.Home, cfg home.Config) error {
	js, err := jetstream.New(link.ledger)
	if err != nil {
		return err
	}
	log, err := eventlog.Create(ctx, js, eventlog.Config{LedgerID: h.LedgerID(), MaxBytes: int64(cfg.Limits.LogBytes)})
	if err != nil {
		return fmt.Errorf("create the log: %w", err)
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
