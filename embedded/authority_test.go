package embedded_test

import (
	"testing"
	"time"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// Authority that ends before the claim prevents the send, however it ends, and
// frees everything; after the claim it is too late (SPEC 8, 11).
func TestAuthorityEndsBeforeClaim(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end    func(*rig, events.EffectID) error
		reason events.Reason
	}{
		"revoked": {func(r *rig, id events.EffectID) error {
			_, err := r.as("operator").Revoke(r.Context(), wire.EffectReasonRequest{EffectID: id, Reason: "test"})
			return err
		}, events.ReasonRevoked},
		"withdrawn": {func(r *rig, id events.EffectID) error {
			_, err := r.as("producer").Withdraw(r.Context(), wire.EffectReasonRequest{EffectID: id, Reason: "test"})
			return err
		}, events.ReasonWithdrawn},
		"task closed": {func(r *rig, _ events.EffectID) error {
			_, err := r.as("operator").TaskClose(r.Context(), wire.TaskCloseRequest{TaskID: "shop"})
			return err
		}, events.ReasonTaskClosed},
		"policy changed": {func(r *rig, _ events.EffectID) error {
			r.write("policy.cedar", `permit (principal, action == Action::"observe", resource);`)
			return r.node.Reload(r.Context())
		}, events.ReasonPolicyDenied},
		"user removed": {func(r *rig, _ events.EffectID) error {
			if err := r.home().RemoveUser("main", "producer"); err != nil {
				return err
			}
			return r.node.Reload(r.Context())
		}, events.ReasonPolicyDenied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			r := running(t, s, "concurrency: 32", "concurrency: 1", "timeout: 10s", "timeout: 60s")
			arrived, let := s.holds()
			first := r.submitAndGo("r", "first")
			take(t, "the first send arrives", arrived)
			second := r.submitAndGo("r", "second")
			if second.State != wire.StateAdmitted {
				t.Fatal(show(second))
			}
			if err := c.end(r, second.EffectID); err != nil {
				t.Fatal(err)
			}
			ended := r.ended(second.EffectID)
			settledAs(t, ended, events.OutcomeNoEffect)
			if ended.Reason != c.reason {
				t.Fatal(show(ended))
			}
			if name == "revoked" {
				_, err := r.as("operator").Revoke(t.Context(), wire.EffectReasonRequest{EffectID: first.EffectID})
				refusedWith(t, err, wire.TooLate)
			}
			close(let)
			settledAs(t, r.ended(first.EffectID), events.OutcomeSucceeded) // its claim stands
			r.account(0, 5, 0)
			s.served(t, 1)
			entries := readAll(t, r.log())
			if n := count(entries, events.TypeDispatched, second.EffectID); n != 0 {
				t.Fatalf("%d claims", n)
			}
			folded(t, entries)
		})
	}
}

// Expiry shows at once, and the ledger records it by itself within seconds.
func TestExpiry(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := running(t, s)
	request := charge("r", "c", 5)
	var e wire.Effect
	err := error(wire.Errorf(wire.Expired, ""))
	for life := 500 * time.Millisecond; codeOf(err) == wire.Expired; life *= 2 { // a slow machine may be late with its request
		request.ExpiresAt = time.Now().Add(life).UTC().Format(time.RFC3339Nano)
		e, err = r.as("producer").Prepare(t.Context(), request)
	}
	if err != nil || e.State != wire.StatePermitted {
		t.Fatal(err, show(e))
	}
	eventually(t, "it shows as expired", func() bool { e = r.get(e.EffectID); return e.State == wire.StateRefused })
	if e.Reason != events.ReasonExpired || e.Permit.State != wire.PermitExpired {
		t.Fatal(show(e))
	}
	_, err = r.as("producer").Admit(t.Context(), wire.AdmitRequest{EffectID: e.EffectID, BindingDigest: e.BindingDigest, SealedContext: sealed("r", "c")})
	refusedWith(t, err, wire.Expired)
	eventually(t, "the ledger records it", func() bool { return count(readAll(t, r.log()), events.TypeRefused, e.EffectID) == 1 })
	s.served(t, 0)
}

// An attempt ends by its deadline, and one whose process is killed ends as
// inconclusive at the next start; both leave the effect as it was (SPEC 9).
func TestAttemptsEnd(t *testing.T) {
	t.Parallel()
	s := newService(t)
	asked := s.deaf()
	s.answers(lose)
	r := running(t, s)
	e := r.submit("r", "c")
	unknownFor(t, e, events.ReasonResponseLost)
	after, err := r.as("operator").Reconcile(t.Context(), wire.ReconcileRequest{EffectID: e.EffectID, DeadlineMS: 2000})
	if err != nil || after.State != wire.StateUnknown || len(after.Attempts) != 1 || after.Attempts[0].Result != events.AttemptInconclusive {
		t.Fatal(err, show(after))
	}
	take(t, "the service is asked", asked)
	r.stop()

	p := r.serve()
	o := p.as(t, r, "operator")
	go func() { _, _ = o.Reconcile(t.Context(), wire.ReconcileRequest{EffectID: e.EffectID}) }()
	take(t, "the service is asked", asked)
	_, err = o.Reconcile(t.Context(), wire.ReconcileRequest{EffectID: e.EffectID})
	refusedWith(t, err, wire.AttemptInProgress)
	p.kill()

	r.start()
	eventually(t, "the attempt is over", func() bool { after = r.get(e.EffectID); return after.Attempts[1].Result != "" })
	if len(after.Attempts) != 2 || after.Attempts[1].Result != events.AttemptInconclusive || after.State != wire.StateUnknown {
		t.Fatal(show(after))
	}
	// A graceful stop ends one too.
	go func() {
		_, _ = r.another("operator").Reconcile(t.Context(), wire.ReconcileRequest{EffectID: e.EffectID})
	}()
	take(t, "the service is asked", asked)
	r.restart()
	if after = r.get(e.EffectID); len(after.Attempts) != 3 || after.Attempts[2].Result != events.AttemptInconclusive {
		t.Fatal(show(after))
	}
	r.account(5, 0, 5)
	s.served(t, 1)
}
