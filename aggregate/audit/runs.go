package audit

import "github.com/effectd/effectd/events"

// run is one invocation, and which of its effects are not over.
type run struct {
	principal events.Principal
	cancelled bool
	outcome   events.RunOutcome
	open      map[events.EffectID]*life
}

func newRun(p events.Principal) *run { return &run{principal: p, open: map[events.EffectID]*life{}} }

type runKey struct {
	tenant events.Tenant
	id     events.RunID
}

// ofRun is the run of an event, if who ends it may.
func (a *Audit) ofRun(ev *events.Event, p events.Principal) *run {
	r := a.runs[runKey{ev.Tenant, ev.RunID}]
	if !a.check(ruleAuthority, r != nil && r.principal == p && ev.Actor == events.ActorOf(ev.Tenant, p), Unauthorized,
		"the run does not exist, or is another principal's") {
		return nil
	}
	a.role(ev.Actor, ev.Tenant, events.RoleProducer)
	return r
}

func (a *Audit) runCancelled(ev *events.Event, d events.RunCancelled) {
	if r := a.ofRun(ev, d.Principal); r != nil {
		a.check(ruleTransitions, !r.cancelled && r.outcome == "", IllegalTransition, "the run is over already")
		r.cancelled = true
	}
}

func (a *Audit) runFinished(ev *events.Event, d events.RunFinished) {
	r := a.ofRun(ev, d.Principal)
	if r == nil {
		return
	}
	a.check(ruleTransitions, r.outcome == "" && d.Outcome != "", IllegalTransition, "the run has its outcome already, or gets none")
	a.check(ruleTransitions, !r.cancelled || d.Outcome == events.RunOutcomeCancelled, IllegalTransition, "a cancelled run ends as cancelled only")
	if d.Outcome == events.RunSucceeded {
		for _, e := range r.open {
			a.check(ruleTransitions, e.stage < admitted && a.lapsed(e) != "", IllegalTransition, "a run succeeds only when its effects are settled")
		}
	}
	r.outcome = d.Outcome
}
