package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/embedded/natsserver"
)

// ErrServer: the external server cannot be reached, does not know the ledger's key,
// or asks nobody for one.
var ErrServer = errors.New("the NATS server does not serve this ledger")

// link is the node's connections: one writes the log, another answers users, so
// that no reply subject of a user can reach the log.
type link struct {
	url      string
	server   *natsserver.Server // nil with an external server
	listener *listener          // nil without TLS of our own
	ledger   *nats.Conn
	answer   *nats.Conn
}

// connect starts the embedded server, or reaches the external one.
func connect(ctx context.Context, o Options, h *home.Home, cfg home.Config) (*link, error) {
	if o.NATSURL != "" {
		return dialExternal(ctx, o, cfg.TLS)
	}
	return connectTo(ctx, o, h.NATSDir(), h, cfg)
}

// connectTo starts the embedded server on a store.
func connectTo(ctx context.Context, o Options, store string, h *home.Home, cfg home.Config) (*link, error) {
	listens, err := listenerOf(cfg.TLS)
	if err != nil {
		return nil, err
	}
	host, port, err := splitListen(o.Listen)
	if err != nil {
		return nil, err
	}
	users, err := h.Users()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(store, "jetstream")); err != nil {
		// The server would make an empty store where there was one: the caller sees a
		// missing stream, and the anchor says that there was one.
		o.Logger.Warn("the NATS store directory is missing", "error", err)
	}
	server, err := natsserver.Start(ctx, natsserver.Options{StoreDir: store, Host: host, Port: port, Users: users,
		MaxStore: storeBytes(cfg), TLS: listens.config(), Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	l := &link{url: server.ClientURL(), server: server, listener: listens}
	if l.ledger, err = server.Conn(ctx, natsserver.Ledger); err == nil {
		l.answer, err = server.Conn(ctx, natsserver.Answer)
	}
	if err != nil {
		return nil, errors.Join(err, l.close(ctx))
	}
	return l, nil
}

// storeBytes is room for every stream of the ledger.
func storeBytes(c home.Config) int64 {
	return int64(c.Limits.LogBytes + c.FeedBytes + c.DenialBytes + c.RequestBytes + c.PayloadBytes)
}

func dialExternal(ctx context.Context, o Options, t home.TLSConfig) (*link, error) {
	var secure []nats.Option
	if t.CA != "" {
		trust, err := home.TrustFile(t.CA)
		if err != nil {
			return nil, err
		}
		secure = append(secure, nats.Secure(trust))
	}
	keys, err := home.LoadServiceKeys(o.NKeyFile)
	if err != nil {
		return nil, err
	}
	l := &link{url: o.NATSURL}
	if l.ledger, err = natsserver.Dial(ctx, o.NATSURL, natsserver.Ledger, keys[natsserver.Ledger], o.Logger, secure...); err == nil {
		l.answer, err = natsserver.Dial(ctx, o.NATSURL, natsserver.Answer, keys[natsserver.Answer], o.Logger, secure...)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrServer, err), l.close(ctx))
	}
	return l, nil
}

// replicas is the least number of copies of the log.
func (l *link) replicas(c home.Config) int {
	if l.server != nil {
		return 1
	}
	return c.Replicas
}

func splitListen(listen string) (string, int, error) {
	host, text, err := net.SplitHostPort(listen)
	if err != nil {
		return "", 0, fmt.Errorf("listen: want HOST:PORT")
	}
	port, err := strconv.Atoi(text)
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("listen: want a port of 0 to 65535")
	}
	return host, port, nil
}

// close ends the connections, then the server.
func (l *link) close(ctx context.Context) error {
	for _, c := range []*nats.Conn{l.answer, l.ledger} {
		if c != nil {
			c.Close()
		}
	}
	if l.server == nil {
		return nil
	}
	return l.server.Shutdown(ctx)
}
