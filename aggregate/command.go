package aggregate

import (
	"github.com/effectd/effectd/aggregate/operation"
	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// Command is one wish, decided on a state. Who asks is what the NATS server
// enforced, never what a body says.
//
//sumtype:decl
type Command interface {
	decide(*turn) *wire.Error
}

// Caller is the principal that asks.
type Caller struct {
	Tenant    events.Tenant
	Principal events.Principal
}

// Actor names the caller in events.
func (c Caller) Actor() events.Actor { return events.ActorOf(c.Tenant, c.Principal) }

// Commands of the ledger itself and its owner.
type (
	// OpenLedger creates the ledger, or records that a writer takes over.
	OpenLedger struct {
		LedgerID    events.LedgerID
		Writer      events.Incarnation // this life of the node's process
		Node        string
		Program     string
		Limits      events.Limits
		Fingerprint events.Digest
	}
	// RegisterOperation admits a contract version. Contract must be Text compiled.
	RegisterOperation struct{ Contract *operation.Contract }
	// RetireOperation ends a version for new effects.
	RetireOperation struct {
		Name    events.OperationName
		Version int64
	}
	// ChangePolicy replaces the owner's policy; the same text changes nothing.
	ChangePolicy struct{ Text string }
	// ChangeAccess replaces the principal table; an equal one changes nothing.
	ChangeAccess struct{ Users []events.User }
	// Sweep does what is due by ledger time: expiries, lost dispatchers,
	// interrupted attempts; and, with Recheck, ends what a change of law ended.
	// At most Limit effects are touched, and a bounded number looked at.
	Sweep struct {
		Limit   int
		Recheck bool
		// From is where a bounded recheck goes on; see [Decision.Next].
		From events.EffectID
	}
	// Collect removes terminal records whose horizon has passed from the live
	// state; at most Limit.
	Collect struct{ Limit int }
)

// Commands of principals.
type (
	// OpenTask opens a root or a child.
	OpenTask struct {
		Caller
		Request   wire.TaskOpenRequest
		ExpiresAt events.Instant
	}
	// CloseTask ends the authority of a task and its descendants.
	CloseTask struct {
		Caller
		TaskID events.TaskID
		Reason string
	}
	// Prepare binds one effect; with Admit it is admitted as soon as permitted.
	Prepare struct {
		Caller
		Request       wire.PrepareRequest // Payload and Precondition in canonical form
		RequestSHA256 events.Digest
		ExpiresAt     events.Instant // zero: not asked for
		Payload       operation.Payload
		Admit         bool
	}
	// Admit consumes the permit of a prepared effect.
	Admit struct {
		Caller
		Request wire.AdmitRequest
	}
	// Withdraw ends one's own effect before its claim.
	Withdraw struct {
		Caller
		EffectID events.EffectID
		Reason   string
	}
	// Approve and Deny carry a signed statement.
	Approve struct {
		Caller
		EffectID events.EffectID
		Signed   policy.Signed
	}
	// Deny ends an effect that waits for approval.
	Deny struct {
		Caller
		EffectID events.EffectID
		Signed   policy.Signed
	}
	// Revoke ends an effect of the tenant before its claim.
	Revoke struct {
		Caller
		EffectID events.EffectID
		Reason   string
	}
	// StartAttempt authorizes one bounded reconciliation attempt.
	StartAttempt struct {
		Caller
		EffectID   events.EffectID
		Method     events.Method // zero: query
		DeadlineMS int64         // zero: 30 s
		Dispatcher events.Dispatcher
		// CredentialSHA256 is the fingerprint of the credential a resubmission would use.
		CredentialSHA256 events.Digest
	}
	// SettleByOperator states the outcome of an unknown effect. Evidence.Named is
	// the operator's whole evidence document in canonical form: a signed statement
	// names its digest.
	SettleByOperator struct {
		Caller
		EffectID events.EffectID
		Outcome  events.Outcome
		Evidence events.Evidence
		Signed   *policy.Signed
	}
	// Acknowledge accepts the risk of an unknown effect; it proves nothing.
	Acknowledge struct {
		Caller
		EffectID events.EffectID
		Reason   string
	}
	// CancelRun ends admissions in a run.
	CancelRun struct {
		Caller
		RunID  events.RunID
		Reason string
	}
	// FinishRun records the one outcome of a run.
	FinishRun struct {
		Caller
		RunID   events.RunID
		Outcome events.RunOutcome
	}
)

// Commands of dispatchers and reconcilers.
type (
	// ClaimEffect asks for the one right to send.
	ClaimEffect struct {
		EffectID         events.EffectID
		IntentSHA256     events.Digest
		Dispatcher       events.Dispatcher
		NonceSHA256      events.Digest
		DeadlineMS       int64
		CredentialSHA256 events.Digest
	}
	// Abandon settles an admitted effect as no_effect: before any claim it was
	// found that it cannot be sent.
	Abandon struct {
		EffectID     events.EffectID
		IntentSHA256 events.Digest
		Detail       string
	}
	// Report says what the claimed send proved. Nonce is the claim's secret.
	Report struct {
		EffectID        events.EffectID
		IntentSHA256    events.Digest
		Nonce           string
		Result          Result
		AuditIncomplete bool
	}
	// EndAttempt says what an attempt proved.
	EndAttempt struct {
		EffectID  events.EffectID
		AttemptID events.AttemptID
		// NotFound: the service answered that it knows nothing of the effect. It
		// settles only under the conditions of SPEC 9.
		NotFound bool
		Result   Result
	}
)
