package client

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
	"github.com/effectd/effectd/events/wire/endpoint"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// ledger is a real server with the users main/producer, who may ask for
// effects only, and the service.
type ledger struct {
	url, seedFile string
	server        *server.Server
	service       *endpoint.Service
}

func start(t *testing.T) ledger {
	t.Helper()
	producer, service := newKey(t), newKey(t)
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, Nkeys: []*server.NkeyUser{
		{Nkey: publicKey(t, service)},
		{Nkey: publicKey(t, producer), Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: []string{"effects.api.main.producer.effect.*", "effects.api.main.producer.ledger.status"}},
			Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.main.producer.>"}},
		}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(10 * time.Second) {
		t.Fatal("server not ready")
	}
	key, err := nats.NkeyOptionFromSeed(seedFile(t, service))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := nats.Connect(srv.ClientURL(), key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	s, err := endpoint.New(t.Context(), conn, "0.0.0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range wire.Verbs() {
		if v == wire.EffectList {
			continue // served by nobody
		}
		if err := s.Add(v, serve); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	return ledger{srv.ClientURL(), seedFile(t, producer), srv, s}
}

func serve(ctx context.Context, r endpoint.Request) (any, *wire.Error) {
	switch r.Verb {
	case wire.EffectGet:
		req, refusal := wire.Decode[wire.GetRequest](r.Body)
		if refusal != nil {
			return nil, refusal
		}
		return wire.Effect{EffectID: req.EffectID, State: wire.StatePermitted, Principal: r.Principal, Repeat: true}, nil
	case wire.EffectWithdraw:
		return nil, &wire.Error{Code: wire.TooLate, Message: "it is admitted", Effect: &wire.Effect{EffectID: "E", State: wire.StateAdmitted}}
	case wire.EffectSubmit:
		<-ctx.Done() // never answers in time
	}
	return struct{}{}, nil
}

func newKey(t *testing.T) nkeys.KeyPair {
	t.Helper()
	k, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func publicKey(t *testing.T, k nkeys.KeyPair) string {
	t.Helper()
	p, err := k.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func seedFile(t *testing.T, k nkeys.KeyPair) string {
	t.Helper()
	seed, err := k.Seed()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "user.nk")
	if err := os.WriteFile(file, seed, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func dial(t *testing.T, l ledger) *Client {
	t.Helper()
	c, err := Dial(l.url, l.seedFile, "main", "producer")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestReplyAndRefusal(t *testing.T) {
	c := dial(t, start(t))
	got, err := c.Get(t.Context(), wire.GetRequest{EffectID: "E"})
	if err != nil || got.EffectID != "E" || got.State != wire.StatePermitted || got.Principal != "producer" || !got.Repeat {
		t.Errorf("%+v, %v", got, err)
	}
	var refusal *wire.Error
	if _, err := c.Get(t.Context(), wire.GetRequest{}); !errors.As(err, &refusal) || refusal.Code != wire.InvalidRequest || refusal.Field != "effect_id" {
		t.Errorf("%v", err)
	}
	_, err = c.Withdraw(t.Context(), wire.EffectReasonRequest{EffectID: "E"})
	if !errors.As(err, &refusal) || refusal.Code != wire.TooLate || refusal.Effect.State != wire.StateAdmitted || errors.Is(err, ErrUnreachable) {
		t.Errorf("%v", err)
	}
	raw, err := Call[events.Raw, events.Raw](t.Context(), c, wire.EffectGet, events.Raw(`{"effect_id":"F"}`))
	if err != nil || len(raw) == 0 {
		t.Errorf("%s, %v", raw, err)
	}
}

// A denied publish is silence on the connection; the caller is told at once.
func TestDenied(t *testing.T) {
	l := start(t)
	c := dial(t, l)
	if _, err := c.TaskOpen(t.Context(), wire.TaskOpenRequest{TaskID: "t"}); !errors.Is(err, ErrDenied) || errors.Is(err, ErrUnreachable) {
		t.Errorf("denied verb: %v", err)
	}
	if _, err := c.Get(t.Context(), wire.GetRequest{EffectID: "E"}); err != nil {
		t.Errorf("after a denial: %v", err)
	}
	other, err := Dial(l.url, l.seedFile, "main", "operator") // the producer's key under another name
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Get(t.Context(), wire.GetRequest{EffectID: "E"}); !errors.Is(err, ErrDenied) {
		t.Errorf("foreign principal: %v", err)
	}
	if _, err := Dial(l.url, seedFile(t, newKey(t)), "main", "producer"); !errors.Is(err, ErrDenied) {
		t.Errorf("unknown key: %v", err)
	}
}

func TestUnreachable(t *testing.T) {
	l := start(t)
	closed := make(chan struct{})
	c, err := Dial(l.url, l.seedFile, "main", "producer", nats.DisconnectErrHandler(func(*nats.Conn, error) { close(closed) }))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.List(t.Context(), wire.ListRequest{}); !errors.Is(err, ErrUnreachable) || errors.Is(err, ErrNoAnswer) {
		t.Errorf("no responders: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Submit(ctx, wire.SubmitRequest{}); !errors.Is(err, ErrNoAnswer) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("time-out: %v", err)
	}
	l.server.Shutdown()
	<-closed
	if _, err := c.Status(t.Context()); !errors.Is(err, ErrUnreachable) || errors.Is(err, ErrNoAnswer) {
		t.Errorf("C1, without a server: %v", err)
	}
	if _, err := Dial(l.url, l.seedFile, "main", "producer"); !errors.Is(err, ErrUnreachable) {
		t.Errorf("dial: %v", err)
	}
}

func TestPatience(t *testing.T) {
	for req, want := range map[any]time.Duration{
		wire.GetRequest{TimeoutMS: 60_000}:       Patience + time.Minute,
		wire.ReconcileRequest{DeadlineMS: 1000}:  Patience + time.Second,
		wire.EmptyRequest{}:                      Patience,
		wire.GetRequest{TimeoutMS: wire.MaxMS}:   Patience + time.Duration(wire.MaxMS/2)*time.Millisecond,
		wire.ReconcileRequest{DeadlineMS: -1000}: Patience + time.Duration(wire.MaxMS/2)*time.Millisecond,
	} {
		if got := patienceFor(req); got != want {
			t.Errorf("%+v: %v, want %v", req, got, want)
		}
	}
}
