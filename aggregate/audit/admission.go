package audit

import (
	"fmt"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
)

// admitted checks the one record that consumes a permit: its commitments, its
// authority at that moment, and its reservation.
func (a *Audit) admitted(ev *events.Event, e *aggregate.Effect, d *events.Admitted) {
	commit := func(ok bool, what string) {
		a.check(ruleIntents, ok, IntentCommitmentMismatch, what+" does not match")
	}
	i := &d.Intent
	commit(events.DigestOf(*i) == ev.IntentSHA256, "intent_sha256")
	commit(i.BindingDigest == e.Prepared.BindingDigest, "binding_digest")
	commit(i.ContextSHA256 == e.Prepared.Binding.ContextSHA256, "context_sha256")
	commit(i.IdempotencyKey == e.Prepared.Binding.IdempotencyKey, "idempotency_key")
	commit(d.ReservationID == i.Reservation.ReservationID && events.DigestOf(d.Reservation) == events.DigestOf(i.Reservation.Lines), "reservation")
	if a.check(ruleAuthority, e.Permit != nil, Unauthorized, "admitted without a permit") {
		commit(d.PermitID == e.Permit.ID && i.PermitSHA256 == events.DigestOf(*e.Permit), "permit_sha256")
		commit(i.AuthorizationSHA256 == events.DigestOf(e.Permit.Authorization), "authorization_sha256")
	}
	reason := a.state.Lapsed(e, ev.Time)
	a.check(ruleAuthority, reason == "", Unauthorized, "admitted though its authority had ended: "+string(reason))
	run := a.state.Run(e.Tenant, e.Prepared.Context.RunID)
	a.check(ruleAuthority, run == nil || run.Outcome == "", Unauthorized, "admitted in a run that has its outcome")
	a.reservation(e, d)
}

// reservation recomputes the lines and checks that every account has room for
// its own.
func (a *Audit) reservation(e *aggregate.Effect, d *events.Admitted) {
	amounts := events.Amounts{aggregate.UnitEffects: 1}
	for u, amount := range e.Prepared.Binding.MaxCost {
		amounts[u] = amount
	}
	chain := a.state.Ancestry(e.Tenant, e.TaskID())
	want := map[string]int64{}
	for _, t := range chain {
		for u, amount := range amounts {
			want[string(t.ID)+"\x00"+string(u)] = amount
			account := t.Accounts[u]
			a.check(ruleBudget, account.Reserved+account.Spent+amount <= account.Max, BudgetOverdrawn,
				fmt.Sprintf("task %s has not enough %s left", t.ID, u))
			if limit, capped := t.Exposure[u]; capped {
				a.check(ruleBudget, account.Reserved+amount <= limit, BudgetOverdrawn, fmt.Sprintf("task %s is exposed beyond its cap of %s", t.ID, u))
			}
		}
	}
	exact := len(d.Reservation) == len(want)
	for _, l := range d.Reservation {
		amount, ok := want[string(l.TaskID)+"\x00"+string(l.Unit)]
		exact = exact && ok && amount == l.Amount
	}
	a.check(ruleReserved, exact && len(chain) > 0, ReservationMismatch, "the reservation is not the bound in the task and every ancestor")
}

// after checks the state that an event left.
func (a *Audit) after(ev *events.Event) {
	e := a.state.Effect(ev.EffectID)
	if e == nil {
		return
	}
	if ev.Type == events.TypeAdmitted {
		r := e.Admission.Receipt
		id := r.ReceiptID
		r.ReceiptID = ""
		a.check(ruleReceipts, id == events.ReceiptID("rc_"+string(events.DigestOf(r))) && r.DurablePosition == a.pos &&
			r.StoreFingerprint == a.state.Head().Fingerprint, ReceiptMismatch, "the receipt is not of this record")
	}
	for _, t := range a.state.Ancestry(e.Tenant, e.TaskID()) {
		for u, account := range t.Accounts {
			a.check(ruleBudget, account.Reserved >= 0 && account.Unknown >= 0 && account.Unknown <= account.Reserved &&
				account.Reserved+account.Spent-account.Overrun <= account.Max, BudgetOverdrawn, fmt.Sprintf("task %s unit %s is overdrawn", t.ID, u))
		}
	}
}
