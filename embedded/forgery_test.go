package embedded_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
)

// altered is a statement with one member changed; nil takes it away.
func altered(t testing.TB, text, member string, value any) string {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	if m[member] = value; value == nil {
		delete(m, member)
	}
	changed := string(events.CanonicalOf(m))
	if changed == text {
		t.Fatalf("%s is not altered", member)
	}
	return changed
}

// Nothing but the signature of a registered approver over exactly this binding
// is an approval (SPEC 11). Every forgery is refused and leaves no trace.
func TestForgedApprovals(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := approving(t, s, 100_000)
	r.known("second", events.RoleApprover)
	victim, decoy := r.ask("victim", 2000), r.ask("decoy", 2000)
	items := map[events.EffectID]wire.Pending{}
	for _, p := range r.pending("approver") {
		items[p.EffectID] = p
	}
	p, id := items[victim.EffectID], victim.EffectID
	good := r.decision("approver", id, p.Statement)
	with := func(change func(*wire.ApprovalRequest)) wire.ApprovalRequest { f := good; change(&f); return f }

	forged := map[string]wire.ApprovalRequest{
		"signed by the producer":              r.decision("producer", id, p.Statement),
		"signed by the producer, approver's":  with(func(f *wire.ApprovalRequest) { f.Signature = r.sign("producer", p.Statement).Signature }),
		"signed by the operator":              r.decision("operator", id, p.Statement),
		"signed by another approver":          r.decision("second", id, p.Statement),
		"another effect's statement":          r.decision("approver", id, items[decoy.EffectID].Statement),
		"for another effect":                  with(func(f *wire.ApprovalRequest) { f.EffectID = decoy.EffectID }),
		"the statement of a denial":           r.decision("approver", id, p.DenyStatement),
		"the signature of the denial":         with(func(f *wire.ApprovalRequest) { f.Signature = r.sign("approver", p.DenyStatement).Signature }),
		"no signature":                        with(func(f *wire.ApprovalRequest) { f.Signature = "" }),
		"a signature of zeros":                with(func(f *wire.ApprovalRequest) { f.Signature = base64.StdEncoding.EncodeToString(make([]byte, 64)) }),
		"another spelling of the signature":   with(func(f *wire.ApprovalRequest) { f.Signature = strings.TrimRight(f.Signature, "=") }),
		"no statement":                        with(func(f *wire.ApprovalRequest) { f.Statement = "" }),
		"no key":                              with(func(f *wire.ApprovalRequest) { f.PublicKey = "" }),
		"the binding's digest as a statement": r.decision("approver", id, string(victim.BindingDigest)),
		"not canonical":                       r.decision("approver", id, " "+p.Statement),
		"altered after it was signed": with(func(f *wire.ApprovalRequest) {
			f.Statement = altered(t, p.Statement, "max_cost", map[string]int{"usd_cents": 1})
		}),
		"altered to more": r.decision("approver", id, altered(t, p.Statement, "note", "and more")),
	}
	later := events.InstantOf(time.Now().Add(time.Hour))
	for member, value := range map[string]any{
		"v": 2, "ledger_id": "01JNB8QZ2M6T7W6Q3Z5X9K4C1D", "effect_id": decoy.EffectID, "binding_digest": decoy.BindingDigest, "operation": "refund",
		"resource": "account/b", "max_cost": map[string]int{"usd_cents": 2001}, "expires_at": later, "decision": "Approve", "approver": "main/second", "issued_at": later,
	} {
		forged["another "+member] = r.decision("approver", id, altered(t, p.Statement, member, value))
		forged["without "+member] = r.decision("approver", id, altered(t, p.Statement, member, nil))
	}
	seq := r.last()
	for name, f := range forged {
		if e, err := r.as("approver").Approve(t.Context(), f); codeOf(err) != wire.ApprovalInvalid {
			t.Errorf("%s: %v %s", name, err, show(e))
		}
		if name == "the statement of a denial" || name == "the signature of the denial" {
			continue
		}
		if e, err := r.as("approver").Deny(t.Context(), f); codeOf(err) != wire.ApprovalInvalid {
			t.Errorf("deny, %s: %v %s", name, err, show(e))
		}
	}
	for _, who := range []string{"producer", "operator", "auditor"} {
		if _, err := r.another(who).Approve(t.Context(), good); !errors.Is(err, client.ErrDenied) {
			t.Errorf("approved by the %s: %v", who, err)
		}
	}
	if r.last() != seq {
		t.Error("a forgery is in the log")
	}
	if e, err := r.approve(p); err != nil || e.State != wire.StateAdmitted {
		t.Fatal(err, show(e))
	}
	settledAs(t, r.ended(id), events.OutcomeSucceeded)
	if e := r.get(decoy.EffectID); e.State != wire.StatePrepared {
		t.Error(show(e))
	}
	r.recorded(id, 1)
	s.served(t, 1)
}

// What a producer says about an approval, within the payload or beside it, is
// not one.
func TestApprovalInTheRequest(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := approving(t, s, 100_000)
	p := r.waitsFor(r.ask("first", 2000))
	good := r.decision("approver", p.EffectID, p.Statement)
	note := events.CanonicalOf(map[string]any{"account": "a-1", "amount": 2000, "note": string(events.CanonicalOf(good))})
	request := charge("r", "second", 2000)
	request.Payload = note
	e, err := r.as("producer").Submit(t.Context(), wire.SubmitRequest{PrepareRequest: request, Wait: wire.WaitNone})
	if err != nil || e.State != wire.StatePrepared {
		t.Fatal(err, show(e))
	}
	type claiming struct {
		wire.SubmitRequest
		Statement string `json:"statement"`
	}
	_, err = client.Call[claiming, wire.Effect](t.Context(), r.as("producer"), wire.EffectSubmit,
		claiming{wire.SubmitRequest{PrepareRequest: charge("r", "third", 2000), Wait: wire.WaitNone}, p.Statement})
	refusedWith(t, err, wire.InvalidRequest)
	// Nor does an approval of the first say anything about its double.
	if _, err := r.approve(p); err != nil {
		t.Fatal(err)
	}
	if e = r.get(e.EffectID); e.State != wire.StatePrepared {
		t.Fatal(show(e))
	}
	settledAs(t, r.ended(p.EffectID), events.OutcomeSucceeded)
	s.served(t, 1)
}

// An approval of what is denied, withdrawn, revoked or expired answers with what
// became of it, and so does a replay of one that was given before.
func TestApprovalComesTooLate(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := approving(t, s, 100_000)
	for _, c := range []struct {
		name   string
		end    func(wire.Pending) error
		code   wire.Code
		reason events.Reason
		permit wire.PermitState
	}{
		{"denied", func(p wire.Pending) error { _, err := r.deny(p); return err }, wire.PolicyDenied, events.ReasonApprovalDenied, wire.PermitRefused},
		{"withdrawn", r.withdraw, wire.Revoked, events.ReasonWithdrawn, wire.PermitRefused},
		{"revoked", func(p wire.Pending) error {
			_, err := r.as("operator").Revoke(t.Context(), wire.EffectReasonRequest{EffectID: p.EffectID})
			return err
		}, wire.Revoked, events.ReasonRevoked, wire.PermitRefused},
		{"approved and withdrawn", func(p wire.Pending) error {
			_, err := r.approve(p)
			return errors.Join(err, r.withdraw(p))
		}, wire.Revoked, events.ReasonWithdrawn, wire.PermitRevoked},
	} {
		e, err := r.as("producer").Prepare(t.Context(), charge("r", c.name, 2000))
		if err != nil {
			t.Fatal(err)
		}
		p := r.waitsFor(e)
		if err := c.end(p); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		r.over(c.name, p, c.code, c.reason, c.permit)
	}
	e := r.expiring("expired", 1500*time.Millisecond)
	p := r.waitsFor(e)
	eventually(t, "it shows as expired", func() bool { return r.get(e.EffectID).State == wire.StateRefused })
	r.over("expired", p, wire.Expired, events.ReasonExpired, wire.PermitExpired)
	if l := r.pending("approver"); len(l) != 0 {
		t.Errorf("%d still wait", len(l))
	}
	// Who waits for the person is told too.
	waiting := r.submitting("said no", 2000, wire.WaitTerminal)
	if _, err := r.deny(r.waits()); err != nil {
		t.Fatal(err)
	}
	got := take(t, "the waiting submit", waiting)
	refusedWith(t, got.err, wire.PolicyDenied)
	r.recorded("", 1) // of the one that was withdrawn after it
	s.served(t, 0)
}

// over checks what an effect that ended answers to its approval.
func (r *rig) over(name string, p wire.Pending, code wire.Code, reason events.Reason, permit wire.PermitState) {
	r.Helper()
	_, err := r.approve(p)
	var refusal *wire.Error
	if !errors.As(err, &refusal) || refusal.Code != code || refusal.Effect == nil || refusal.Effect.Reason != reason {
		r.Errorf("%s: approved: %v", name, err)
	}
	if e := r.get(p.EffectID); e.State != wire.StateRefused || e.Reason != reason || e.Permit.State != permit {
		r.Errorf("%s: %s", name, show(e))
	}
	if e, err := r.deny(p); reason == events.ReasonApprovalDenied && (err != nil || !e.Repeat) || reason != events.ReasonApprovalDenied && codeOf(err) != code {
		r.Errorf("%s: denied: %v", name, err)
	}
}

func (r *rig) withdraw(p wire.Pending) error {
	r.Helper()
	_, err := r.as("producer").Withdraw(r.Context(), wire.EffectReasonRequest{EffectID: p.EffectID})
	return err
}

// waitsFor is what the approver is shown of one effect.
func (r *rig) waitsFor(e wire.Effect) wire.Pending {
	r.Helper()
	l, err := r.as("approver").Pending(r.Context(), wire.PendingRequest{EffectID: e.EffectID})
	if err != nil || len(l.Pending) != 1 || l.Pending[0].EffectID != e.EffectID {
		r.Fatalf("%v: %+v", err, l)
	}
	return l.Pending[0]
}

// Nobody approves an effect of their own, not even as an approver by now; and an
// approver of another tenant knows nothing of it.
func TestWhoMayApprove(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := approving(t, s, 100_000)
	p := r.waitsFor(r.ask("c", 2000))
	h := r.home()
	_, key, err := h.AddUser(home.NewUser{Tenant: "other", Principal: "judge", Role: events.RoleApprover})
	if err == nil {
		err = h.RemoveUser("main", "producer")
	}
	if err != nil {
		t.Fatal(err)
	}
	r.known("producer", events.RoleApprover)

	statement := altered(t, p.Statement, "approver", "main/producer")
	_, err = r.another("producer").Approve(t.Context(), r.decision("producer", p.EffectID, statement))
	refusedWith(t, err, wire.SelfApproval)
	_, err = r.another("producer").Deny(t.Context(), r.decision("producer", p.EffectID, altered(t, p.DenyStatement, "approver", "main/producer")))
	refusedWith(t, err, wire.SelfApproval)
	if l := r.pending("producer"); len(l) != 0 {
		t.Errorf("shown its own: %+v", l)
	}
	judge, err := client.Dial(r.node.Ready().NATSURL, key, "other", "judge")
	if err != nil {
		t.Fatal(err)
	}
	defer judge.Close()
	if l, err := judge.Pending(t.Context(), wire.PendingRequest{}); err != nil || len(l.Pending) != 0 {
		t.Errorf("%v: %+v", err, l)
	}
	_, err = judge.Approve(t.Context(), r.decision("approver", p.EffectID, p.Statement))
	refusedWith(t, err, wire.UnknownEffect)
	if e, err := r.approve(p); err != nil || e.State != wire.StateAdmitted {
		t.Fatal(err, show(e))
	}
	settledAs(t, r.ended(p.EffectID), events.OutcomeSucceeded)
	s.served(t, 1)
}

// Thousands that wait are read page by page, each once.
func TestManyPending(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := approving(t, s, 100_000)
	const many = 600
	for i := range many {
		r.ask(fmt.Sprint(i), 2000)
	}
	seen, request := map[events.EffectID]bool{}, wire.PendingRequest{}
	for n := 0; n == 0 || request.Cursor != ""; n++ {
		l, err := r.as("approver").Pending(t.Context(), request)
		if err != nil || len(l.Pending) == 0 || l.Position.IsZero() {
			t.Fatal(n, err, len(l.Pending))
		}
		for _, p := range l.Pending {
			seen[p.EffectID] = true
		}
		request.Cursor = l.Cursor
	}
	if len(seen) != many {
		t.Errorf("%d of %d", len(seen), many)
	}
}
