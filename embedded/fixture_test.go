package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/embedded"
	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/embedded/natsserver"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/events/wire"
	"github.com/effectd/effectd/projector"
)

// patience is what any wait may take before it is a failure.
const patience = 60 * time.Second

const chargeContract = `
name: charge
version: 1
input:
  type: object
  required: [account, amount]
  additionalProperties: false
  properties: {account: {type: string}, amount: {type: integer, minimum: 1}, note: {type: string}}
resource: account/${payload.account}
exposes: [account, amount]
cost: {usd_cents: payload.amount}
timeout: 10s
concurrency: 32
adapter: {kind: http, method: POST, url: URL/charges}
idempotency: {header: Idempotency-Key, scope: account, retention: 24h, concurrent: true, mismatch_rejected: true}
outcomes:
  - {when: "response.status in [200, 201]", outcome: succeeded, means: completed, provider_ref: response.json.id, cost: {usd_cents: response.json.amount}}
  - {when: response.status == 402, outcome: failed, cost: {usd_cents: "0"}}
reconcile:
  query: {method: GET, url: "URL/charges?key=${idempotency_key}"}
  rules:
    - {when: response.status == 200 && size(response.json.items) > 0, outcome: succeeded, provider_ref: "response.json.items[0].id", cost: {usd_cents: "response.json.items[0].amount"}}
    - {when: response.status == 200, not_found: true}
`

// rig is a data directory, and the node that runs on it, if one does.
type rig struct {
	testing.TB
	dir  string
	opts embedded.Options
	node *embedded.Node

	mu      sync.Mutex
	clients map[string]*client.Client
}

// newRig is a fresh ledger with the charge contract for a service. Edits replace
// text of the contract, in pairs.
func newRig(t testing.TB, s *service, edits ...string) *rig {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if _, err := embedded.Init(t.Context(), embedded.InitOptions{Data: dir, Logger: logger()}); err != nil {
		t.Fatal(err)
	}
	r := &rig{TB: t, dir: dir, opts: embedded.Options{Data: dir, Listen: "127.0.0.1:0", Logger: logger(), ShutdownBudget: 10 * time.Second}}
	r.write("operations/charge.yaml", strings.NewReplacer(append(edits, "URL", s.URL)...).Replace(chargeContract))
	t.Cleanup(r.stop)
	return r
}

// running is a fresh ledger with a node that serves, and the task "shop".
func running(t testing.TB, s *service, edits ...string) *rig {
	t.Helper()
	r := newRig(t, s, edits...)
	r.start()
	r.openTask("shop", 1_000_000)
	return r
}

func logger() *slog.Logger {
	if testing.Verbose() {
		return slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return slog.New(slog.DiscardHandler)
}

// write puts a file into the data directory.
func (r *rig) write(name, text string) {
	r.Helper()
	file := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) start() {
	r.Helper()
	var err error
	if r.node, err = embedded.Start(r.Context(), r.opts); err != nil {
		r.Fatal(err)
	}
}

// stop ends the node; without one it does nothing.
func (r *rig) stop() {
	r.Helper()
	if r.node == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r.hangUp()
	if err := r.node.Stop(ctx); err != nil {
		r.Error(err)
	}
	r.node = nil
}

func (r *rig) restart() {
	r.Helper()
	r.stop()
	r.start()
}

// as connects as a user of the tenant main; once per life of the node.
func (r *rig) as(who string) *client.Client {
	r.Helper()
	url := r.node.Ready().NATSURL
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.clients[url+who]; c != nil && c.Conn().IsConnected() {
		return c
	}
	if r.clients == nil {
		r.clients = map[string]*client.Client{}
	}
	r.clients[url+who] = r.another(who)
	return r.clients[url+who]
}

// another is a connection of its own.
func (r *rig) another(who string) *client.Client {
	r.Helper()
	return dial(r, r.node.Ready().NATSURL, r.dir, who)
}

// hangUp ends the connections of as.
func (r *rig) hangUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.clients {
		c.Close()
	}
	r.clients = nil
}

func dial(t testing.TB, url, dir, who string) *client.Client {
	t.Helper()
	c, err := client.Dial(url, filepath.Join(dir, "keys", who+".nk"), "main", events.Principal(who))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func (r *rig) openTask(id events.TaskID, cents int64) {
	r.Helper()
	if _, err := r.as("operator").TaskOpen(r.Context(), taskRequest(id, cents)); err != nil {
		r.Fatal(err)
	}
}

func taskRequest(id events.TaskID, cents int64) wire.TaskOpenRequest {
	return wire.TaskOpenRequest{TaskID: id, Budgets: events.Amounts{"usd_cents": cents, "effects": 1_000_000},
		Holders: []events.Actor{"main/producer"}, ExpiresAt: time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)}
}

func ptr[T any](v T) *T { return &v }

func sealed(run, causal string) wire.SealedContext {
	return wire.SealedContext{RunID: ptr(events.RunID(run)), CausalID: ptr(events.CausalID(causal))}
}

func charge(run, causal string, amount int) wire.PrepareRequest {
	return wire.PrepareRequest{TaskID: "shop", Operation: "charge", Payload: events.Raw(fmt.Sprintf(`{"account":"a-1","amount":%d}`, amount)),
		SealedContext: sealed(run, causal)}
}

// submit charges 5 and waits for the end.
func (r *rig) submit(run, causal string) wire.Effect {
	r.Helper()
	e, err := r.as("producer").Submit(r.Context(), wire.SubmitRequest{PrepareRequest: charge(run, causal, 5), Wait: wire.WaitTerminal,
		TimeoutMS: patience.Milliseconds()})
	if err != nil {
		r.Fatal(err)
	}
	return e
}

// submitAndGo charges 5 and does not wait.
func (r *rig) submitAndGo(run, causal string) wire.Effect {
	r.Helper()
	e, err := r.as("producer").Submit(r.Context(), wire.SubmitRequest{PrepareRequest: charge(run, causal, 5), Wait: wire.WaitNone})
	if err != nil {
		r.Fatal(err)
	}
	return e
}

func (r *rig) get(id events.EffectID) wire.Effect {
	r.Helper()
	e, err := r.as("operator").Get(r.Context(), wire.GetRequest{EffectID: id})
	if err != nil {
		r.Fatal(err)
	}
	return e
}

// ended waits until nothing follows by itself.
func (r *rig) ended(id events.EffectID) wire.Effect {
	r.Helper()
	e, err := r.as("operator").Get(r.Context(), wire.GetRequest{EffectID: id, Wait: wire.WaitTerminal, TimeoutMS: patience.Milliseconds()})
	if err != nil {
		r.Fatal(err)
	}
	return e
}

// unknownFor checks that nothing was proven, and why.
func unknownFor(t testing.TB, e wire.Effect, reason events.Reason) {
	t.Helper()
	if e.State != wire.StateUnknown || e.Unknown == nil || e.Unknown.Reason != reason {
		t.Fatalf("want unknown(%s): %s", reason, show(e))
	}
}

// settledAs checks what was proven.
func settledAs(t testing.TB, e wire.Effect, outcome events.Outcome) {
	t.Helper()
	if e.State != wire.StateSettled || e.Outcome != outcome {
		t.Fatalf("want settled(%s): %s", outcome, show(e))
	}
}

func show(e wire.Effect) string { return string(events.CanonicalOf(e)) }

// account checks the budget of usd_cents of the task "shop".
func (r *rig) account(reserved, spent, unknown int64) {
	r.Helper()
	b := r.task("shop").Budgets["usd_cents"]
	if b.Reserved != reserved || b.Spent != spent || b.Unknown != unknown || b.Available != b.Max-reserved-spent {
		r.Fatalf("%+v, want reserved %d, spent %d, unknown %d", b, reserved, spent, unknown)
	}
}

// task reads a task as of the end of the log.
func (r *rig) task(id events.TaskID) wire.Task {
	r.Helper()
	task, err := r.as("operator").TaskGet(r.Context(), wire.TaskGetRequest{TaskID: id, MinPosition: fmt.Sprint(r.last())})
	if err != nil {
		r.Fatal(err)
	}
	return task
}

func (r *rig) status() wire.Status {
	r.Helper()
	s, err := r.as("auditor").Status(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	return s
}

// log reads the log of the running node as its auditor may.
func (r *rig) log() *eventlog.Stream {
	r.Helper()
	js, err := jetstream.New(r.as("auditor").Conn())
	if err != nil {
		r.Fatal(err)
	}
	log, err := eventlog.Attach(r.Context(), js, eventlog.Config{LedgerID: r.home().LedgerID()})
	if err != nil {
		r.Fatal(err)
	}
	return log
}

func (r *rig) last() uint64 {
	r.Helper()
	last, err := r.log().Last(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	return last
}

func (r *rig) home() *home.Home {
	r.Helper()
	h, err := home.Open(r.dir, "")
	if err != nil {
		r.Fatal(err)
	}
	return h
}

// store runs a server on the streams of a stopped node, for f.
func (r *rig) store(f func(js jetstream.JetStream)) {
	r.Helper()
	server, err := natsserver.Start(r.Context(), natsserver.Options{StoreDir: r.home().NATSDir(), Logger: logger()})
	if err != nil {
		r.Fatal(err)
	}
	defer func() { _ = server.Shutdown(context.Background()) }()
	conn, err := server.Conn(r.Context(), natsserver.Ledger)
	if err != nil {
		r.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		r.Fatal(err)
	}
	f(js)
}

// stored reads the whole log of a stopped node.
func (r *rig) stored() (entries []events.Stored) {
	r.Helper()
	r.store(func(js jetstream.JetStream) {
		log, err := eventlog.Attach(r.Context(), js, eventlog.Config{LedgerID: r.home().LedgerID()})
		if err != nil {
			r.Fatal(err)
		}
		entries = readAll(r, log)
	})
	return entries
}

func readAll(t testing.TB, log eventlog.Log) []events.Stored {
	t.Helper()
	last, err := log.Last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	entries, err := readTo(t.Context(), log, last)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// readTo reads a log up to an entry.
func readTo(ctx context.Context, log eventlog.Log, last uint64) (entries []events.Stored, err error) {
	for uint64(len(entries)) < last && err == nil {
		var more []events.Stored
		more, err = log.Read(ctx, uint64(len(entries))+1, int(last)-len(entries))
		entries = append(entries, more...)
	}
	return entries, err
}

// sameProjection checks that the projection of a stopped node is the fold of its
// log, by digest.
func sameProjection(t testing.TB, r *rig) {
	t.Helper()
	entries := r.stored()
	fresh := projectionIn(t, t.TempDir())
	if err := fresh.ApplyMany(t.Context(), entries); err != nil {
		t.Fatal(err)
	}
	kept := projectionIn(t, r.home().ProjectionDir())
	if kept.State().Seq() != uint64(len(entries)) {
		t.Fatalf("the projection ends at %d, the log at %d", kept.State().Seq(), len(entries))
	}
	if got, want := digest(t, kept), digest(t, fresh); got != want {
		t.Fatalf("digest %s, a fresh fold has %s", got, want)
	}
	if got, want := kept.State().Digest(), folded(t, entries).Digest(); got != want {
		t.Fatalf("digest of the state %s, a fresh fold has %s", got, want)
	}
}

func projectionIn(t testing.TB, dir string) *projector.Projection {
	t.Helper()
	p, err := projector.Open(dir, projector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func digest(t testing.TB, p *projector.Projection) events.Digest {
	t.Helper()
	d, err := p.Digest()
	if err == nil {
		err = p.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// folded folds a log and checks chain and budgets.
func folded(t testing.TB, entries []events.Stored) *aggregate.State {
	t.Helper()
	s := aggregate.New()
	for i := range entries {
		if err := aggregate.Follows(s, &entries[i]); err != nil {
			t.Fatal(err)
		}
		s.Apply(&entries[i])
	}
	if faults := s.Check(); len(faults) > 0 {
		t.Fatal(errors.Join(faults...))
	}
	return s
}

// count is how many events of a type the log has about an effect; of all effects
// if none is named.
func count(entries []events.Stored, typ events.Type, id events.EffectID) (n int) {
	for _, entry := range entries {
		for i := range entry.Events {
			if ev := &entry.Events[i]; ev.Type == typ && (id == "" || ev.EffectID == id) {
				n++
			}
		}
	}
	return n
}

// codeOf is the code of a refusal; empty if it is none.
func codeOf(err error) wire.Code {
	var refusal *wire.Error
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	return ""
}

// refusedWith checks the code of a refusal.
func refusedWith(t testing.TB, err error, code wire.Code) {
	t.Helper()
	if codeOf(err) != code {
		t.Fatalf("%v, want %s", err, code)
	}
}

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// take waits for a value.
func take[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("not within %s: %s", patience, what)
		panic("unreachable")
	}
}
