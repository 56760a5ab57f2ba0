package audit

import (
	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/events"
)

// settled checks an outcome: who may say it, what it costs, what it frees.
func (a *Audit) settled(ev *events.Event, e *life, d events.Settled) {
	if e.settled != nil {
		return // named as a duplicate; it settles nothing
	}
	a.check(ruleTransitions, d.Outcome == events.OutcomeSucceeded || d.Outcome == events.OutcomeFailed || d.Outcome == events.OutcomePartial ||
		d.Outcome == events.OutcomeNoEffect, IllegalTransition, "settled without a proven outcome")
	switch {
	case e.stage == admitted:
		a.check(ruleTransitions, d.Outcome == events.OutcomeNoEffect, IllegalTransition, "never claimed, so never sent: only no_effect")
		a.founded(ev, e, d.Reason)
	case d.Reason == events.ReasonOperatorEstablished:
		a.check(ruleTransitions, e.stage == unknown, IllegalTransition, "only an unknown effect is settled by an operator")
		a.operatorSettled(ev, e, d)
	}
	a.check(ruleTransitions, e.running == "" && d.AttemptID == e.conclusive, IllegalTransition, "an attempt is running, or another one proved it")
	a.check(ruleTransitions, !d.Late || e.stage == unknown, IllegalTransition, "late, but not after unknown")
	a.cost(e, d)
	if e.stage == unknown {
		a.books.add(e.tenant, e.lines, func(c *account, n int64) { c.unknown -= n })
	}
	a.books.add(e.tenant, e.lines, func(c *account, n int64) { c.reserved -= n })
	e.charged = spent(d.Outcome, d.Cost)
	a.charge(e, e.charged, d.Overrun)
	e.settled, e.conclusive = &d, ""
}

// cost checks what is charged: nothing for no_effect, every reserved unit
// otherwise, and beyond the bound only as overrun.
func (a *Audit) cost(e *life, d events.Settled) {
	bound := e.prepared.Binding.MaxCost
	if d.Outcome == events.OutcomeNoEffect {
		a.check(ruleBudget, len(d.Cost) == 0 && len(d.Overrun) == 0, CostMismatch, "no_effect is charged")
		return
	}
	ok := true
	for u, amount := range d.Cost {
		over := max(0, amount-bound[u])
		ok = ok && amount >= 0 && amount <= events.MaxAmount && d.Overrun[u] == over && u != aggregate.UnitEffects
	}
	for u := range d.Overrun {
		_, charged := d.Cost[u]
		ok = ok && charged
	}
	for u := range bound {
		_, charged := d.Cost[u]
		ok = ok && charged
	}
	a.check(ruleBudget, ok, CostMismatch, "the cost lacks a unit, is no amount, or exceeds the bound without overrun")
}

// spent is what an outcome costs, the admission counted.
func spent(o events.Outcome, cost events.Amounts) events.Amounts {
	out := events.Amounts{}
	for u, amount := range cost {
		out[u] = amount
	}
	if o != events.OutcomeNoEffect {
		out[aggregate.UnitEffects] = 1
	}
	return out
}

// operatorSettled checks an operator's word.
func (a *Audit) operatorSettled(ev *events.Event, e *life, d events.Settled) {
	u, ok := a.overseen(ev, e, "settle")
	a.check(ruleDigests, d.Evidence.SHA256 == events.DigestBytes(d.Evidence.Named), DigestMismatch, "the evidence's digest is not that of its document")
	if d.Statement == "" && d.Outcome != events.OutcomeNoEffect || !ok {
		return
	}
	_, err := policy.VerifySettlement(policy.Signed{Statement: d.Statement, Signature: d.Signature, PublicKey: d.PublicKey}, u.PublicKey,
		policy.Settlement{V: events.Format, LedgerID: a.head.ledger, EffectID: e.id, BindingDigest: e.prepared.BindingDigest, Outcome: d.Outcome,
			EvidenceSHA256: d.Evidence.SHA256, Operator: ev.Actor, IssuedAt: a.now})
	a.check(ruleAuthority, err == nil, SignatureInvalid, "the statement is not signed by the operator, or not about this outcome")
}

// overseen checks that an operator of the tenant acts, whom policy lets, and not
// on an effect of their own.
func (a *Audit) overseen(ev *events.Event, e *life, action string) (events.User, bool) {
	u, ok := a.role(ev.Actor, e.tenant, events.RoleOperator)
	allowed := a.check(ruleAuthority, ev.Actor != e.actor() && a.law.allows(action, ev.Actor, e), Unauthorized, "the logged policy does not allow "+action)
	return u, ok && allowed
}

// contradicted charges what disagreeing evidence proves, as overrun.
func (a *Audit) contradicted(e *life, d events.Contradicted) {
	if e.settled == nil {
		return // named as a transition
	}
	a.check(ruleTransitions, d.Outcome != e.settled.Outcome && d.Outcome != events.OutcomeUnknown, IllegalTransition, "what agrees contradicts nothing")
	ok := d.Outcome != events.OutcomeNoEffect || len(d.Cost) == 0
	for u, amount := range d.Cost {
		ok = ok && amount > 0 && amount <= events.MaxAmount
		e.charged[u] += max(amount, 0)
		ok = ok && e.charged[u] <= events.MaxAmount && (u != aggregate.UnitEffects || e.charged[u] == 1)
	}
	a.check(ruleBudget, ok, CostMismatch, "the extra cost is no amount")
	a.charge(e, d.Cost, d.Cost)
}

// attemptStarted checks the one bounded attempt at a time.
func (a *Audit) attemptStarted(ev *events.Event, e *life, d events.ReconcileStarted) {
	a.freshID(string(d.AttemptID), "attempt_id")
	a.check(ruleTransitions, e.running == "" && e.attempts < aggregate.MaxAttempts, IllegalTransition, "an attempt is running, or there were too many")
	a.check(ruleAuthority, d.AuthorizedBy == ev.Actor, Unauthorized, "authorized by another than who started it")
	a.overseen(ev, e, "reconcile")
	a.check(ruleTransitions, d.Deadline > a.now && d.Deadline <= a.now.Add(aggregate.MaxAttemptDeadline), IllegalTransition, "the attempt has no bounded deadline")
	if c := a.law.bound(&e.prepared.Binding); c != nil {
		a.check(ruleContracts, c.Supports()[string(d.Method)], ContractMismatch, "the contract does not declare the method")
		if d.Method == events.MethodResubmitSameKey && e.claim != nil {
			a.check(ruleContracts, d.Deadline < e.claim.IdempotencyUntil, ContractMismatch, "resubmitted when the service may have forgotten the key")
		}
	}
	e.running, e.attempts = d.AttemptID, e.attempts+1
}

func (a *Audit) attemptEnded(e *life, d events.ReconcileEnded) {
	a.check(ruleTransitions, e.running != "" && d.AttemptID == e.running, IllegalTransition, "the attempt is not running")
	e.running, e.conclusive = "", ""
	if d.Result == events.AttemptConclusive {
		e.conclusive = d.AttemptID
	}
}
