package audit_test

import (
	"slices"

	"github.com/effectd/effectd/aggregate/audit"
	"github.com/effectd/effectd/aggregate/rehearsal"
	"github.com/effectd/effectd/events"
)

// admission changes the intent of an admission and digests it anew, there and in
// its own envelope.
func admission(f func(*events.Admitted)) func(*damaged) events.Position {
	return func(d *damaged) events.Position {
		return edit(d, d.sent, func(ev *event, a *events.Admitted) {
			a.Reservation = slices.Clone(a.Reservation)
			f(a)
			a.Intent.Reservation.Lines = slices.Clone(a.Reservation)
			ev.IntentSHA256 = events.DigestOf(a.Intent)
		})
	}
}

// admissionDamage is to admissions, claims and the budgets that they need.
var admissionDamage = []damage{
	{"an intent's digest", audit.IntentMismatch, func(d *damaged) events.Position {
		return edit(d, d.sent, func(ev *event, _ *events.Admitted) { ev.IntentSHA256 = events.ZeroDigest })
	}},
	{"an intent of another permit, sealed", audit.DigestMismatch, admission(func(a *events.Admitted) { a.Intent.PermitSHA256 = events.ZeroDigest })},
	{"an intent of another authorization, sealed", audit.DigestMismatch, admission(func(a *events.Admitted) { a.Intent.AuthorizationSHA256 = events.ZeroDigest })},
	{"an intent of another binding, sealed", audit.DigestMismatch, admission(func(a *events.Admitted) { a.Intent.BindingDigest = events.ZeroDigest })},
	{"a line is left out of a reservation, sealed", audit.ReservationWrong, admission(func(a *events.Admitted) { a.Reservation = a.Reservation[1:] })},
	{"a reservation of less, sealed", audit.ReservationWrong, admission(func(a *events.Admitted) { a.Reservation[1].Amount-- })},
	{"a reservation in another task, sealed", audit.ReservationWrong, admission(func(a *events.Admitted) { a.Reservation[0].TaskID = "brief" })},
	{"a reservation that the intent does not name", audit.ReservationWrong, func(d *damaged) events.Position {
		return edit(d, d.sent, func(_ *event, a *events.Admitted) {
			a.Reservation = slices.Clone(a.Reservation)
			a.Reservation[1].Amount--
		})
	}},
	{"an admission by another", audit.Unauthorized, func(d *damaged) events.Position {
		return edit(d, d.sent, func(ev *event, _ *events.Admitted) { ev.Actor = rehearsal.Operator.Actor() })
	}},
	{"a budget that was smaller", audit.BudgetOverdrawn, func(d *damaged) events.Position {
		editNth(d, "", 1, func(_ *event, o *events.TaskOpened) {
			o.Budgets = events.Amounts{"usd_cents": 99, "effects": 9, "wires": 5}
		})
		i, j := at[events.Admitted](d, d.sent, 0)
		return position(i, j)
	}},
	{"a cap that was smaller", audit.ExposureOverdrawn, func(d *damaged) events.Position {
		editNth(d, "", 1, func(_ *event, o *events.TaskOpened) { o.Exposure = events.Amounts{"usd_cents": 99} })
		i, j := at[events.Admitted](d, d.sent, 0)
		return position(i, j)
	}},
	{"a child with more than its parent", audit.BudgetOverdrawn, func(d *damaged) events.Position {
		return editNth(d, "", 1, func(_ *event, o *events.TaskOpened) { o.Budgets = events.Amounts{"usd_cents": 1e6} })
	}},
	{"a child that outlives its parent", audit.BudgetOverdrawn, func(d *damaged) events.Position {
		return editNth(d, "", 1, func(_ *event, o *events.TaskOpened) { o.ExpiresAt = o.ExpiresAt.Add(1) })
	}},
	{"a child without a parent", audit.IllegalTransition, func(d *damaged) events.Position {
		return editNth(d, "", 1, func(_ *event, o *events.TaskOpened) { o.Parent = "none" })
	}},
	{"a root by a producer", audit.Unauthorized, func(d *damaged) events.Position {
		return editNth(d, "", 2, func(ev *event, _ *events.TaskOpened) { ev.Actor = rehearsal.Producer.Actor() })
	}},
	{"a task is opened twice", audit.DuplicateTask, func(d *damaged) events.Position { return again[events.TaskOpened](d, "") }},
	{"a receipt for another place", audit.ReceiptMismatch, func(d *damaged) events.Position {
		return edit(d, d.sent, func(_ *event, c *events.Dispatched) {
			reissue(&c.Receipt, func(r *events.Receipt) { r.DurablePosition.Seq++ })
		})
	}},
	{"a receipt of another store", audit.ReceiptMismatch, func(d *damaged) events.Position {
		return edit(d, d.sent, func(_ *event, c *events.Dispatched) {
			reissue(&c.Receipt, func(r *events.Receipt) { r.StoreFingerprint = events.ZeroDigest })
		})
	}},
	{"a receipt's id", audit.ReceiptMismatch, func(d *damaged) events.Position {
		return edit(d, d.sent, func(_ *event, c *events.Dispatched) {
			c.Receipt.ReceiptID = "rc_" + events.ReceiptID(events.ZeroDigest)
		})
	}},
	{"a nonce that is no digest", audit.ClaimMismatch, func(d *damaged) events.Position {
		return edit(d, d.sent, func(_ *event, c *events.Dispatched) { c.NonceSHA256 = "secret" })
	}},
	{"a claim of a process that had ended", audit.ClaimMismatch, func(d *damaged) events.Position {
		return edit(d, d.sent, func(_ *event, c *events.Dispatched) { c.Dispatcher.Incarnation = "01K00000000000000000EARLIER" })
	}},
	{"a longer memory of the service", audit.ClaimMismatch, func(d *damaged) events.Position {
		return edit(d, d.sent, func(_ *event, c *events.Dispatched) { c.IdempotencyUntil = c.IdempotencyUntil.Add(1) })
	}},
}

func reissue(r *events.Receipt, f func(*events.Receipt)) {
	f(r)
	r.ReceiptID = ""
	r.ReceiptID = events.ReceiptID("rc_" + events.DigestOf(*r))
}

func result(f func(*events.Settled)) func(*damaged) events.Position {
	return func(d *damaged) events.Position {
		return edit(d, d.sent, func(_ *event, s *events.Settled) { f(s) })
	}
}

// resultDamage is to outcomes and what they cost.
var resultDamage = []damage{
	{"a cost above the bound without overrun", audit.CostMismatch, result(func(s *events.Settled) { s.Overrun = nil })},
	{"a cost that is negative", audit.CostMismatch, result(func(s *events.Settled) { s.Cost, s.Overrun = events.Amounts{"usd_cents": -5}, nil })},
	{"a unit is not charged", audit.CostMismatch, result(func(s *events.Settled) { s.Cost, s.Overrun = events.Amounts{}, nil })},
	{"no_effect that is charged", audit.CostMismatch, result(func(s *events.Settled) { s.Outcome = events.OutcomeNoEffect })},
	{"no outcome", audit.IllegalTransition, result(func(s *events.Settled) { s.Outcome = "" })},
	{"late, but it was not", audit.IllegalTransition, result(func(s *events.Settled) { s.Late = true })},
	{"an attempt that was none", audit.IllegalTransition, result(func(s *events.Settled) { s.AttemptID = "A" })},
	{"a contradiction that agrees", audit.IllegalTransition, func(d *damaged) events.Position {
		return edit(d, d.sent, func(_ *event, c *events.Contradicted) { c.Outcome = events.OutcomeSucceeded })
	}},
	{"a contradiction that refunds", audit.CostMismatch, func(d *damaged) events.Position {
		return edit(d, d.sent, func(_ *event, c *events.Contradicted) { c.Cost = events.Amounts{"usd_cents": -20} })
	}},
	{"an outcome without a claim", audit.IllegalTransition, func(d *damaged) events.Position { return drop[events.Dispatched](d, d.sent) }},
	{"an end before the claim for another reason", audit.ReasonUnfounded, func(d *damaged) events.Position {
		return edit(d, d.closed, func(_ *event, s *events.Settled) { s.Reason = events.ReasonRunCancelled })
	}},
	{"a denial that is called expiry", audit.ReasonUnfounded, func(d *damaged) events.Position {
		return edit(d, d.denied, func(ev *event, r *events.Refused) { r.Reason, ev.Actor = events.ReasonExpired, events.SystemActor })
	}},
	{"a denial that is called policy", audit.ReasonUnfounded, func(d *damaged) events.Position {
		return edit(d, d.denied, func(ev *event, r *events.Refused) { r.Reason, ev.Actor = events.ReasonPolicyDenied, events.SystemActor })
	}},
}

// orderDamage leaves out, repeats and adds events.
var orderDamage = []damage{
	{"an admission is left out", audit.ResultNoIntent, func(d *damaged) events.Position { return drop[events.Admitted](d, d.lost) }},
	{"a permit is left out", audit.IllegalTransition, func(d *damaged) events.Position { return drop[events.Permitted](d, d.lost) }},
	{"a preparation is left out", audit.IllegalTransition, func(d *damaged) events.Position { return drop[events.Prepared](d, d.lost) }},
	{"the start of an attempt is left out", audit.IllegalTransition, func(d *damaged) events.Position { return drop[events.ReconcileStarted](d, d.lost) }},
	{"the end of an attempt is left out", audit.IllegalTransition, func(d *damaged) events.Position { return drop[events.ReconcileEnded](d, d.lost) }},
	{"a permit twice", audit.DuplicatePermit, func(d *damaged) events.Position { return again[events.Permitted](d, d.wired) }},
	{"an admission twice", audit.DuplicateAdmission, func(d *damaged) events.Position { return again[events.Admitted](d, d.sent) }},
	{"a claim twice", audit.DuplicateClaim, func(d *damaged) events.Position { return again[events.Dispatched](d, d.sent) }},
	{"an outcome twice", audit.DuplicateSettle, func(d *damaged) events.Position { return again[events.Settled](d, d.sent) }},
	{"a preparation twice", audit.DuplicateEffect, func(d *damaged) events.Position { return again[events.Prepared](d, d.wired) }},
	{"a task was closed before", audit.Unauthorized, func(d *damaged) events.Position {
		i, _ := at[events.Settled](d, d.early, 0)
		d.insert(i, events.Event{Tenant: "main", Actor: rehearsal.Operator.Actor(), TaskID: "child", Data: events.TaskClosed{}})
		i, j := at[events.Prepared](d, d.sent, 0)
		return position(i, j)
	}},
	{"a run was cancelled before", audit.Unauthorized, func(d *damaged) events.Position {
		i, _ := at[events.Settled](d, d.sent, 0)
		d.insert(i, events.Event{Tenant: "main", Actor: rehearsal.Producer.Actor(), RunID: "run", Data: events.RunCancelled{Principal: "producer"}})
		i, j := at[events.Prepared](d, d.wired, 0)
		return position(i, j)
	}},
	{"a run is ended by another", audit.Unauthorized, func(d *damaged) events.Position {
		return edit(d, "", func(ev *event, r *events.RunCancelled) { ev.Actor, r.Principal = "main/other", "other" })
	}},
	{"a run succeeds with an open effect", audit.IllegalTransition, func(d *damaged) events.Position {
		i, _ := at[events.Dispatched](d, d.lost, 0)
		return d.insert(i, events.Event{Tenant: "main", Actor: rehearsal.Producer.Actor(), RunID: "run", Data: events.RunFinished{Outcome: events.RunSucceeded, Principal: "producer"}})
	}},
	{"a run has two outcomes", audit.IllegalTransition, func(d *damaged) events.Position { return again[events.RunFinished](d, "") }},
	{"an open intent is forgotten", audit.IntentNoResult, func(d *damaged) events.Position {
		i, _ := at[events.Dispatched](d, d.open, 0)
		return d.insert(i, events.Event{Tenant: events.SystemTenant, Actor: events.SystemActor, Data: events.Collected{Effects: []events.EffectID{d.open}, Horizon: d.log[i].Time}})
	}},
	{"an effect is forgotten early", audit.CollectedEarly, func(d *damaged) events.Position {
		i, _ := at[events.Settled](d, d.wired, 0)
		return d.insert(i, events.Event{Tenant: events.SystemTenant, Actor: events.SystemActor, Data: events.Collected{Effects: []events.EffectID{d.wired}, Horizon: d.log[i].Time}})
	}},
	{"a forgotten effect goes on", audit.ResultNoIntent, func(d *damaged) events.Position {
		i, j := at[events.Settled](d, d.early, 0)
		ev := d.log[i].Events[j]
		last, _ := at[events.Prepared](d, d.sent, 0)
		return d.insert(last, ev)
	}},
}
