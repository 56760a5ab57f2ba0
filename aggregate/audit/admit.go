package audit

import (
	"slices"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// admitted checks the one record that consumes a permit: its digests, its
// reservation, and that everything of SPEC 7 stood.
func (a *Audit) admitted(ev *events.Event, e *life, d events.Admitted) {
	first := !e.admitted
	a.freshID(string(d.ReservationID), "the reservation's id")
	a.intent(ev, e, d)
	a.check(ruleAuthority, ev.Actor == e.actor(), Unauthorized, "another actor than the producer admits")
	a.authorized(e)
	if r := a.runs[runKey{e.tenant, e.prepared.Context.RunID}]; r != nil {
		a.check(ruleAuthority, r.outcome == "", Unauthorized, "the run had its outcome")
	}
	if !first {
		return
	}
	e.admitted, e.intent = true, ev.IntentSHA256
	e.receipt = a.receipt(ev)
	a.reservation(e, d.Reservation)
}

// intent recomputes what an admission commits to.
func (a *Audit) intent(ev *events.Event, e *life, d events.Admitted) {
	i := d.Intent
	a.check(ruleDigests, i.V == events.Format, UnknownVersion, "intent of an unknown version")
	a.check(rulePairs, ev.IntentSHA256 == events.DigestOf(i), IntentMismatch, "intent_sha256 is not that of the intent")
	a.check(ruleDigests, i.BindingDigest == e.prepared.BindingDigest && i.ContextSHA256 == e.prepared.Binding.ContextSHA256 &&
		i.IdempotencyKey == e.prepared.Binding.IdempotencyKey, DigestMismatch, "the intent is of another binding, context or key")
	a.check(ruleReservations, d.ReservationID == i.Reservation.ReservationID && slices.Equal(d.Reservation, i.Reservation.Lines), ReservationWrong,
		"the reservation is not that of the intent")
	if e.permit == nil {
		return // named as a transition already
	}
	a.check(ruleDigests, d.PermitID == e.permit.ID && i.PermitSHA256 == events.DigestOf(*e.permit) &&
		i.AuthorizationSHA256 == events.DigestOf(e.permit.Authorization), DigestMismatch, "the intent is of another permit")
}

// authorized checks that nothing had ended the authority of an effect.
func (a *Audit) authorized(e *life) {
	reason := a.lapsed(e)
	a.check(ruleAuthority, reason == "", Unauthorized, "the effect was over: "+string(reason))
	a.check(ruleAuthority, !a.denied(e), Unauthorized, "the logged policy does not allow it")
}

// receipt makes the receipt of an admission anew.
func (a *Audit) receipt(ev *events.Event) events.Receipt {
	r := events.Receipt{V: events.Format, EffectID: ev.EffectID, IntentSHA256: ev.IntentSHA256, RunID: ev.RunID, CausalID: ev.CausalID,
		Stream: wire.LogStream, DurablePosition: a.at, StoreFingerprint: a.head.store, CommittedAt: a.now}
	r.ReceiptID = events.ReceiptID("rc_" + events.DigestOf(r))
	return r
}

// dispatched checks the claim: the receipt of its admission, and that authority
// stood still.
func (a *Audit) dispatched(ev *events.Event, e *life, d events.Dispatched) {
	if e.admitted {
		a.check(ruleReceipts, d.Receipt == e.receipt, ReceiptMismatch, "the receipt is not that of the admission")
	}
	a.check(ruleAuthority, ev.Actor == events.SystemActor, Unauthorized, "only the ledger itself gives a claim")
	a.authorized(e)
	a.check(ruleDigests, events.ValidDigest(string(d.NonceSHA256)), ClaimMismatch, "nonce_sha256 is not a digest")
	now, known := a.head.nodes[d.Dispatcher.Node]
	a.check(ruleAuthority, d.DeadlineMS > 0 && d.Dispatcher.Incarnation != "" && (!known || now == d.Dispatcher.Incarnation), ClaimMismatch,
		"the claim has no deadline, or is of a process that had ended")
	var until events.Instant
	if c := a.law.bound(&e.prepared.Binding); c != nil && c.Idempotency != nil && c.Idempotency.Retention > 0 {
		until = a.now.Add(c.Idempotency.Retention)
	}
	a.check(ruleContracts, d.IdempotencyUntil == until, ClaimMismatch, "idempotency_until is not the contract's retention")
	if e.claim == nil {
		e.claim, e.claimed = &d, a.now
	}
}
