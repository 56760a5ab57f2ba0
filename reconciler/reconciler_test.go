package reconciler

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/ledger"
	"github.com/effectd/effectd/aggregate/operation"
	"github.com/effectd/effectd/aggregate/rehearsal"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/events/wire"
)

const asked = `name: asked
version: 1
input: {type: object}
resource: things
secrets: [TOKEN]
adapter: {kind: http, method: POST, url: "http://127.0.0.1:8099/things"}
idempotency: {header: Idempotency-Key, scope: account}
outcomes:
  - {when: response.status == 200, outcome: succeeded}
reconcile:
  query: {method: GET, url: "http://127.0.0.1:8099/things?key=${idempotency_key}", headers: {Authorization: "Bearer ${secret.TOKEN}"}}
  rules:
    - {when: response.status == 200, outcome: succeeded, provider_ref: response.json.id}
    - {when: response.status == 404, not_found: true}
  not_found_is_conclusive: true
  settling_window: 1h
`

// bench is a reconciler on a ledger with one unknown effect and a running attempt.
// The test is the service.
type bench struct {
	*Reconciler
	log     *eventlog.Memory
	ledger  *ledger.Ledger
	effect  events.EffectID
	attempt events.AttemptID
	now     time.Time
	answer  func(ctx context.Context, call operation.Call, deadline time.Time) (operation.Response, error)
	asks    int
}

// Ask is the service.
func (b *bench) Ask(ctx context.Context, call operation.Call, deadline time.Time) (operation.Response, error) {
	b.asks++
	return b.answer(ctx, call, deadline)
}

func newBench(t *testing.T) *bench {
	t.Helper()
	w := rehearsal.New()
	do := func(c aggregate.Command) aggregate.Decision {
		t.Helper()
		d := w.Do(c)
		if d.Refusal != nil {
			t.Fatal(d.Refusal)
		}
		return d
	}
	do(aggregate.RegisterOperation{Contract: rehearsal.Contract(asked)})
	do(aggregate.ChangePolicy{Text: `permit(principal, action, resource);`})
	b := &bench{effect: do(rehearsal.Submit(rehearsal.Producer, "asked", `{}`, "run", "1")).EffectID}
	do(w.Claim(b.effect))
	do(w.Report(b.effect, events.OutcomeUnknown, nil))
	start := w.Start(rehearsal.Operator, b.effect, "")
	start.DeadlineMS = 5000
	b.attempt = do(start).AttemptID
	b.log = eventlog.NewMemory(rehearsal.LedgerID, rehearsal.Start.Time())
	for _, e := range w.Entries {
		if err := b.log.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	wall := w.At.Add(time.Second)
	b.now = wall.Time().Add(time.Hour) // another clock than the ledger's
	b.ledger = ledger.New(ledger.Config{Writer: "W", Read: func() ledger.Reading { return ledger.Reading{Wall: wall} }, Entropy: rand.Reader}, b.log, w.State)
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- b.ledger.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-over })
	b.Reconciler = New(Config{Now: func() time.Time { return b.now }, Secret: func(string) (string, bool) { return "very-secret", true }, Asker: b}, b.ledger)
	return b
}

// says has the service answer.
func (b *bench) says(status int64, body string) {
	b.answer = func(context.Context, operation.Call, time.Time) (operation.Response, error) {
		return operation.Response{Status: status, Body: []byte(body)}, nil
	}
}

// ends carries the attempt out; no secret of the query is in the log.
func (b *bench) ends(t *testing.T) *wire.Effect {
	t.Helper()
	v, err := b.Attempt(t.Context(), b.effect, b.attempt)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := b.log.Read(t.Context(), 1, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.Contains(string(e.Body), "very-secret") {
			t.Errorf("entry %d has the secret", e.Seq)
		}
	}
	return v
}

func inconclusive(t *testing.T, v *wire.Effect) {
	t.Helper()
	if v.State != wire.StateUnknown || len(v.Attempts) != 1 || v.Attempts[0].Result != events.AttemptInconclusive {
		t.Fatalf("%s %+v", v.State, v.Attempts)
	}
}

// An attempt asks once, by the effect's key, until the deadline that the log has; what
// a rule matches settles (R1, R2).
func TestAttempt(t *testing.T) {
	b := newBench(t)
	key := string(b.ledger.State().Effect(b.effect).Prepared.Binding.IdempotencyKey)
	b.answer = func(_ context.Context, call operation.Call, deadline time.Time) (operation.Response, error) {
		if call.Method != "GET" || !strings.HasSuffix(call.URL, "?key="+key) {
			t.Errorf("asked %s %s", call.Method, call.URL)
		}
		if left := deadline.Sub(b.now); left != 4*time.Second {
			t.Errorf("the service has %s, want the 4 s that are left", left)
		}
		return operation.Response{Status: 200, Body: []byte(`{"id":"of very-secret"}`)}, nil
	}
	v := b.ends(t)
	if v.State != wire.StateSettled || v.Outcome != events.OutcomeSucceeded || v.Reason != events.ReasonReconciled || v.Attempts[0].Result != events.AttemptConclusive {
		t.Fatalf("%+v", v)
	}
	if !strings.HasPrefix(v.ProviderRef, "of ") {
		t.Fatalf("%q", v.ProviderRef)
	}
	if b.ends(t); b.asks != 1 { // it is over
		t.Fatalf("asked %d times", b.asks)
	}
}

// Only the attempt that runs is carried out (R1).
func TestAnotherAttempt(t *testing.T) {
	b := newBench(t)
	before := b.ledger.State().Seq()
	v, err := b.Attempt(t.Context(), b.effect, "another")
	if err != nil || v.Attempts[0].Result != "" || b.asks != 0 || b.ledger.State().Seq() != before {
		t.Fatalf("%v %+v, asked %d times", err, v, b.asks)
	}
	if _, err := b.Attempt(t.Context(), "none", b.attempt); err == nil || b.asks != 0 {
		t.Fatalf("%v, asked %d times", err, b.asks)
	}
}

// What no rule matches, what does not come, and "not found" before the law takes it
// for a proof, prove nothing (R2).
func TestInconclusive(t *testing.T) {
	for name, answer := range map[string]func(*bench){
		"no rule":   func(b *bench) { b.says(500, `{}`) },
		"not found": func(b *bench) { b.says(404, `{}`) },
		"no answer": func(b *bench) {
			b.answer = func(context.Context, operation.Call, time.Time) (operation.Response, error) {
				return operation.Response{Status: 200, Body: []byte(`{"id":"half"}`)}, errors.New("lost by very-secret")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			answer(b)
			inconclusive(t, b.ends(t))
		})
	}
}

// Whoever asked may leave: the end of the attempt is recorded all the same (R3).
func TestLeftAttempt(t *testing.T) {
	b := newBench(t)
	ctx, leave := context.WithCancel(t.Context())
	b.answer = func(ctx context.Context, _ operation.Call, _ time.Time) (operation.Response, error) {
		leave()
		<-ctx.Done()
		return operation.Response{}, ctx.Err()
	}
	v, err := b.Attempt(ctx, b.effect, b.attempt)
	if err != nil {
		t.Fatal(err)
	}
	inconclusive(t, v)
}
