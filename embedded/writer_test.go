package embedded_test

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
	"github.com/oklog/ulid/v2"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/ledger"
	"github.com/effectd/effectd/aggregate/operation"
	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/events/wire"
)

// hands are clocks that a test moves.
type hands struct {
	mu   sync.Mutex
	wall events.Instant
	mono time.Duration
}

func newHands() *hands { return &hands{wall: events.InstantOf(time.Now())} }

func (h *hands) read() ledger.Reading {
	h.mu.Lock()
	defer h.mu.Unlock()
	return ledger.Reading{Wall: h.wall, Mono: h.mono}
}

// pass lets time pass; step moves the wall clock alone.
func (h *hands) pass(d time.Duration) { h.move(d, d) }
func (h *hands) step(d time.Duration) { h.move(d, 0) }

func (h *hands) move(wall, mono time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wall, h.mono = h.wall.Add(wall), h.mono+mono
}

func newIncarnation() events.Incarnation {
	return events.Incarnation(ulid.MustNew(ulid.Now(), rand.Reader).String())
}

// write runs a writer on a log until the test ends. It starts from the fold of
// the log.
func write(t testing.TB, cfg ledger.Config, log eventlog.Log) *ledger.Ledger {
	t.Helper()
	l, stop := writeUntil(t, cfg, log)
	t.Cleanup(stop)
	return l
}

func writeUntil(t testing.TB, cfg ledger.Config, log eventlog.Log) (l *ledger.Ledger, stop func()) {
	t.Helper()
	cfg.Writer, cfg.Entropy, cfg.Logger = newIncarnation(), rand.Reader, logger()
	l = ledger.New(cfg, log, folded(t, readAll(t, log)))
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() { defer close(over); _ = l.Run(ctx) }()
	return l, func() { cancel(); <-over }
}

// do decides a command of the ledger or its owner, which must be accepted.
func do(t testing.TB, l *ledger.Ledger, who events.Actor, c aggregate.Command) ledger.Outcome {
	t.Helper()
	o, err := l.Do(t.Context(), who, c)
	if err != nil {
		t.Fatal(err)
	}
	if o.Refusal != nil {
		t.Fatal(o.Refusal)
	}
	return o
}

var (
	producer = aggregate.Caller{Tenant: "main", Principal: "producer"}
	operator = aggregate.Caller{Tenant: "main", Principal: "operator"}
)

// found writes the law of a small ledger with these principals as producers.
func found(t testing.TB, l *ledger.Ledger, producers ...events.Principal) {
	t.Helper()
	foundFor(t, l, "http://127.0.0.1:1", producers...)
}

// foundFor is found for a service at a place.
func foundFor(t testing.TB, l *ledger.Ledger, url string, producers ...events.Principal) {
	t.Helper()
	users := []events.User{{Tenant: "main", Principal: "operator", Role: events.RoleOperator, PublicKey: publicKey(t)}}
	holders := []events.Actor{}
	for _, p := range producers {
		users = append(users, events.User{Tenant: "main", Principal: p, Role: events.RoleProducer, PublicKey: publicKey(t)})
		holders = append(holders, events.ActorOf("main", p))
	}
	contract, err := operation.Compile("charge.yaml", []byte(strings.ReplaceAll(chargeContract, "URL", url)))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []aggregate.Command{
		aggregate.OpenLedger{LedgerID: "01LEDGER", Writer: newIncarnation(), Node: "test", Program: "test", Fingerprint: events.ZeroDigest},
		aggregate.ChangeAccess{Users: users},
		aggregate.ChangePolicy{Text: policy.Default},
		aggregate.RegisterOperation{Contract: contract},
	} {
		do(t, l, events.SystemActor, c)
	}
	at, _ := l.Now()
	do(t, l, operator.Actor(), aggregate.OpenTask{Caller: operator, ExpiresAt: at.Add(24 * time.Hour),
		Request: wire.TaskOpenRequest{TaskID: "shop", Budgets: events.Amounts{"usd_cents": 1_000_000, "effects": 1_000_000}, Holders: holders}})
}

func publicKey(t testing.TB) string {
	t.Helper()
	key, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	pub, err := key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return pub
}

// prepare is the command of a request.
func prepare(t testing.TB, c aggregate.Caller, r wire.PrepareRequest, admit bool) aggregate.Prepare {
	t.Helper()
	payload, err := operation.ParsePayload(r.Payload)
	if err != nil {
		t.Fatal(err)
	}
	return aggregate.Prepare{Caller: c, Request: r, RequestSHA256: r.Digest(), Payload: payload, Admit: admit}
}

// queued is a context that tells when who uses it has begun to wait for the end.
type queued struct {
	context.Context
	once *sync.Once
	told *sync.WaitGroup
}

func newQueued(ctx context.Context, told *sync.WaitGroup) queued {
	told.Add(1)
	return queued{ctx, new(sync.Once), told}
}

func (q queued) Done() <-chan struct{} {
	q.once.Do(q.told.Done)
	return q.Context.Done()
}
