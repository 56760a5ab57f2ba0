package embedded_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/dispatcher"
	"github.com/effectd/effectd/embedded"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// reconcile makes one attempt by query.
func (r *rig) reconcile(id events.EffectID) wire.Effect {
	r.Helper()
	e, err := r.as("operator").Reconcile(r.Context(), wire.ReconcileRequest{EffectID: id})
	if err != nil {
		r.Fatal(err)
	}
	return e
}

// A lost answer proves nothing; a restart changes nothing of that; only evidence
// settles, and nothing is ever sent again.
func TestLostResponse(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.answers(lose)
	r := running(t, s)
	e := r.submit("r", "c")
	unknownFor(t, e, events.ReasonResponseLost)
	r.account(5, 0, 5)
	r.restart()
	r.submit("r", "c")
	if again := r.get(e.EffectID); again.UpdatedAt != e.UpdatedAt {
		t.Fatalf("a restart changed it: %s", show(again))
	}
	unknownFor(t, r.get(e.EffectID), events.ReasonResponseLost)
	s.served(t, 1)
	settled := r.reconcile(e.EffectID)
	settledAs(t, settled, events.OutcomeSucceeded)
	if len(settled.Attempts) != 1 || settled.Attempts[0].Result != events.AttemptConclusive || settled.Reason != events.ReasonReconciled {
		t.Fatal(show(settled))
	}
	r.account(0, 5, 0)
	s.served(t, 1)
}

// Not found proves nothing unless the contract says so, and then not before the
// settling window has passed (SPEC 9).
func TestNotFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		declared   string
		conclusive bool
	}{
		"not declared":     {"", false},
		"too early":        {"  not_found_is_conclusive: true\n  settling_window: 1h\n", false},
		"after the window": {"  not_found_is_conclusive: true\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			s.answers(func(w http.ResponseWriter, r *http.Request) {
				s.mu.Lock()
				delete(s.requests, r.Header.Get("Idempotency-Key"))
				s.mu.Unlock()
				lose(w, r)
			})
			r := running(t, s, "reconcile:\n", "reconcile:\n"+c.declared)
			e := r.submit("r", "c")
			unknownFor(t, e, events.ReasonResponseLost)
			after := r.reconcile(e.EffectID)
			if c.conclusive {
				settledAs(t, after, events.OutcomeNoEffect)
				r.account(0, 0, 0)
				return
			}
			unknownFor(t, after, events.ReasonResponseLost)
			if len(after.Attempts) != 1 || after.Attempts[0].Result != events.AttemptInconclusive {
				t.Fatal(show(after))
			}
			r.account(5, 0, 5)
		})
	}
}

// Answers that no rule understands, and answers that do not come, prove nothing.
func TestUnprovenAnswers(t *testing.T) {
	t.Parallel()
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	say := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	silent := func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-never:
		case <-r.Context().Done():
		}
	}
	timeout := func(r events.Reason) string {
		if r == events.ReasonTimeout {
			return "timeout: 2s" // which claim and anchor are a part of
		}
		return "timeout: 60s"
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		reason events.Reason
	}{
		"server error":       {say(500, "sorry"), events.ReasonUnclassified},
		"a redirect":         {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, events.ReasonUnclassified},
		"a conflict":         {say(409, `{"id":"x","amount":5}`), events.ReasonUnclassified},
		"no JSON":            {say(201, "<html>done</html>"), events.ReasonUnclassified},
		"JSON that is other": {say(201, `{"id":{"deep":1}}`), events.ReasonUnclassified},
		"duplicate names":    {say(201, `{"id":"a","id":"b","amount":5}`), events.ReasonUnclassified},
		"silence":            {silent, events.ReasonTimeout},
		"half a body": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			w.WriteHeader(201)
			_, _ = io.WriteString(w, `{"id":`)
			w.(http.Flusher).Flush()
			silent(w, r)
		}, events.ReasonTimeout},
		"a body that ends early": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			w.WriteHeader(201)
			_, _ = io.WriteString(w, `{"id":`)
			w.(http.Flusher).Flush()
			lose(w, r)
		}, events.ReasonResponseLost},
		"no HTTP": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			_, _ = io.WriteString(conn, "220 mail.example ESMTP\r\n")
			_ = conn.Close()
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			s.answers(c.answer)
			r := running(t, s, "timeout: 10s", timeout(c.reason))
			e := r.submit("r", "c")
			if e.State != wire.StateUnknown || c.reason != "" && e.Unknown.Reason != c.reason {
				t.Fatalf("want unknown(%s): %s", c.reason, show(e))
			}
			r.account(5, 0, 5)
			s.served(t, 1)
			settledAs(t, r.reconcile(e.EffectID), events.OutcomeSucceeded)
			s.served(t, 1)
		})
	}
}

// A cost that a service states wrongly is charged as the maximum, one above the
// reservation truthfully (SPEC 10).
func TestCosts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body    string
		spent   int64
		invalid bool
		overrun int64
	}{
		"less":      {`{"id":"a","amount":3}`, 3, false, 0},
		"negative":  {`{"id":"a","amount":-3}`, 5, true, 0},
		"no number": {`{"id":"a","amount":"many"}`, 5, true, 0},
		"fraction":  {`{"id":"a","amount":1.5}`, 5, true, 0},
		"more":      {`{"id":"a","amount":9}`, 9, false, 4},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			s.answers(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(201)
				_, _ = io.WriteString(w, c.body)
			})
			r := running(t, s)
			e := r.submit("r", "c")
			settledAs(t, e, events.OutcomeSucceeded)
			if e.Cost["usd_cents"] != c.spent || e.CostInvalid != c.invalid || e.Overrun["usd_cents"] != c.overrun {
				t.Fatal(show(e))
			}
			r.account(0, c.spent, 0)
			folded(t, readAll(t, r.log()))
		})
	}
}

// What provably was never sent frees everything.
func TestNothingSent(t *testing.T) {
	t.Parallel()
	t.Run("connection refused", func(t *testing.T) {
		s := newService(t)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		r := running(t, s, "method: POST, url: URL/charges", "method: POST, url: http://"+l.Addr().String()+"/charges")
		e := r.submit("r", "c")
		settledAs(t, e, events.OutcomeNoEffect)
		if e.Reason != events.ReasonNotSent {
			t.Fatal(show(e))
		}
		r.account(0, 0, 0)
		if b := r.task("shop").Budgets["effects"]; b.Reserved != 0 || b.Spent != 0 {
			t.Fatalf("%+v", b)
		}
		s.served(t, 0)
	})
	t.Run("secret missing", func(t *testing.T) {
		s := newService(t)
		s.answers(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(201)
			fmt.Fprintf(w, `{"id":"echo %s","amount":5}`, r.Header.Get("Authorization"))
		})
		r := running(t, s, "adapter: {", `secrets: [TEST_CHARGE_TOKEN]
adapter: {headers: {Authorization: "Bearer ${secret.TEST_CHARGE_TOKEN}"}, `)
		e := r.submit("r", "c")
		settledAs(t, e, events.OutcomeNoEffect)
		if e.Reason != events.ReasonUnsendable || !strings.Contains(e.Evidence.Detail, "TEST_CHARGE_TOKEN") {
			t.Fatal(show(e))
		}
		r.account(0, 0, 0)
		s.served(t, 0)

		// It is read at send time, and never stored.
		r.write("secrets/TEST_CHARGE_TOKEN", "very-secret-value\n")
		e = r.submit("r", "with")
		settledAs(t, e, events.OutcomeSucceeded)
		if got := s.headers[0].Get("Authorization"); got != "Bearer very-secret-value" {
			t.Fatalf("sent %q", got)
		}
		r.account(0, 5, 0)
		for _, entry := range readAll(t, r.log()) {
			if strings.Contains(string(entry.Body), "very-secret-value") {
				t.Fatalf("the secret is in entry %d", entry.Seq)
			}
		}
	})
}

// stubborn sends like the HTTP adapter, but however late, and tells what it proved
// when it is let.
type stubborn struct {
	dispatcher.HTTP
	let chan struct{}
}

func (s stubborn) Render(send dispatcher.Send) (dispatcher.Shot, error) {
	shot, err := s.HTTP.Render(send)
	return lateShot{shot, s.let}, err
}

type lateShot struct {
	dispatcher.Shot
	let chan struct{}
}

func (l lateShot) Fire(ctx context.Context, deadline time.Time) aggregate.Result {
	result := l.Shot.Fire(ctx, deadline.Add(patience))
	<-l.let
	return result
}

// A result that comes after unknown, with the claim's nonce, settles it, marked
// late (SPEC 8).
func TestLateResult(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := newRig(t, s, "timeout: 10s", "timeout: 100ms")
	late := stubborn{dispatcher.HTTP{Now: time.Now}, make(chan struct{})}
	r.opts.Adapters = map[string]dispatcher.Adapter{"http": late}
	r.start()
	r.openTask("shop", 100)
	e := r.submit("r", "c")
	unknownFor(t, e, events.ReasonDispatcherLost)
	r.account(5, 0, 5)
	close(late.let)
	eventually(t, "the late result settles", func() bool { return r.get(e.EffectID).State == wire.StateSettled })
	e = r.get(e.EffectID)
	settledAs(t, e, events.OutcomeSucceeded)
	if !e.Late || e.AuditIncomplete {
		t.Fatal(show(e))
	}
	r.account(0, 5, 0)
	s.served(t, 1)
}

// A graceful stop gives running sends the shutdown budget, then they are unknown
// (SPEC 8); nothing new is claimed.
func TestStopDuringSend(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := newRig(t, s, "concurrency: 32", "concurrency: 1", "timeout: 10s", "timeout: 60s")
	r.opts.ShutdownBudget = 50 * time.Millisecond
	r.start()
	r.openTask("shop", 100)
	arrived, _ := s.holds()
	e := r.submitAndGo("r", "c")
	take(t, "the send arrives", arrived)
	waiting := r.submitAndGo("r", "waiting")
	r.stop()
	s.answers(nil)
	r.start()
	unknownFor(t, r.get(e.EffectID), events.ReasonShutdown)
	settledAs(t, r.ended(waiting.EffectID), events.OutcomeSucceeded)
	s.served(t, 2)
	settledAs(t, r.reconcile(e.EffectID), events.OutcomeSucceeded)
	s.served(t, 2)
}

// A send that ends within the shutdown budget is settled before the node ends,
// and somebody who waits for it is answered.
func TestStopWaitsForSend(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := running(t, s)
	arrived, let := s.holds()
	e := r.submitAndGo("r", "c")
	take(t, "the send arrives", arrived)
	stopped := make(chan error, 1)
	go func(n *embedded.Node) { stopped <- n.Stop(context.Background()) }(r.node)
	r.node = nil
	close(let)
	if err := take(t, "the node stops", stopped); err != nil {
		t.Fatal(err)
	}
	if s := folded(t, r.stored()); s.Effect(e.EffectID).State != wire.StateSettled {
		t.Fatal(s.Effect(e.EffectID).State)
	}
}
