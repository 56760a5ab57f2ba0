package embedded_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/effectd/effectd/aggregate/ledger"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// stream is the log as its server sees it.
func (x *external) stream() (jetstream.JetStream, jetstream.Stream) {
	x.Helper()
	js := x.connect()
	stream, err := js.Stream(x.Context(), wire.LogStream)
	if err != nil {
		x.Fatal(err)
	}
	return js, stream
}

// What happens to the log of a running node ends all trust: nothing is written
// and nothing dispatched any more, reads go on, and what a running send proves is
// kept (SPEC 16).
func TestDamageWhileRunning(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(*testing.T, jetstream.JetStream, jetstream.Stream){
		"a foreign message": func(t *testing.T, js jetstream.JetStream, _ jetstream.Stream) {
			if _, err := js.Publish(t.Context(), wire.LogSubject, []byte(`{"forged":true}`)); err != nil {
				t.Fatal(err)
			}
		},
		"an entry copied": func(t *testing.T, js jetstream.JetStream, st jetstream.Stream) {
			m, err := st.GetMsg(t.Context(), 3)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := js.Publish(t.Context(), wire.LogSubject, m.Data); err != nil {
				t.Fatal(err)
			}
		},
		"the stream deleted": func(t *testing.T, js jetstream.JetStream, _ jetstream.Stream) {
			if err := js.DeleteStream(t.Context(), wire.LogStream); err != nil {
				t.Fatal(err)
			}
		},
		"the stream made anew": func(t *testing.T, js jetstream.JetStream, st jetstream.Stream) {
			if err := js.DeleteStream(t.Context(), wire.LogStream); err != nil {
				t.Fatal(err)
			}
			if _, err := js.CreateStream(t.Context(), st.CachedInfo().Config); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			r := running(t, s)
			before := r.submit("r", "before")
			r.stop()
			x := r.external()
			r.start()
			js, st := x.stream()
			arrived, let := s.holds()
			held := r.submitAndGo("r", "held")
			take(t, "the send arrives", arrived)
			damage(t, js, st)
			p := r.as("producer")
			eventually(t, "a write finds it", func() bool {
				_, err := p.Prepare(t.Context(), charge("r", "after", 5))
				return codeOf(err) == wire.LedgerUntrusted
			})
			status, err := r.as("operator").Status(t.Context())
			if err != nil || status.Trusted || status.Reason == "" || status.Dispatching {
				t.Fatalf("%+v %v", status, err)
			}
			t.Log(status.Reason)
			settledAs(t, r.get(before.EffectID), events.OutcomeSucceeded)
			close(let)
			eventually(t, "the result is kept", func() bool {
				_, err := os.Stat(filepath.Join(r.dir, "spool", string(held.EffectID)+".result"))
				return err == nil
			})
			if e := r.get(held.EffectID); e.State != wire.StateDispatched {
				t.Fatal(show(e))
			}
			r.stop()
			r.start()
			if ready := r.node.Ready(); ready.Trusted {
				t.Fatal("trusted again after a restart")
			}
			s.served(t, 2)
		})
	}
}

// A configuration that was made weaker under a running node is found at the next
// look, or start.
func TestWeakenedWhileRunning(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the next look")
	}
	t.Parallel()
	r := running(t, newService(t))
	r.stop()
	x := r.external()
	r.start()
	js, st := x.stream()
	c := st.CachedInfo().Config
	c.MaxAge = 1e15
	if _, err := js.UpdateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node looks", func() bool { return !r.node.Ready().Trusted })
	t.Log(r.node.Ready().Reason)
}

// Another writer's entries are followed, and decided on.
func TestAnotherWriter(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := running(t, s)
	r.stop()
	x := r.external()
	r.start()
	l := write(t, ledger.Config{Read: systemClock, Shared: true}, x.log(r.home().LedgerID()))
	for _, causal := range []string{"a", "b", "c"} {
		theirs := do(t, l, producer.Actor(), prepare(t, producer, charge("r", causal, 5), true))
		ours := r.submit("r", causal)
		if ours.EffectID != theirs.EffectID || !ours.Repeat {
			t.Fatal(show(ours))
		}
		settledAs(t, ours, events.OutcomeSucceeded)
		settledAs(t, r.submit("r", "own-"+causal), events.OutcomeSucceeded)
	}
	s.served(t, 6)
	folded(t, readAll(t, r.log()))
}
