package endpoint

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/effectd/effectd/events/wire"
	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

const patience = 10 * time.Second

// fixture is a service and a client on a real server.
type fixture struct {
	*Service
	client *nats.Conn
	log    *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.String()
}

func start(t *testing.T) fixture {
	t.Helper()
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, MaxPayload: 4096})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(patience) {
		t.Fatal("server not ready")
	}
	connect := func() *nats.Conn {
		c, err := nats.Connect(srv.ClientURL())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	log := &lockedBuffer{}
	conn := connect()
	s, err := New(ctx, conn, "1.2.3", slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return fixture{s, connect(), log}
}

func (f fixture) add(t *testing.T, serve Serve) {
	t.Helper()
	if err := f.Add(wire.EffectGet, serve); err != nil {
		t.Fatal(err)
	}
	if err := f.conn.Flush(); err != nil { // the server knows the subscription
		t.Fatal(err)
	}
}

var getSubject = wire.APISubject("main", "producer", wire.EffectGet)

func (f fixture) ask(t *testing.T, body string) *nats.Msg {
	t.Helper()
	m, err := f.client.Request(getSubject, []byte(body), patience)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return m
}

// N3: a reply is the object itself; N1: the caller is the subject's.
func TestReply(t *testing.T) {
	f := start(t)
	got := make(chan Request, 1)
	f.add(t, func(_ context.Context, r Request) (any, *wire.Error) {
		got <- r
		return wire.Budget{Max: 3, Available: 2}, nil
	})
	m, err := f.client.RequestMsg(&nats.Msg{Subject: getSubject, Data: []byte(`{"effect_id":"E"}`), Header: nats.Header{"traceparent": {"00-1"}}}, patience)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"max":3,"reserved":0,"spent":0,"unknown":0,"available":2}`; string(m.Data) != want || len(m.Header) != 0 {
		t.Errorf("got %s %v, want %s", m.Data, m.Header, want)
	}
	r := <-got
	if r.Caller != (Caller{"main", "producer"}) || r.Verb != wire.EffectGet || string(r.Body) != `{"effect_id":"E"}` || r.Header.Get("traceparent") != "00-1" {
		t.Errorf("%+v", r)
	}
}

func check(t *testing.T, m *nats.Msg, code wire.Code, status string) wire.ErrorReply {
	t.Helper()
	var body wire.ErrorReply
	if err := json.Unmarshal(m.Data, &body); err != nil || body.Error == nil {
		t.Fatalf("%s: %v", m.Data, err)
	}
	if body.Error.Code != code || m.Header.Get("Nats-Service-Error-Code") != status || m.Header.Get("Nats-Service-Error") != string(code) {
		t.Errorf("got %s %v, want %s %s", m.Data, m.Header, code, status)
	}
	return body
}

// SPEC 6: headers and body of a refusal.
func TestRefusal(t *testing.T) {
	f := start(t)
	f.add(t, func(context.Context, Request) (any, *wire.Error) {
		return nil, &wire.Error{Code: wire.TooLate, Message: "it is admitted", Field: "effect_id", Effect: &wire.Effect{EffectID: "E", State: wire.StateAdmitted}}
	})
	body := check(t, f.ask(t, ""), wire.TooLate, "409")
	if body.Error.Effect.EffectID != "E" || body.Error.Field != "effect_id" {
		t.Errorf("%+v", body.Error)
	}
}

// N2: a forged reply subject gets nothing, and the request is not served.
func TestForgedReplySubject(t *testing.T) {
	f := start(t)
	var served atomic.Int64
	f.add(t, func(context.Context, Request) (any, *wire.Error) { served.Add(1); return struct{}{}, nil })
	forged, err := f.client.SubscribeSync(wire.LogSubject)
	if err != nil {
		t.Fatal(err)
	}
	for _, reply := range []string{wire.LogSubject, "", "effects.api.main.operator.effect.settle", "_INBOXES.x"} {
		if err := f.client.PublishMsg(&nats.Msg{Subject: getSubject, Reply: reply, Data: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
	f.ask(t, "") // comes after them, on the same subscription
	if n := served.Load(); n != 1 {
		t.Errorf("%d requests served, want 1", n)
	}
	if n, _, _ := forged.Pending(); n != 0 {
		t.Errorf("%d messages on %s", n, wire.LogSubject)
	}
	if got := strings.Count(f.log.text(), "request dropped"); got != 4 {
		t.Errorf("%d drops logged:\n%s", got, f.log.text())
	}
}

// N1: the reserved tenant is no caller.
func TestReservedCaller(t *testing.T) {
	f := start(t)
	f.add(t, func(context.Context, Request) (any, *wire.Error) { return struct{}{}, nil })
	m, err := f.client.Request("effects.api._.ledger.effect.get", nil, patience)
	if err != nil {
		t.Fatal(err)
	}
	check(t, m, wire.Forbidden, "403")
}

// A request that waits holds up no other, up to the bound; at the bound the
// next is refused, and after it served again.
func TestInFlight(t *testing.T) {
	f := start(t)
	f.limit = 3
	entered, release := make(chan struct{}), make(chan struct{})
	f.add(t, func(_ context.Context, r Request) (any, *wire.Error) {
		if string(r.Body) == "wait" {
			entered <- struct{}{}
			<-release
		}
		return string(r.Body), nil
	})
	var waiting sync.WaitGroup
	block := func() {
		waiting.Go(func() {
			if m, err := f.client.Request(getSubject, []byte("wait"), patience); err != nil || string(m.Data) != `"wait"` {
				t.Errorf("%v %v", m, err)
			}
		})
		<-entered
	}
	block()
	block()
	if m := f.ask(t, "quick"); string(m.Data) != `"quick"` {
		t.Errorf("%s", m.Data)
	}
	block()
	check(t, f.ask(t, "quick"), wire.QuotaExceeded, "429")
	close(release)
	waiting.Wait()
	for m := f.ask(t, "quick"); string(m.Data) != `"quick"`; m = f.ask(t, "quick") {
		check(t, m, wire.QuotaExceeded, "429") // an answer goes out before its slot is free
	}
}

// N3: a panic is answered and logged, without its value; the service lives on.
func TestPanic(t *testing.T) {
	f := start(t)
	f.add(t, func(_ context.Context, r Request) (any, *wire.Error) {
		if len(r.Body) > 0 {
			panic("s3cr3t")
		}
		return struct{}{}, nil
	})
	check(t, f.ask(t, "x"), wire.LedgerUnavailable, "503")
	if m := f.ask(t, ""); string(m.Data) != `{}` {
		t.Errorf("%s", m.Data)
	}
	if log := f.log.text(); !strings.Contains(log, "panic while serving") || strings.Contains(log, "s3cr3t") {
		t.Error(log)
	}
}

// N3 for replies that cannot be sent.
func TestReplyThatCannotBeSent(t *testing.T) {
	f := start(t)
	f.add(t, func(_ context.Context, r Request) (any, *wire.Error) {
		if len(r.Body) > 0 {
			return strings.Repeat("x", 5000), nil
		}
		return make(chan int), nil
	})
	check(t, f.ask(t, "large"), wire.RecordTooLarge, "413")
	check(t, f.ask(t, ""), wire.LedgerUnavailable, "503")
}

// N4: Stop waits for what runs, which is answered, and starts nothing.
func TestStop(t *testing.T) {
	f := start(t)
	entered, release := make(chan struct{}), make(chan struct{})
	var served atomic.Int64
	f.add(t, func(context.Context, Request) (any, *wire.Error) {
		served.Add(1)
		close(entered)
		<-release
		return struct{}{}, nil
	})
	answered := make(chan error, 1)
	go func() {
		_, err := f.client.Request(getSubject, nil, patience)
		answered <- err
	}()
	<-entered
	stopped := make(chan error, 1)
	go func() { stopped <- f.Stop() }()
	for stopping := false; !stopping; runtime.Gosched() {
		f.mu.Lock()
		stopping = f.stopped
		f.mu.Unlock()
	}
	for { // until the server has lost the subscription
		m, err := f.client.Request(getSubject, nil, patience)
		if errors.Is(err, nats.ErrNoResponders) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		check(t, m, wire.LedgerUnavailable, "503")
	}
	select {
	case err := <-stopped:
		t.Fatalf("stopped while a request runs: %v", err)
	default:
	}
	close(release)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if err := f.Stop(); err != nil || served.Load() != 1 {
		t.Errorf("%v, %d served", err, served.Load())
	}
}

// SPEC 6: the verbs show as one micro service.
func TestMicroInfo(t *testing.T) {
	f := start(t)
	f.add(t, func(context.Context, Request) (any, *wire.Error) {
		return nil, wire.Errorf(wire.UnknownEffect, "no such effect")
	})
	f.ask(t, "")
	m, err := f.client.Request("$SRV.INFO.effectd", nil, patience)
	if err != nil {
		t.Fatal(err)
	}
	var info micro.Info
	if err := json.Unmarshal(m.Data, &info); err != nil {
		t.Fatal(err)
	}
	if len(info.Endpoints) != 1 || info.Version != "1.2.3" || info.Endpoints[0].Name != "effect-get" ||
		info.Endpoints[0].Subject != "effects.api.*.*.effect.get" || info.Endpoints[0].QueueGroup != "effectd" {
		t.Errorf("%s", m.Data)
	}
	if m, err = f.client.Request("$SRV.STATS.effectd", nil, patience); err != nil || !strings.Contains(string(m.Data), `"refused":1`) {
		t.Errorf("%s %v", m.Data, err)
	}
}
