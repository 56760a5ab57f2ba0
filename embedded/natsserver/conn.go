package natsserver

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// Conn opens a connection of a service, inside the process. The caller closes it.
func (s *Server) Conn(ctx context.Context, svc Service, opts ...nats.Option) (*nats.Conn, error) {
	key, known := s.keys[svc]
	if !known {
		return nil, fmt.Errorf("nats connection: unknown service %q", svc)
	}
	return dial(ctx, "", svc, key, s.log, append([]nats.Option{nats.InProcessServer(s.nats)}, opts...))
}

// Dial opens a connection of a service to an external server. The caller closes it.
func Dial(ctx context.Context, url string, svc Service, key nkeys.KeyPair, log *slog.Logger, opts ...nats.Option) (*nats.Conn, error) {
	return dial(ctx, url, svc, key, log, opts)
}

// dial connects with an inbox of the service's own, and no buffer while
// disconnected: what could not be sent must not be sent later (SPEC 8).
func dial(ctx context.Context, url string, svc Service, key nkeys.KeyPair, log *slog.Logger, extra []nats.Option) (*nats.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("nats connection: service %s: %w", svc, err)
	}
	pub, err := key.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("nats connection: service %s: %w", svc, err)
	}
	log = log.With("service", string(svc))
	opts := []nats.Option{
		nats.Nkey(pub, key.Sign),
		nats.Name("effectd " + string(svc)),
		nats.CustomInboxPrefix(serviceInbox(svc)),
		nats.ReconnectBufSize(-1),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(100 * time.Millisecond),
		nats.IgnoreAuthErrorAbort(),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { log.Error("nats connection", "err", err) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("nats connection lost", "err", err)
			}
		}),
	}
	if deadline, ok := ctx.Deadline(); ok {
		opts = append(opts, nats.Timeout(time.Until(deadline)))
	}
	nc, err := nats.Connect(url, append(opts, extra...)...)
	if err != nil {
		return nil, fmt.Errorf("nats connection: service %s: %w", svc, err)
	}
	return nc, nil
}
