package embedded_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// evidence is what an operator brings.
var evidence = events.CanonicalOf(map[string]any{"who": "main/operator", "source": "the bank's statement", "reference": "2026-03/17"})

// statement is what an operator signs about an effect; change alters it.
func (r *rig) statement(e wire.Effect, outcome events.Outcome, change func(*policy.Settlement)) string {
	r.Helper()
	s := policy.Settlement{V: events.Format, LedgerID: r.home().LedgerID(), EffectID: e.EffectID, BindingDigest: e.BindingDigest, Outcome: outcome,
		EvidenceSHA256: events.DigestBytes(evidence), Operator: "main/operator", IssuedAt: events.InstantOf(time.Now())}
	if change != nil {
		change(&s)
	}
	return s.Text()
}

// signedBy signs with the key of a user of the directory.
func (r *rig) signedBy(who, text string) policy.Signed {
	r.Helper()
	seed, err := os.ReadFile(filepath.Join(r.dir, "keys", who+".nk"))
	if err != nil {
		r.Fatal(err)
	}
	signed, err := policy.Sign([]byte(strings.TrimSpace(string(seed))), text)
	if err != nil {
		r.Fatal(err)
	}
	return signed
}

func (r *rig) settle(id events.EffectID, outcome events.Outcome, s policy.Signed) (wire.Effect, error) {
	return r.as("operator").Settle(r.Context(), wire.SettleRequest{EffectID: id, Outcome: outcome, Evidence: evidence,
		Statement: s.Statement, Signature: s.Signature, PublicKey: s.PublicKey})
}

// An operator states what became of an unknown effect, with evidence; that nothing
// happened only under a signature (SPEC 9).
func TestSettledByOperator(t *testing.T) {
	t.Parallel()
	for outcome, spent := range map[events.Outcome]int64{events.OutcomeSucceeded: 5, events.OutcomeFailed: 5, events.OutcomePartial: 5, events.OutcomeNoEffect: 0} {
		t.Run(string(outcome), func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			s.answers(lose)
			r := running(t, s)
			e := r.submit("r", "c")
			unknownFor(t, e, events.ReasonResponseLost)
			signed := policy.Signed{}
			if outcome == events.OutcomeNoEffect {
				_, err := r.settle(e.EffectID, outcome, signed)
				refusedWith(t, err, wire.ApprovalInvalid)
				signed = r.signedBy("operator", r.statement(e, outcome, nil))
			}
			for _, repeat := range []bool{false, true} {
				settled, err := r.settle(e.EffectID, outcome, signed)
				if err != nil {
					t.Fatal(err)
				}
				settledAs(t, settled, outcome)
				if settled.Reason != events.ReasonOperatorEstablished || settled.Repeat != repeat || settled.Evidence.Source != "operator" ||
					settled.Evidence.Who != "main/operator" || string(settled.Evidence.Named) != string(evidence) {
					t.Fatal(show(settled))
				}
			}
			r.account(0, spent, 0)
			other := events.OutcomeFailed
			if outcome == other {
				other = events.OutcomeSucceeded
			}
			_, err := r.settle(e.EffectID, other, policy.Signed{})
			refusedWith(t, err, wire.IllegalTransition)
			s.served(t, 1)
			folded(t, readAll(t, r.log()))
		})
	}
}

// Only the operator's own signature over exactly this statement counts.
func TestSettlementSignatures(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.answers(lose)
	r := running(t, s)
	e := r.submit("r", "c")
	no := events.OutcomeNoEffect
	good := r.signedBy("operator", r.statement(e, no, nil))
	altered := good
	altered.Statement = r.statement(e, no, func(s *policy.Settlement) { s.IssuedAt++ })
	stolen := good
	stolen.PublicKey = r.signedBy("approver", "x").PublicKey
	for name, signed := range map[string]policy.Signed{
		"no signature":     {Statement: good.Statement, PublicKey: good.PublicKey},
		"altered":          altered,
		"another's key":    r.signedBy("producer", r.statement(e, no, nil)),
		"key exchanged":    stolen,
		"another effect":   r.signedBy("operator", r.statement(e, no, func(s *policy.Settlement) { s.EffectID = "01ARZ3NDEKTSV4RRFFQ69G5FAV" })),
		"another ledger":   r.signedBy("operator", r.statement(e, no, func(s *policy.Settlement) { s.LedgerID = "01ARZ3NDEKTSV4RRFFQ69G5FAV" })),
		"another binding":  r.signedBy("operator", r.statement(e, no, func(s *policy.Settlement) { s.BindingDigest = events.ZeroDigest })),
		"another outcome":  r.signedBy("operator", r.statement(e, events.OutcomeSucceeded, nil)),
		"another document": r.signedBy("operator", r.statement(e, no, func(s *policy.Settlement) { s.EvidenceSHA256 = events.ZeroDigest })),
		"another operator": r.signedBy("operator", r.statement(e, no, func(s *policy.Settlement) { s.Operator = "main/other" })),
		"from the future":  r.signedBy("operator", r.statement(e, no, func(s *policy.Settlement) { s.IssuedAt = s.IssuedAt.Add(time.Hour) })),
		"not canonical":    r.signedBy("operator", " "+good.Statement),
	} {
		if _, err := r.settle(e.EffectID, no, signed); codeOf(err) != wire.ApprovalInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	unknownFor(t, r.get(e.EffectID), events.ReasonResponseLost)
	r.account(5, 0, 5)
	if _, err := r.settle(e.EffectID, no, good); err != nil {
		t.Fatal(err)
	}
	r.account(0, 0, 0)
}

// What is not unknown is not settled by a word, and nobody but an operator settles.
func TestWhoSettlesWhat(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := running(t, s)
	done := r.submit("r", "done")
	_, err := r.settle(done.EffectID, events.OutcomeFailed, policy.Signed{})
	refusedWith(t, err, wire.IllegalTransition)
	_, err = r.settle("01ARZ3NDEKTSV4RRFFQ69G5FAV", events.OutcomeFailed, policy.Signed{})
	refusedWith(t, err, wire.UnknownEffect)
	s.answers(lose)
	e := r.submit("r", "lost")
	o := r.as("operator")
	for name, bad := range map[string]wire.SettleRequest{
		"no outcome":   {EffectID: e.EffectID, Evidence: evidence},
		"no evidence":  {EffectID: e.EffectID, Outcome: events.OutcomeFailed, Evidence: events.Raw("{}")},
		"no document":  {EffectID: e.EffectID, Outcome: events.OutcomeFailed, Evidence: events.Raw(`"trust me"`)},
		"not texts":    {EffectID: e.EffectID, Outcome: events.OutcomeFailed, Evidence: events.Raw(`{"source":1}`)},
		"unknown word": {EffectID: e.EffectID, Outcome: "unknown", Evidence: evidence},
	} {
		if _, err := o.Settle(t.Context(), bad); codeOf(err) != wire.InvalidRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = o.Settle(t.Context(), wire.SettleRequest{EffectID: e.EffectID, Outcome: events.OutcomeFailed,
		Evidence: events.CanonicalOf(map[string]string{"source": strings.Repeat("x", 9<<10)})})
	refusedWith(t, err, wire.RecordTooLarge)
	unknownFor(t, r.get(e.EffectID), events.ReasonResponseLost)
}

// To acknowledge accepts a risk: state and reservation stay, and evidence settles
// it as before.
func TestAcknowledged(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.answers(lose)
	r := running(t, s)
	e := r.submit("r", "c")
	_, err := r.as("operator").Acknowledge(t.Context(), wire.EffectReasonRequest{EffectID: e.EffectID})
	refusedWith(t, err, wire.InvalidRequest)
	for _, repeat := range []bool{false, true} {
		known, err := r.as("operator").Acknowledge(t.Context(), wire.EffectReasonRequest{EffectID: e.EffectID, Reason: "small enough"})
		if err != nil {
			t.Fatal(err)
		}
		unknownFor(t, known, events.ReasonResponseLost)
		if a := known.Acknowledged; a == nil || a.By != "main/operator" || a.Reason != "small enough" || known.Repeat != repeat {
			t.Fatal(show(known))
		}
	}
	r.account(5, 0, 5)
	settledAs(t, r.reconcile(e.EffectID), events.OutcomeSucceeded)
	_, err = r.as("operator").Acknowledge(t.Context(), wire.EffectReasonRequest{EffectID: r.submit("r", "d").EffectID, Reason: "as well"})
	if err != nil {
		t.Fatal(err)
	}
	s.served(t, 2)
}

// Nobody reconciles, settles or acknowledges an effect of their own, not even as an
// operator by now.
func TestNobodySettlesTheirOwn(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.answers(lose)
	r := running(t, s)
	e := r.submit("r", "c")
	unknownFor(t, e, events.ReasonResponseLost)
	if err := r.home().RemoveUser("main", "producer"); err != nil {
		t.Fatal(err)
	}
	r.known("producer", events.RoleOperator)
	p, before := r.another("producer"), r.last()
	_, err := p.Settle(t.Context(), wire.SettleRequest{EffectID: e.EffectID, Outcome: events.OutcomeSucceeded, Evidence: evidence})
	refusedWith(t, err, wire.Forbidden)
	_, err = p.Acknowledge(t.Context(), wire.EffectReasonRequest{EffectID: e.EffectID, Reason: "mine"})
	refusedWith(t, err, wire.Forbidden)
	_, err = p.Reconcile(t.Context(), wire.ReconcileRequest{EffectID: e.EffectID})
	refusedWith(t, err, wire.Forbidden)
	if last := r.last(); last != before {
		t.Errorf("%d entries of refused requests", last-before)
	}
	unknownFor(t, r.get(e.EffectID), events.ReasonResponseLost)
	settledAs(t, r.reconcile(e.EffectID), events.OutcomeSucceeded) // another operator may
	s.served(t, 1)
}
