package aggregate

import (
	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// View is the reply about an effect as of ledger time at: what time, a closed
// task or a cancelled run has ended shows as ended before the log says so.
func (s *State) View(e *Effect, at events.Instant) *wire.Effect {
	p := e.Prepared
	v := &wire.Effect{
		EffectID: e.ID, State: e.State, Operation: e.Operation(), Version: p.Binding.OperationVersion,
		Tenant: e.Tenant, Principal: e.Principal, TaskID: e.TaskID(), RunID: p.Context.RunID, CausalID: p.Context.CausalID,
		Resource: p.Binding.Resource, BindingDigest: p.BindingDigest, IntentSHA256: e.IntentSHA256(), IdempotencyKey: p.Binding.IdempotencyKey,
		MaxCost: p.Binding.MaxCost, Reservation: e.lines(), Acknowledged: e.Acknowledged, Contradicted: e.Contradicted,
		CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt, ExpiresAt: e.ExpiresAt(), Position: s.head.Last,
	}
	if e.Admission != nil {
		receipt := e.Admission.Receipt
		v.Receipt = &receipt
	}
	if e.Claim != nil {
		v.IdempotencyUntil = e.Claim.IdempotencyUntil
	}
	if e.Unknown != nil && e.State == wire.StateUnknown {
		v.Evidence = e.Unknown.Evidence
		v.Unknown = &wire.Unknown{Reason: e.Unknown.Reason, Since: e.Unknown.Since, Evidence: e.Unknown.Evidence}
		v.AuditIncomplete = e.Unknown.AuditIncomplete
	}
	for _, a := range e.Attempts {
		v.Attempts = append(v.Attempts, wire.Attempt{AttemptID: a.AttemptID, Method: a.Method, Result: a.Result, Deadline: a.Deadline})
	}
	if e.Refused != nil {
		v.Reason = e.Refused.Reason
	}
	if d := e.Settled; d != nil {
		evidence := d.Evidence
		v.Outcome, v.Means, v.Reason, v.Evidence, v.ProviderRef = d.Outcome, d.Means, d.Reason, &evidence, d.ProviderRef
		v.Cost, v.Overrun, v.CostInvalid, v.Late, v.AuditIncomplete = d.Cost, d.Overrun, d.CostInvalid, d.Late, d.AuditIncomplete
	}
	s.showLapse(e, v, at)
	if v.State == wire.StatePermitted {
		v.AdmitError = e.AdmitError
	}
	v.Permit = permitView(e, v)
	return v
}

// showLapse shows at once what the ledger will record by itself within seconds.
func (s *State) showLapse(e *Effect, v *wire.Effect, at events.Instant) {
	if !e.beforeAdmission() {
		return
	}
	if reason := s.lapsed(e, at); reason != "" {
		v.State, v.Reason = wire.StateRefused, reason
	}
}

func permitView(e *Effect, v *wire.Effect) *wire.Permit {
	p := &wire.Permit{State: wire.PermitPendingState}
	if e.Permit != nil {
		a := &e.Permit.Authorization
		p.ID, p.Kind, p.Approver, p.ExpiresAt = e.Permit.ID, a.Kind, a.Approver, e.Permit.ExpiresAt
		p.State = wire.PermitIssued
	}
	switch {
	case e.Admission != nil:
		p.State = wire.PermitConsumed
	case v.State == wire.StateRefused && v.Reason == events.ReasonExpired:
		p.State = wire.PermitExpired
	case v.State == wire.StateRefused && e.Permit != nil:
		p.State = wire.PermitRevoked
	case v.State == wire.StateRefused:
		p.State = wire.PermitRefused
	}
	return p
}

// CollectedView is what remains of an effect that left the live state.
func (s *State) CollectedView(c *Causal) *wire.Effect {
	return &wire.Effect{EffectID: c.EffectID, State: c.State, Outcome: c.Outcome, RunID: c.RunID, CausalID: c.CausalID,
		Tenant: c.Tenant, Principal: c.Principal, Position: s.head.Last}
}

// TaskView is the reply about a task.
func (s *State) TaskView(t *Task) *wire.Task {
	v := &wire.Task{TaskID: t.ID, Parent: t.Parent, Holders: t.Holders, ExpiresAt: t.ExpiresAt, Closed: t.Closed, Exposure: t.Exposure,
		Budgets: map[events.Unit]wire.Budget{}, Position: s.head.Last}
	chain := s.ancestry(t.Tenant, t.ID)
	for u, a := range t.Accounts {
		v.Budgets[u] = wire.Budget{Max: a.Max, Reserved: a.Reserved, Spent: a.Spent, Unknown: a.Unknown, Available: available(chain, u)}
	}
	return v
}

// RunView is the reply about a run as of ledger time at: it counts effects in the
// states that [State.View] shows.
func (s *State) RunView(r *Run, at events.Instant) *wire.Run {
	v := &wire.Run{RunID: r.ID, Principal: r.Principal, Outcome: r.Outcome, Cancelled: r.Cancelled, Effects: map[wire.State]int64{}, Position: s.head.Last}
	s.eachInRun(r.Tenant, r.ID, func(c *Causal) bool {
		state := c.State
		if e := s.Effect(c.EffectID); e != nil {
			state = e.State
			if e.beforeAdmission() && s.lapsed(e, at) != "" {
				state = wire.StateRefused
			}
		}
		v.Effects[state]++
		return true
	})
	return v
}

// MaySee reports whether a principal may read an effect: its producer; and,
// where policy lets them observe, the operators, auditors and approvers of the
// tenant. For anybody else it does not exist.
func (s *State) MaySee(c Caller, e *Effect) bool {
	user, known := s.User(c.Actor())
	if !known || e == nil || e.Tenant != c.Tenant {
		return false
	}
	switch user.Role {
	case events.RoleProducer:
		return e.Principal == c.Principal
	case events.RoleOperator, events.RoleAuditor, events.RoleApprover:
		op := s.contract(&e.Prepared.Binding)
		if op == nil {
			return true
		}
		allowed, _ := s.ask(policy.ActionObserve, user, op.Contract, s.policyContext(e, op.Contract))
		return allowed.Allow
	}
	return false
}

// MaySeeTask reports whether a principal may read a task: its holders, who opened
// it, and the operators and auditors of the tenant.
func (s *State) MaySeeTask(c Caller, t *Task) bool {
	user, known := s.User(c.Actor())
	if !known || t == nil || t.Tenant != c.Tenant {
		return false
	}
	return t.Holds(c.Actor()) || t.OpenedBy == c.Actor() || user.Role == events.RoleOperator || user.Role == events.RoleAuditor
}
