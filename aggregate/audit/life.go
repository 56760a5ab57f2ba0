package audit

import (
	"fmt"

	"github.com/effectd/effectd/events"
)

// stage is where an effect stands (SPEC 5).
type stage int

const (
	prepared stage = iota
	permitted
	admitted
	dispatched
	unknown
	settled
	refused
)

var stageNames = [...]string{"prepared", "permitted", "admitted", "dispatched", "unknown", "settled", "refused"}

func (s stage) String() string { return stageNames[s] }

// life is what the audit keeps of one effect until it is collected.
type life struct {
	id       events.EffectID
	tenant   events.Tenant
	stage    stage
	prepared events.Prepared
	permit   *events.Permit
	lines    []events.ReservationLine

	admitted bool
	intent   events.Digest
	receipt  events.Receipt // of the admission, with its id
	claim    *events.Dispatched
	claimed  events.Instant

	running    events.AttemptID // attempt that has not ended
	conclusive events.AttemptID // attempt that ended so and has not settled yet
	attempts   int
	settled    *events.Settled
	charged    events.Amounts
	acked      bool
}

func (e *life) actor() events.Actor { return events.ActorOf(e.tenant, e.prepared.Context.Principal) }

// legal names the stages in which an event about an effect may stand, and the
// stage that it leads to.
var legal = map[events.Type]struct {
	from []stage
	to   stage
	once Code // the code if it has happened already
}{
	events.TypePermitted:        {[]stage{prepared}, permitted, DuplicatePermit},
	events.TypeRefused:          {[]stage{prepared, permitted}, refused, ""},
	events.TypeAdmitted:         {[]stage{permitted}, admitted, DuplicateAdmission},
	events.TypeDispatched:       {[]stage{admitted}, dispatched, DuplicateClaim},
	events.TypeUnknown:          {[]stage{dispatched}, unknown, ""},
	events.TypeSettled:          {[]stage{admitted, dispatched, unknown}, settled, DuplicateSettle},
	events.TypeReconcileStarted: {[]stage{unknown}, unknown, ""},
	events.TypeReconcileEnded:   {[]stage{unknown}, unknown, ""},
	events.TypeAcknowledged:     {[]stage{unknown}, unknown, ""},
	events.TypeContradicted:     {[]stage{settled}, settled, ""},
}

// happened reports whether the one permit, admission, claim or settle of the
// effect is in the log.
func (e *life) happened(t events.Type) bool {
	switch t {
	case events.TypePermitted:
		return e.permit != nil
	case events.TypeAdmitted:
		return e.admitted
	case events.TypeDispatched:
		return e.claim != nil
	case events.TypeSettled:
		return e.settled != nil
	}
	return false
}

// effect checks an event about an effect that exists, and moves it on.
func (a *Audit) effect(ev *events.Event) {
	e, rule := a.lives[ev.EffectID], legal[ev.Type]
	if !a.known(ev, e) {
		return
	}
	a.commonFields(ev, e)
	if rule.once != "" {
		a.check(ruleUnique, !e.happened(ev.Type), rule.once, fmt.Sprintf("%s for a second time", ev.Type))
	}
	ok := false
	for _, from := range rule.from {
		ok = ok || e.stage == from
	}
	if !e.happened(ev.Type) || rule.once == "" {
		a.check(ruleTransitions, ok, IllegalTransition, fmt.Sprintf("%s of an effect that is %s", ev.Type, e.stage))
	}
	switch d := ev.Data.(type) {
	case events.Permitted:
		a.permitted(ev, e, d)
	case events.Refused:
		a.refused(ev, e, d)
	case events.Admitted:
		a.admitted(ev, e, d)
	case events.Dispatched:
		a.dispatched(ev, e, d)
	case events.Unknown:
		a.books.add(e.tenant, e.lines, func(c *account, n int64) { c.unknown += n })
	case events.Settled:
		a.settled(ev, e, d)
	case events.ReconcileStarted:
		a.attemptStarted(ev, e, d)
	case events.ReconcileEnded:
		a.attemptEnded(e, d)
	case events.Acknowledged:
		a.check(ruleTransitions, !e.acked, IllegalTransition, "the risk is accepted already")
		a.overseen(ev, e, "acknowledge")
		e.acked = true
	case events.Contradicted:
		a.contradicted(e, d)
	default: // not about one effect, or checked by the rule of its transition alone
	}
	e.stage = rule.to
	if e.stage == settled || e.stage == refused {
		if r := a.runs[runKey{e.tenant, e.prepared.Context.RunID}]; r != nil {
			delete(r.open, e.id)
		}
	}
	if e.admitted {
		a.balanced(e)
	}
}

// known checks that an effect was prepared, and that a result has its intent.
func (a *Audit) known(ev *events.Event, e *life) bool {
	result := ev.Type == events.TypeSettled || ev.Type == events.TypeUnknown || ev.Type == events.TypeDispatched
	if result {
		a.check(rulePairs, e != nil && e.admitted, ResultNoIntent, fmt.Sprintf("%s without an admission", ev.Type))
	}
	return a.check(ruleTransitions, e != nil, IllegalTransition, "the effect is not there: never prepared, or collected")
}

// commonFields holds the envelope of an event against the effect that it is about.
func (a *Audit) commonFields(ev *events.Event, e *life) {
	c, b := &e.prepared.Context, &e.prepared.Binding
	a.check(rulePairs, ev.Operation == b.Operation, OperationMismatch, "the event names another operation than the effect's")
	a.check(rulePairs, ev.Tenant == e.tenant && ev.TaskID == b.TaskID && ev.RunID == c.RunID && ev.CausalID == c.CausalID, EnvelopeMismatch,
		"tenant, task, run or causal id are not the effect's")
	if ev.Type != events.TypeAdmitted {
		a.check(rulePairs, ev.IntentSHA256 == e.intent, IntentMismatch, "intent_sha256 is not that of the admission")
	}
}

// collected forgets effects, and holds that nothing could still refer to them.
func (a *Audit) collected(d events.Collected) {
	for _, id := range d.Effects {
		e := a.lives[id]
		if !a.check(ruleCollected, e != nil, IllegalTransition, "what is collected is not there") {
			continue
		}
		a.check(rulePairs, !e.admitted || e.stage == settled, IntentNoResult, "an admitted effect is forgotten before it is settled")
		a.check(ruleCollected, e.stage == settled || e.stage == refused, IllegalTransition, "an effect is forgotten that is not over")
		horizon := e.prepared.Binding.ExpiresAt
		if t := a.books[taskKey{e.tenant, e.prepared.Binding.TaskID}]; t != nil {
			horizon = max(horizon, t.expires)
		}
		if e.claim != nil {
			horizon = max(horizon, e.claim.IdempotencyUntil)
		}
		a.check(ruleCollected, horizon < a.now && d.Horizon <= a.now, CollectedEarly, "binding, task or service window have not passed")
		delete(a.lives, id)
	}
}

// lapsed says what has ended an effect before its claim, without policy, or "".
func (a *Audit) lapsed(e *life) events.Reason {
	b := &e.prepared.Binding
	expires := b.ExpiresAt
	if e.permit != nil {
		expires = e.permit.ExpiresAt
	}
	_, tasks := a.books.chain(e.tenant, b.TaskID)
	c := a.law.bound(b)
	r := a.runs[runKey{e.tenant, e.prepared.Context.RunID}]
	switch {
	case a.now >= expires:
		return events.ReasonExpired
	case len(tasks) == 0 || !tasks[0].holds(e.actor()):
		return events.ReasonTaskClosed
	case alive(tasks, a.now) != "":
		return alive(tasks, a.now)
	case c != nil && c.retired:
		return events.ReasonOperationRetired
	case r != nil && r.cancelled:
		return events.ReasonRunCancelled
	}
	return ""
}

// denied reports whether the logged policy does not allow an effect any more.
func (a *Audit) denied(e *life) bool {
	if a.law.allows("commit", e.actor(), e) {
		return false
	}
	byApproval := e.permit == nil || e.permit.Authorization.Kind == events.AuthorizationApproval
	return !(byApproval && a.law.allows("request_approval", e.actor(), e))
}
