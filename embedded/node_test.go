package embedded_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/effectd/effectd/embedded"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
)

// service is a real HTTP service with a book of what it was asked to do.
type service struct {
	*httptest.Server
	mu    sync.Mutex
	book  map[string]int // requests per idempotency key
	order []string
	lose  bool // does the work, then closes the connection without an answer
}

func newService(t testing.TB) *service {
	s := &service{book: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *service) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == http.MethodGet {
		n := s.book[r.URL.Query().Get("key")]
		if n == 0 {
			fmt.Fprint(w, `{"items":[]}`)
			return
		}
		fmt.Fprintf(w, `{"items":[{"id":"ch_%s"}]}`, r.URL.Query().Get("key"))
		return
	}
	key := r.Header.Get("Idempotency-Key")
	s.book[key]++
	s.order = append(s.order, key)
	if s.lose {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.Close()
		}
		return
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"id":"ch_%s","amount":5}`, key)
}

// twice lists the keys that were served more than once.
func (s *service) twice() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for key, n := range s.book {
		if n > 1 {
			out = append(out, key)
		}
	}
	return out
}

func (s *service) total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.order)
}

const chargeContract = `
name: charge
version: 1
input:
  type: object
  required: [account, amount]
  additionalProperties: false
  properties: {account: {type: string}, amount: {type: integer, minimum: 1}}
resource: account/${payload.account}
exposes: [account, amount]
cost: {usd_cents: payload.amount}
timeout: 2s
concurrency: 32
adapter: {kind: http, method: POST, url: URL/charges}
idempotency: {header: Idempotency-Key, scope: account, retention: 24h, concurrent: true, mismatch_rejected: true}
outcomes:
  - {when: "response.status in [200, 201]", outcome: succeeded, means: completed, provider_ref: response.json.id, cost: {usd_cents: response.json.amount}}
  - {when: response.status == 402, outcome: failed, cost: {usd_cents: "0"}}
reconcile:
  query: {method: GET, url: "URL/charges?key=${idempotency_key}"}
  rules:
    - {when: response.status == 200 && size(response.json.items) > 0, outcome: succeeded, provider_ref: "response.json.items[0].id"}
    - {when: response.status == 200, not_found: true}
`

// ledger is a data directory with the charge contract.
func newLedger(t testing.TB, s *service) string {
	dir := filepath.Join(t.TempDir(), "data")
	if _, err := embedded.Init(t.Context(), embedded.InitOptions{Data: dir, Logger: logger(t)}); err != nil {
		t.Fatal(err)
	}
	contract := strings.ReplaceAll(chargeContract, "URL", s.URL)
	if err := os.WriteFile(filepath.Join(dir, "operations", "charge.yaml"), []byte(contract), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func logger(t testing.TB) *slog.Logger {
	if testing.Verbose() {
		return slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return slog.New(slog.DiscardHandler)
}

func startNode(t testing.TB, dir string) *embedded.Node {
	n, err := embedded.Start(t.Context(), embedded.Options{Data: dir, Listen: "127.0.0.1:0", Logger: logger(t), ShutdownBudget: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func stopNode(t testing.TB, n *embedded.Node) {
	if err := n.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func dial(t testing.TB, n *embedded.Node, dir, who string) *client.Client {
	c, err := client.Dial(n.Ready().NATSURL, filepath.Join(dir, "keys", who+".nk"), "main", events.Principal(who))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func ptr[T any](v T) *T { return &v }

func charge(run, causal string, amount int) wire.PrepareRequest {
	return wire.PrepareRequest{TaskID: "shop", Operation: "charge", Payload: events.Raw(fmt.Sprintf(`{"account":"a-1","amount":%d}`, amount)),
		SealedContext: wire.SealedContext{RunID: ptr(events.RunID(run)), CausalID: ptr(events.CausalID(causal))}}
}

func openTask(t testing.TB, n *embedded.Node, dir string, cents int64) {
	_, err := dial(t, n, dir, "operator").TaskOpen(t.Context(), wire.TaskOpenRequest{TaskID: "shop", Budgets: events.Amounts{"usd_cents": cents, "effects": 1 << 40},
		Holders: []events.Actor{"main/producer"}, ExpiresAt: time.Now().Add(time.Hour).UTC().Format(time.RFC3339)})
	if err != nil {
		t.Fatal(err)
	}
}

func TestChargeSettles(t *testing.T) {
	s := newService(t)
	dir := newLedger(t, s)
	n := startNode(t, dir)
	openTask(t, n, dir, 1000)
	p := dial(t, n, dir, "producer")
	e, err := p.Submit(t.Context(), wire.SubmitRequest{PrepareRequest: charge("r", "c", 5), Wait: wire.WaitTerminal})
	if err != nil {
		t.Fatal(err)
	}
	if e.State != wire.StateSettled || e.Outcome != events.OutcomeSucceeded || e.Repeat || e.Receipt == nil {
		t.Fatalf("%+v", e)
	}
	stopNode(t, n)
	n = startNode(t, dir)
	p = dial(t, n, dir, "producer")
	again, err := p.Submit(t.Context(), wire.SubmitRequest{PrepareRequest: charge("r", "c", 5), Wait: wire.WaitTerminal})
	if err != nil || again.EffectID != e.EffectID || !again.Repeat {
		t.Fatalf("%+v %v", again, err)
	}
	if s.total() != 1 {
		t.Fatal(s.total())
	}
	stopNode(t, n)
}
