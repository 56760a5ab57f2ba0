package embedded_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// A process that stands still for longer than its claim lasts, in the middle of a
// send, sends nothing again when it goes on: the effect is unknown, or settled by
// the answer that waited for it (SPEC 8, 22).
func TestPausedProcess(t *testing.T) {
	t.Parallel()
	const timeout = 2 * time.Second // which claim and anchor are a part of
	for name, answered := range map[string]bool{"answered meanwhile": true, "never answered": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			r := running(t, s, "timeout: 10s", "timeout: 2s")
			r.stop()
			p := r.serve()
			producer, operator := p.as(t, r, "producer"), p.as(t, r, "operator")
			arrived, let := s.holds()
			e, err := producer.Submit(t.Context(), wire.SubmitRequest{PrepareRequest: charge("r", "c", 5), Wait: wire.WaitNone})
			if err != nil {
				t.Fatal(err)
			}
			take(t, "the send arrives", arrived)
			if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			if answered {
				close(let)
			}
			<-time.After(timeout + aggregate.Grace + timeout) // longer than the claim can live
			if err := p.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			after, err := operator.Get(t.Context(), wire.GetRequest{EffectID: e.EffectID, Wait: wire.WaitTerminal, TimeoutMS: patience.Milliseconds()})
			if err != nil {
				t.Fatal(err)
			}
			if after.State != wire.StateUnknown && !(answered && after.Outcome == events.OutcomeSucceeded) {
				t.Fatal(show(after))
			}
			t.Log(after.State, after.Unknown, after.Late)
			s.answers(nil)
			next, err := producer.Submit(t.Context(), wire.SubmitRequest{PrepareRequest: charge("r", "next", 5), Wait: wire.WaitTerminal})
			if err != nil {
				t.Fatal(err)
			}
			settledAs(t, next, events.OutcomeSucceeded)
			s.served(t, 2)
			settled, err := operator.Reconcile(t.Context(), wire.ReconcileRequest{EffectID: e.EffectID})
			if err != nil {
				t.Fatal(err)
			}
			settledAs(t, settled, events.OutcomeSucceeded)
			p.terminate(t)
			s.served(t, 2)
			entries := r.stored()
			if n := count(entries, events.TypeDispatched, e.EffectID); n != 1 {
				t.Fatalf("%d claims", n)
			}
			folded(t, entries)
		})
	}
}
