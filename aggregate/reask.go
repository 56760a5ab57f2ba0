package aggregate

import (
	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/events"
)

// What a reader needs to decide again what the log says was decided.

// ApplyEvent folds the i-th event of an entry; after the last one comes Seal.
func (s *State) ApplyEvent(e *events.Stored, i int) {
	s.evolve(&e.Events[i], events.Position{Seq: e.Seq, Index: i}, e.Time, e.Sizes[i])
}

// Reask puts a question about an effect to the logged policy again, for its
// producer, with exactly what the ledger asks.
func (s *State) Reask(action string, e *Effect) (policy.Decision, policy.Request) {
	user, known := s.User(e.Actor())
	op := s.contract(&e.Prepared.Binding)
	if !known || op == nil {
		return policy.Decision{}, policy.Request{}
	}
	return s.ask(action, user, op.Contract, s.policyContext(e, op.Contract))
}

// Lapsed says what had ended the authority of an effect at an instant, policy
// aside; empty if nothing had.
func (s *State) Lapsed(e *Effect, at events.Instant) events.Reason { return s.lapsed(e, at) }

// Ancestry is a task and its ancestors, the task first; nil if there is none.
func (s *State) Ancestry(tenant events.Tenant, id events.TaskID) []*Task {
	return s.ancestry(tenant, id)
}

// IdempotencyKey derives the key of an effect (SPEC 3).
func IdempotencyKey(l events.LedgerID, id events.EffectID, payload events.Digest) events.IdempotencyKey {
	return idempotencyKey(l, id, payload)
}

// StatementOf is the statement that an approver had to sign, but for IssuedAt.
func (s *State) StatementOf(e *Effect, decision string, approver events.Actor) policy.Statement {
	b := &e.Prepared.Binding
	return policy.Statement{V: events.Format, LedgerID: s.head.LedgerID, EffectID: e.ID, BindingDigest: e.Prepared.BindingDigest,
		Operation: b.Operation, Resource: b.Resource, MaxCost: b.MaxCost, ExpiresAt: b.ExpiresAt, Decision: decision, Approver: approver}
}
