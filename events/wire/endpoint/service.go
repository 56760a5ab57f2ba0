package endpoint

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

// MaxInFlight is how many requests a [Service] serves at a time.
const MaxInFlight = 8192

// Caller is who asks, as the NATS server enforced it.
type Caller struct {
	Tenant    events.Tenant
	Principal events.Principal
}

// Request is one call of a verb. Body is as sent, not checked yet.
type Request struct {
	Caller
	Verb   wire.Verb
	Body   []byte
	Header nats.Header
}

// Serve answers a request: with a value that is encoded as JSON, or a refusal.
// It may block; ctx ends when the context given to [New] ends.
type Serve func(ctx context.Context, r Request) (any, *wire.Error)

// Service is the micro service of one connection.
type Service struct {
	ctx    context.Context
	conn   *nats.Conn
	log    *slog.Logger
	micro  micro.Service
	errors sync.Map // endpoint name → *atomic.Int64

	limit   int
	running sync.WaitGroup
	mu      sync.Mutex // guards the fields below, and running.Add against Stop
	count   int
	stopped bool
}

// New registers the service on a connection that it does not own. version is a
// semantic version. Nothing is served before [Service.Add].
func New(ctx context.Context, conn *nats.Conn, version string, log *slog.Logger) (*Service, error) {
	s := &Service{ctx: ctx, conn: conn, log: log, limit: MaxInFlight}
	var err error
	s.micro, err = micro.AddService(conn, micro.Config{
		Name: wire.ServiceName, Version: version, Description: "governs external effects",
		QueueGroup: wire.ServiceName, StatsHandler: s.stats,
	})
	if err != nil {
		return nil, fmt.Errorf("register service %s: %w", wire.ServiceName, err)
	}
	return s, nil
}

// Add serves a verb, of every principal.
func (s *Service) Add(verb wire.Verb, serve Serve) error {
	name := strings.ReplaceAll(string(verb), ".", "-")
	s.errors.Store(name, new(atomic.Int64))
	err := s.micro.AddEndpoint(name, micro.HandlerFunc(func(r micro.Request) { s.accept(verb, name, serve, r) }),
		micro.WithEndpointSubject(wire.APIPattern(verb)))
	if err != nil {
		return fmt.Errorf("serve %s: %w", verb, err)
	}
	return nil
}

// accept starts the work on a request, and never blocks: all requests for a
// verb come through it one by one.
func (s *Service) accept(verb wire.Verb, name string, serve Serve, m micro.Request) {
	if !strings.HasPrefix(m.Reply(), wire.InboxPrefix) && !strings.HasPrefix(m.Reply(), wire.CrossAccountPrefix) { // N2
		s.log.Warn("request dropped: its reply subject is no inbox", "verb", verb, "subject", m.Subject())
		return
	}
	a := answer{service: s, name: name, to: m.Reply()}
	tenant, principal, ok := wire.CallerOf(m.Subject())
	if !ok {
		a.refuse(wire.Errorf(wire.Forbidden, "the subject names no user"))
		return
	}
	if refusal := s.begin(); refusal != nil {
		a.refuse(refusal)
		return
	}
	r := Request{Caller: Caller{tenant, principal}, Verb: verb, Body: m.Data(), Header: nats.Header(m.Headers())}
	go func() {
		defer s.end()
		a.give(s.call(serve, r))
	}()
}

// call runs serve. A panic is a defect of the program, not of the request.
func (s *Service) call(serve Serve, r Request) (reply any, refusal *wire.Error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("panic while serving", "verb", r.Verb, "panic", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			reply, refusal = nil, wire.Errorf(wire.LedgerUnavailable, "the request failed inside the ledger")
		}
	}()
	return serve(s.ctx, r)
}

func (s *Service) begin() *wire.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopped:
		return wire.Errorf(wire.LedgerUnavailable, "the ledger is stopping")
	case s.count >= s.limit:
		return wire.Errorf(wire.QuotaExceeded, "too many requests are in flight")
	}
	s.count++
	s.running.Add(1)
	return nil
}

func (s *Service) end() {
	s.mu.Lock()
	s.count--
	s.mu.Unlock()
	s.running.Done()
}

// Stop takes no new work, and returns when what runs has been answered. It may
// be called again.
func (s *Service) Stop() error {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	err := s.micro.Stop()
	s.running.Wait()
	if err != nil {
		return fmt.Errorf("stop service: %w", err)
	}
	return nil
}

// stats is what "nats micro stats" shows beside its own numbers. Work goes on
// after the micro handler returns, so micro itself sees no refusal.
func (s *Service) stats(e *micro.Endpoint) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, _ := s.errors.LoadOrStore(e.Name, new(atomic.Int64))
	return map[string]int64{"refused": n.(*atomic.Int64).Load(), "service_in_flight": int64(s.count)}
}
