package embedded_test

import (
	"testing"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// A cancelled run admits nothing further: what is not sent ends, what is sent goes
// on, and the run ends as cancelled only (SPEC 15).
func TestRunCancelled(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := running(t, s, "concurrency: 32", "concurrency: 1", "timeout: 10s", "timeout: 60s")
	p := r.as("producer")
	arrived, let := s.holds()
	sent := r.submitAndGo("r", "sent")
	take(t, "the first send arrives", arrived)
	admitted := r.submitAndGo("r", "admitted")
	held, err := p.Prepare(t.Context(), charge("r", "held", 5))
	if err != nil {
		t.Fatal(err)
	}
	other := r.submitAndGo("another", "c")
	for _, repeat := range []bool{false, true} {
		run, err := p.RunCancel(t.Context(), wire.RunRequest{RunID: "r", Reason: "enough"})
		if err != nil || !run.Cancelled || run.Repeat != repeat || run.Effects[wire.StateRefused] != 1 {
			t.Fatal(run, err)
		}
	}
	if e := r.ended(admitted.EffectID); e.State != wire.StateSettled || e.Outcome != events.OutcomeNoEffect || e.Reason != events.ReasonRunCancelled {
		t.Fatal(show(e))
	}
	if e := r.ended(held.EffectID); e.State != wire.StateRefused || e.Reason != events.ReasonRunCancelled {
		t.Fatal(show(e))
	}
	_, err = p.Submit(t.Context(), wire.SubmitRequest{PrepareRequest: charge("r", "late", 5)})
	refusedWith(t, err, wire.RunCancelled)
	_, err = p.Admit(t.Context(), wire.AdmitRequest{EffectID: held.EffectID, BindingDigest: held.BindingDigest, SealedContext: sealed("r", "held")})
	refusedWith(t, err, wire.RunCancelled)
	_, err = p.RunFinish(t.Context(), wire.RunRequest{RunID: "r", Outcome: events.RunSucceeded})
	refusedWith(t, err, wire.RunCancelled)
	if run, err := p.RunFinish(t.Context(), wire.RunRequest{RunID: "r", Outcome: events.RunOutcomeCancelled}); err != nil || run.Outcome != events.RunOutcomeCancelled {
		t.Fatal(run, err)
	}
	close(let)
	settledAs(t, r.ended(sent.EffectID), events.OutcomeSucceeded) // later events change effects, never the run
	settledAs(t, r.ended(other.EffectID), events.OutcomeSucceeded)
	if run, err := p.RunGet(t.Context(), wire.RunRequest{RunID: "r"}); err != nil || run.Outcome != events.RunOutcomeCancelled || run.Effects[wire.StateSettled] != 2 {
		t.Fatal(run, err)
	}
	s.served(t, 2)
	r.account(0, 10, 0)
}

// A run has one outcome, for good, and does not succeed while something of it is
// not proven.
func TestRunFinished(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.answers(lose)
	r := running(t, s)
	p := r.as("producer")
	e := r.submit("r", "c")
	unknownFor(t, e, events.ReasonResponseLost)
	_, err := p.RunFinish(t.Context(), wire.RunRequest{RunID: "r", Outcome: events.RunSucceeded})
	refusedWith(t, err, wire.RunUnresolved)
	settledAs(t, r.reconcile(e.EffectID), events.OutcomeSucceeded)
	for _, repeat := range []bool{false, true} {
		run, err := p.RunFinish(t.Context(), wire.RunRequest{RunID: "r", Outcome: events.RunSucceeded})
		if err != nil || run.Outcome != events.RunSucceeded || run.Repeat != repeat {
			t.Fatal(run, err)
		}
	}
	_, err = p.RunFinish(t.Context(), wire.RunRequest{RunID: "r", Outcome: events.RunRejected})
	refusedWith(t, err, wire.RunFinished)
	_, err = p.RunCancel(t.Context(), wire.RunRequest{RunID: "r"})
	refusedWith(t, err, wire.RunFinished)
	_, err = p.Submit(t.Context(), wire.SubmitRequest{PrepareRequest: charge("r", "late", 5)})
	refusedWith(t, err, wire.RunFinished)
	_, err = p.RunFinish(t.Context(), wire.RunRequest{RunID: "none", Outcome: events.RunSucceeded})
	refusedWith(t, err, wire.UnknownRun)
	_, err = r.as("operator").RunCancel(t.Context(), wire.RunRequest{RunID: "r"})
	if err == nil {
		t.Fatal("an operator is no producer")
	}
	_, err = p.RunFinish(t.Context(), wire.RunRequest{RunID: "r", Outcome: "fine"})
	refusedWith(t, err, wire.InvalidRequest)
	r.restart()
	if run, err := r.as("producer").RunGet(t.Context(), wire.RunRequest{RunID: "r"}); err != nil || run.Outcome != events.RunSucceeded {
		t.Fatal(run, err)
	}
}
