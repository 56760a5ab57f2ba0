package embedded_test

import (
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// largePolicy lets anybody commit up to 10.00 and ask for approval above it.
const largePolicy = `
permit (principal, action in [Action::"commit", Action::"request_approval"], resource);
@id("large") @reason("more than 10.00")
forbid (principal, action == Action::"commit", resource) when { context.max_cost.usd_cents > 1000 };
permit (principal, action in [Action::"observe", Action::"reconcile"], resource);
`

// approving is a ledger on which charges above 10.00 need an approval, with the
// task "shop" of so many cents.
func approving(t testing.TB, s *service, cents int64) *rig {
	t.Helper()
	r := newRig(t, s)
	r.write("policy.cedar", largePolicy)
	r.start()
	r.openTask("shop", cents)
	return r
}

// answered is what a call led to.
type answered struct {
	wire.Effect
	err error
}

// submitting submits a charge and waits for it elsewhere.
func (r *rig) submitting(causal string, amount int, wait string) <-chan answered {
	r.Helper()
	p, out := r.another("producer"), make(chan answered, 1)
	go func() {
		e, err := p.Submit(r.Context(), wire.SubmitRequest{PrepareRequest: charge("r", causal, amount), Wait: wait, TimeoutMS: patience.Milliseconds()})
		out <- answered{e, err}
	}()
	return out
}

// ask submits a charge that needs an approval, and does not wait.
func (r *rig) ask(causal string, amount int) wire.Effect {
	r.Helper()
	e, err := r.as("producer").Submit(r.Context(), wire.SubmitRequest{PrepareRequest: charge("r", causal, amount), Wait: wire.WaitNone})
	if err != nil || e.State != wire.StatePrepared || e.Permit.State != wire.PermitPendingState {
		r.Fatal(err, show(e))
	}
	return e
}

func (r *rig) pending(who string) []wire.Pending {
	r.Helper()
	l, err := r.as(who).Pending(r.Context(), wire.PendingRequest{})
	if err != nil {
		r.Fatal(err)
	}
	return l.Pending
}

// waits waits until exactly one effect waits for approval.
func (r *rig) waits() (p wire.Pending) {
	r.Helper()
	eventually(r, "one effect waits for approval", func() bool {
		l := r.pending("approver")
		if len(l) == 1 {
			p = l[0]
		}
		return len(l) == 1
	})
	return p
}

// sign signs a text with the key of a user.
func (r *rig) sign(who, text string) policy.Signed {
	r.Helper()
	seed, err := os.ReadFile(filepath.Join(r.dir, "keys", who+".nk"))
	if err != nil {
		r.Fatal(err)
	}
	signed, err := policy.Sign(seed, text)
	if err != nil {
		r.Fatal(err)
	}
	return signed
}

// decision is the request that a signed statement goes with.
func (r *rig) decision(who string, id events.EffectID, text string) wire.ApprovalRequest {
	r.Helper()
	s := r.sign(who, text)
	return wire.ApprovalRequest{EffectID: id, Statement: s.Statement, Signature: s.Signature, PublicKey: s.PublicKey}
}

func (r *rig) approve(p wire.Pending) (wire.Effect, error) {
	r.Helper()
	return r.as("approver").Approve(r.Context(), r.decision("approver", p.EffectID, p.Statement))
}

func (r *rig) deny(p wire.Pending) (wire.Effect, error) {
	r.Helper()
	return r.as("approver").Deny(r.Context(), r.decision("approver", p.EffectID, p.DenyStatement))
}

// recorded checks how many permits the log has for an effect, and that verify
// finds nothing wrong with any of it.
func (r *rig) recorded(id events.EffectID, permits int) {
	r.Helper()
	entries := readAll(r, r.log())
	folded(r, entries)
	if n := count(entries, events.TypePermitted, id); n != permits {
		r.Fatalf("%d permits in the log, want %d", n, permits)
	}
	if out, code := r.effectd("verify", "--data", r.dir); code != 0 {
		r.Fatalf("verify: exit code %d\n%s", code, out)
	}
}

// Below the limit nobody is asked. Above it a submit waits for a person and is
// admitted by the approval itself, in one entry; an agent that retries waits for
// the same effect (SPEC 11).
func TestApprovalAdmits(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := approving(t, s, 100_000)
	settledAs(t, r.submit("r", "small"), events.OutcomeSucceeded)
	var waiting [4]<-chan answered
	for i := range waiting {
		waiting[i] = r.submitting("large", 1001, wire.WaitTerminal)
	}
	p := r.waits()
	if p.Reason != "more than 10.00" || p.Budget["usd_cents"] != (wire.BudgetChange{Before: 99_995, After: 98_994}) {
		t.Fatalf("%+v", p)
	}
	_, err := r.as("producer").Submit(t.Context(), wire.SubmitRequest{PrepareRequest: charge("r", "large", 1001), TimeoutMS: 1})
	refusedWith(t, err, wire.WaitTimeout)
	s.served(t, 1)
	e, err := r.approve(p)
	if err != nil || e.State != wire.StateAdmitted || e.Receipt == nil || e.Repeat || e.AdmitError != nil ||
		e.Permit.State != wire.PermitConsumed || e.Permit.Approver != "main/approver" || e.Permit.Kind != events.AuthorizationApproval {
		t.Fatal(err, show(e))
	}
	repeats := 0
	for _, w := range waiting {
		got := take(t, "a waiting submit", w)
		if got.err != nil || got.EffectID != p.EffectID {
			t.Fatal(got.err, show(got.Effect))
		}
		settledAs(t, got.Effect, events.OutcomeSucceeded)
		if got.Repeat {
			repeats++
		}
	}
	if repeats != 3 {
		t.Errorf("%d repeats of 4 requests", repeats)
	}
	again, err := r.approve(p) // a double click
	if err != nil || !again.Repeat || again.State != wire.StateSettled {
		t.Fatal(err, show(again))
	}
	entries := readAll(t, r.log())
	for _, entry := range entries {
		if n := count([]events.Stored{entry}, events.TypePermitted, p.EffectID); n == 1 && count([]events.Stored{entry}, events.TypeAdmitted, p.EffectID) != 1 {
			t.Error("permitted and admitted are not in one entry")
		}
	}
	if len(r.pending("approver")) != 0 {
		t.Error("it still waits")
	}
	r.recorded(p.EffectID, 1)
	s.served(t, 2)
}

// An approval whose admission lacks budget issues the permit all the same. Who
// approved and who waits are told why; so is who asks later, until the producer
// admits (SPEC 7, 11).
func TestApprovalThatDoesNotAdmit(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := approving(t, s, 2000)
	waiting := r.submitting("large", 1500, wire.WaitTerminal)
	p := r.waits()
	arrived, let := make(chan struct{}, 2), make(chan struct{})
	s.answers(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		select {
		case <-let:
		case <-r.Context().Done():
		}
		w.WriteHeader(http.StatusPaymentRequired)
	})
	held := r.submitting("small", 600, wire.WaitTerminal) // the budget is held meanwhile
	take(t, "the other send", arrived)
	if b := r.waits().Budget["usd_cents"]; b != (wire.BudgetChange{Before: 1400, After: -100}) {
		t.Errorf("budget %+v", b)
	}
	lacks := func(e wire.Effect, err error) {
		t.Helper()
		if err != nil || e.EffectID != p.EffectID || e.State != wire.StatePermitted || e.Permit.State != wire.PermitIssued ||
			e.AdmitError == nil || e.AdmitError.Code != wire.BudgetExceeded || e.AdmitError.Message == "" {
			t.Fatal(err, show(e))
		}
	}
	lacks(r.approve(p))
	got := take(t, "the waiting submit", waiting)
	lacks(got.Effect, got.err)
	get := wire.GetRequest{EffectID: p.EffectID, Wait: wire.WaitTerminal, TimeoutMS: patience.Milliseconds()}
	lacks(r.as("producer").Get(t.Context(), get))
	lacks(r.approve(p)) // the same approval; it admits nothing later
	_, err := r.as("producer").Submit(t.Context(), wire.SubmitRequest{PrepareRequest: charge("r", "large", 1500)})
	refusedWith(t, err, wire.BudgetExceeded)

	close(let)
	if h := take(t, "the other charge", held); h.err != nil || h.Outcome != events.OutcomeFailed {
		t.Fatal(h.err, show(h.Effect))
	}
	r.restart()
	lacks(r.as("producer").Get(t.Context(), get)) // nothing admits it by itself, though it could be now
	e, err := r.as("producer").Submit(t.Context(), wire.SubmitRequest{PrepareRequest: charge("r", "large", 1500), Wait: wire.WaitTerminal})
	if err != nil || e.AdmitError != nil || e.State != wire.StateSettled {
		t.Fatal(err, show(e))
	}
	r.recorded(p.EffectID, 1)
	s.served(t, 2)
}

// What was prepared to hold is not admitted by its approval, but by the submit
// that waits for it.
func TestSubmitOfHeldWaitsForApproval(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := approving(t, s, 100_000)
	if _, err := r.as("producer").Prepare(t.Context(), charge("r", "c", 2000)); err != nil {
		t.Fatal(err)
	}
	p := r.waits()
	waiting := r.submitting("c", 2000, wire.WaitTerminal)
	eventually(t, "the submit waits", func() bool { return r.inFlight() == 1 })
	e, err := r.approve(p)
	if err != nil || e.State != wire.StatePermitted || e.AdmitError != nil {
		t.Fatal(err, show(e))
	}
	got := take(t, "the waiting submit", waiting)
	if got.err != nil {
		t.Fatal(got.err)
	}
	settledAs(t, got.Effect, events.OutcomeSucceeded)
	r.recorded(p.EffectID, 1)
	s.served(t, 1)
}

// What waits for a person outlives the node, however it ends; a statement that
// was read before is still the one to sign.
func TestPendingSurvivesRestart(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := approving(t, s, 100_000)
	e := r.ask("c", 2000)
	p := r.waits()
	r.stop()
	killed := r.serve()
	killed.kill()
	r.start()
	again := r.waits()
	if again.EffectID != e.EffectID || again.ExpiresAt != p.ExpiresAt {
		t.Fatalf("%+v", again)
	}
	waiting := r.submitting("c", 2000, wire.WaitTerminal)
	if a, err := r.approve(p); err != nil || a.State != wire.StateAdmitted {
		t.Fatal(err, show(a))
	}
	got := take(t, "the retried submit", waiting)
	if got.err != nil || !got.Repeat {
		t.Fatal(got.err, show(got.Effect))
	}
	settledAs(t, got.Effect, events.OutcomeSucceeded)
	r.recorded(e.EffectID, 1)
	s.served(t, 1)
}

// Of many approvals at once, by two approvers, one is recorded and the others
// are the same one.
func TestTwoApprovers(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := approving(t, s, 100_000)
	r.known("second", events.RoleApprover)
	e := r.ask("c", 2000)
	var first atomic.Int64
	var group sync.WaitGroup
	begin := make(chan struct{})
	for _, who := range []string{"approver", "second"} {
		p := r.pending(who)[0]
		c, request := r.another(who), r.decision(who, e.EffectID, p.Statement)
		for range 8 {
			group.Go(func() {
				<-begin
				a, err := c.Approve(t.Context(), request)
				switch {
				case err != nil:
					t.Error(err)
				case !a.Repeat:
					first.Add(1)
				}
			})
		}
	}
	close(begin)
	group.Wait()
	if first.Load() != 1 {
		t.Errorf("%d approvals say that they are the first", first.Load())
	}
	settledAs(t, r.ended(e.EffectID), events.OutcomeSucceeded)
	r.recorded(e.EffectID, 1)
	s.served(t, 1)
}

// known adds a user that the running node knows.
func (r *rig) known(name events.Principal, role events.Role) {
	r.Helper()
	r.addUser(name, role)
	if err := r.node.Reload(r.Context()); err != nil {
		r.Fatal(err)
	}
}

// expiring asks for a charge that ends soon.
func (r *rig) expiring(causal string, in time.Duration) wire.Effect {
	r.Helper()
	request := charge("r", causal, 2000)
	request.ExpiresAt = time.Now().Add(in).UTC().Format(time.RFC3339Nano)
	e, err := r.as("producer").Submit(r.Context(), wire.SubmitRequest{PrepareRequest: request, Wait: wire.WaitNone})
	if err != nil {
		r.Fatal(err)
	}
	return e
}
