package natsserver

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"go.uber.org/goleak"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		println(err.Error())
		code = 1
	}
	os.Exit(code)
}

const patience = 10 * time.Second

// person is a user with its secret.
type person struct {
	events.User
	key nkeys.KeyPair
}

func newPerson(t testing.TB, tenant, principal string, role events.Role, operations ...string) person {
	t.Helper()
	key, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	pub, err := key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return person{key: key, User: events.User{Tenant: events.Tenant(tenant), Principal: events.Principal(principal), Role: role,
		PublicKey: pub, Operations: operations}}
}

func rows(people ...person) []events.User {
	out := make([]events.User, len(people))
	for i, p := range people {
		out[i] = p.User
	}
	return out
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func startServer(t testing.TB, people ...person) *Server {
	t.Helper()
	s, err := Start(t.Context(), Options{StoreDir: t.TempDir(), Users: rows(people...), Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// client is a user's connection; refused gets what the server forbids.
type client struct {
	*nats.Conn
	refused chan error
	closed  chan error
}

func dialAs(t testing.TB, url string, p person, opts ...nats.Option) *client {
	t.Helper()
	c := &client{refused: make(chan error, 1024), closed: make(chan error, 1)}
	nc, err := nats.Connect(url, append([]nats.Option{
		nats.Nkey(p.PublicKey, p.key.Sign),
		nats.CustomInboxPrefix(wire.Inbox(p.Tenant, p.Principal)),
		nats.NoReconnect(),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { c.refused <- err }),
		nats.ClosedHandler(func(nc *nats.Conn) { c.closed <- nc.LastError() }),
	}, opts...)...)
	if err != nil {
		t.Fatalf("%s/%s connects: %v", p.Tenant, p.Principal, err)
	}
	t.Cleanup(nc.Close)
	c.Conn = nc
	return c
}

// forbidden fails the test unless the server refuses act, and reports nothing else.
func (c *client) forbidden(t testing.TB, what string, act func() error) {
	t.Helper()
	if err := act(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	select {
	case err := <-c.refused:
		if !errors.Is(err, nats.ErrPermissionViolation) {
			t.Errorf("%s: %v, want a permissions violation", what, err)
		}
	case <-time.After(patience):
		t.Errorf("%s: allowed", what)
	}
}

// unrefused fails the test when the server refused something so far.
func (c *client) unrefused(t testing.TB, what string) {
	t.Helper()
	if err := c.Flush(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if err := c.LastError(); errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("%s: %v", what, err)
	}
}

func serviceConn(t testing.TB, s *Server, svc Service) *nats.Conn {
	t.Helper()
	nc, err := s.Conn(t.Context(), svc)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// serveAPI answers every request with its own subject.
func serveAPI(t testing.TB, nc *nats.Conn) {
	t.Helper()
	if _, err := nc.QueueSubscribe("effects.api.*.*.>", "q", func(m *nats.Msg) { _ = m.Respond([]byte(m.Subject)) }); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
}

// makeStreams makes the streams of a ledger with one message each in the log and
// the feed, and returns the log.
func makeStreams(t testing.TB, nc *nats.Conn) jetstream.Stream {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	var log jetstream.Stream
	for name, subject := range map[string]string{wire.LogStream: wire.LogSubject, wire.FeedStream: "effects.event.*.*.*",
		wire.DenialStream: "effects.denied.*.*", wire.RequestStream: "effects.requests.*.*"} {
		st, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{subject}, AllowDirect: true})
		if err != nil {
			t.Fatal(err)
		}
		if name == wire.LogStream {
			log = st
		}
	}
	for _, subject := range []string{wire.LogSubject, wire.LogSubject, "effects.event.main.charge.prepared"} {
		if _, err := js.Publish(t.Context(), subject, []byte("first")); err != nil {
			t.Fatal(err)
		}
	}
	return log
}
