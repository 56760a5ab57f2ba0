package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/embedded/natsserver"
	"github.com/effectd/effectd/events"
)

// server is the NATS server that a node embeds, without a node: its two
// connections and one producer.
type server struct {
	nats   *natsserver.Server
	seed   string // file of the producer's seed
	ledger *nats.Conn
	answer *nats.Conn
}

func openServer(ctx context.Context, dir string) (*server, error) {
	s := &server{seed: filepath.Join(dir, "producer.nk")}
	if err := s.open(ctx, dir); err != nil {
		return nil, errors.Join(fmt.Errorf("scratch server: %w", err), s.close(ctx))
	}
	return s, nil
}

func (s *server) open(ctx context.Context, dir string) error {
	key, err := nkeys.CreateUser()
	if err != nil {
		return err
	}
	defer key.Wipe()
	seed, err := key.Seed()
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.seed, bytes.Clone(seed), 0o600); err != nil {
		return err
	}
	public, err := key.PublicKey()
	if err != nil {
		return err
	}
	user := events.User{Tenant: home.DefaultTenant, Principal: producer, Role: events.RoleProducer, PublicKey: public}
	s.nats, err = natsserver.Start(ctx, natsserver.Options{StoreDir: filepath.Join(dir, "nats"), MaxStore: 128 << 30, Users: []events.User{user},
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if s.ledger, err = s.nats.Conn(ctx, natsserver.Ledger); err != nil {
		return err
	}
	s.answer, err = s.nats.Conn(ctx, natsserver.Answer)
	return err
}

func (s *server) close(ctx context.Context) error {
	for _, c := range []*nats.Conn{s.answer, s.ledger} {
		if c != nil {
			c.Close()
		}
	}
	if s.nats == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopBound)
	defer cancel()
	return s.nats.Shutdown(ctx)
}
