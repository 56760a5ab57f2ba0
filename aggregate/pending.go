package aggregate

import (
	"slices"
	"strings"

	"github.com/effectd/effectd/aggregate/operation"
	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// Pending is what an approver is shown of an effect as of ledger time at, with
// both statements ready to sign; nil unless it waits for an approval that this
// approver may give.
func (s *State) Pending(c Caller, e *Effect, at events.Instant) *wire.Pending {
	if e == nil || e.State != wire.StatePrepared || e.Tenant != c.Tenant || e.Principal == c.Principal || s.ended(e, at) != "" {
		return nil
	}
	producer, _ := s.User(e.Actor())
	contract := s.contract(&e.Prepared.Binding).Contract
	seen := s.policyContext(e, contract)
	return &wire.Pending{EffectID: e.ID, Operation: e.Operation(), Resource: e.Prepared.Binding.Resource, Exposed: exposed(seen),
		Reason: s.whyApproval(producer, contract, seen), Budget: s.budgetChange(e), ExpiresAt: e.ExpiresAt(),
		Statement:     s.statementAbout(e, policy.DecisionApprove, c.Actor(), at).Text(),
		DenyStatement: s.statementAbout(e, policy.DecisionDeny, c.Actor(), at).Text()}
}

func exposed(seen policy.Context) events.Raw {
	if seen.Payload == nil {
		return events.Raw("{}")
	}
	return events.CanonicalOf(seen.Payload)
}

// whyApproval is why an effect waits, in the words of the policies that forbid
// its commit or let it ask; without such words it names them.
func (s *State) whyApproval(producer events.User, contract *operation.Contract, seen policy.Context) string {
	commit, _ := s.ask(policy.ActionCommit, producer, contract, seen)
	if commit.Allow {
		return "by now the policy allows it without an approval"
	}
	asks, _ := s.ask(policy.ActionRequestApproval, producer, contract, seen)
	if reason := s.law.policy.Reason(slices.Concat(commit.Determining, asks.Determining)); reason != "" {
		return reason
	}
	if len(commit.Determining) > 0 {
		return "forbidden without an approval by " + strings.Join(commit.Determining, ", ")
	}
	return "allowed with an approval by " + strings.Join(asks.Determining, ", ")
}

// budgetChange is what the admission of an effect does to what its task has left.
func (s *State) budgetChange(e *Effect) map[events.Unit]wire.BudgetChange {
	chain, out := s.ancestry(e.Tenant, e.TaskID()), map[events.Unit]wire.BudgetChange{}
	for u, amount := range needs(e) {
		before := available(chain, u)
		out[u] = wire.BudgetChange{Before: before, After: before - amount}
	}
	return out
}
