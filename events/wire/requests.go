package wire

import "github.com/effectd/effectd/events"

// Verb is the noun and verb of a command, the tail of its subject.
type Verb string

// The verbs (SPEC 6).
const (
	TaskOpen      Verb = "task.open"
	TaskCloseVerb Verb = "task.close"
	TaskGet       Verb = "task.get"
	EffectPrepare Verb = "effect.prepare"
	EffectAdmit   Verb = "effect.admit"
	EffectSubmit  Verb = "effect.submit"
	EffectGet     Verb = "effect.get"
	EffectList    Verb = "effect.list"
	// EffectHistory answers with the events of one effect.
	EffectHistory Verb = "effect.history"
	// LedgerConfirm lets an operator trust the wall clock as it stands.
	LedgerConfirm     Verb = "ledger.confirm-clock"
	EffectWithdraw    Verb = "effect.withdraw"
	PermitPending     Verb = "permit.pending"
	PermitApprove     Verb = "permit.approve"
	PermitDeny        Verb = "permit.deny"
	PermitRevoke      Verb = "permit.revoke"
	EffectReconcile   Verb = "effect.reconcile"
	EffectSettle      Verb = "effect.settle"
	EffectAcknowledge Verb = "effect.acknowledge"
	RunCancel         Verb = "run.cancel"
	RunFinish         Verb = "run.finish"
	RunGet            Verb = "run.get"
	OperationList     Verb = "operation.list"
	LedgerStatus      Verb = "ledger.status"
	// DenialsRead answers with the denials of the tenant, newest first.
	DenialsRead Verb = "denial.list"
	// TaskList answers with the tasks that the caller may read, in the order of their ids.
	TaskList Verb = "task.list"
)

// Verbs lists every verb.
func Verbs() []Verb {
	return []Verb{
		TaskOpen, TaskCloseVerb, TaskGet, EffectPrepare, EffectAdmit, EffectSubmit, EffectGet, EffectList, EffectWithdraw,
		PermitPending, PermitApprove, PermitDeny, PermitRevoke, EffectReconcile, EffectSettle, EffectAcknowledge,
		RunCancel, RunFinish, RunGet, OperationList, LedgerStatus, EffectHistory, LedgerConfirm, DenialsRead,
		TaskList,
	}
}

// Requests. A time is any RFC 3339 text; an absent member differs from a
// present one wherever a request is digested.
type (
	// TaskOpenRequest opens a root task (operator) or a child (producer).
	TaskOpenRequest struct {
		TaskID    events.TaskID  `json:"task_id"`
		Parent    events.TaskID  `json:"parent,omitzero"`
		Budgets   events.Amounts `json:"budgets"`
		Exposure  events.Amounts `json:"exposure,omitempty"`
		Holders   []events.Actor `json:"holders,omitempty"`
		ExpiresAt string         `json:"expires_at"`
	}
	// TaskCloseRequest closes a task and ends its descendants' authority.
	TaskCloseRequest struct {
		TaskID events.TaskID `json:"task_id"`
		Reason string        `json:"reason,omitzero"`
	}
	// TaskGetRequest reads a task.
	TaskGetRequest struct {
		TaskID      events.TaskID `json:"task_id"`
		MinPosition string        `json:"min_position,omitzero"`
	}
	// TaskListRequest reads tasks in the order of their ids: all, or one and what
	// is below it. A cursor is the last id of a page.
	TaskListRequest struct {
		Under       events.TaskID `json:"under,omitzero"`
		Limit       int64         `json:"limit,omitzero"`
		Cursor      events.TaskID `json:"cursor,omitzero"`
		MinPosition string        `json:"min_position,omitzero"`
	}
	// SealedContext are the context fields of a request; an admission must
	// repeat them exactly, absent ones absent.
	SealedContext struct {
		RunID       *events.RunID    `json:"run_id,omitzero"`
		CausalID    *events.CausalID `json:"causal_id,omitzero"`
		Service     *string          `json:"service,omitzero"`
		Session     *string          `json:"session,omitzero"`
		Process     *string          `json:"process,omitzero"`
		HostBinding *string          `json:"host_binding,omitzero"`
	}
	// PrepareRequest asks for the exact binding of one effect.
	PrepareRequest struct {
		TaskID       events.TaskID        `json:"task_id"`
		Operation    events.OperationName `json:"operation"`
		Version      int64                `json:"version,omitzero"`
		Payload      events.Raw           `json:"payload"`
		Precondition events.Raw           `json:"precondition,omitzero"`
		MaxCost      events.Amounts       `json:"max_cost,omitzero"` // {} differs from absent
		ExpiresAt    string               `json:"expires_at,omitzero"`
		SealedContext
	}
	// SubmitRequest prepares and admits. Wait is none, admitted (default) or terminal.
	SubmitRequest struct {
		PrepareRequest
		Wait      string `json:"wait,omitzero"`
		TimeoutMS int64  `json:"timeout_ms,omitzero"`
	}
	// AdmitRequest admits a prepared effect.
	AdmitRequest struct {
		EffectID      events.EffectID `json:"effect_id"`
		BindingDigest events.Digest   `json:"binding_digest"`
		SealedContext
	}
	// GetRequest reads an effect by its id, or by run and causal id.
	GetRequest struct {
		EffectID    events.EffectID `json:"effect_id,omitzero"`
		RunID       events.RunID    `json:"run_id,omitzero"`
		CausalID    events.CausalID `json:"causal_id,omitzero"`
		Wait        string          `json:"wait,omitzero"`
		TimeoutMS   int64           `json:"timeout_ms,omitzero"`
		MinPosition string          `json:"min_position,omitzero"`
	}
	// ListRequest reads effects, newest first.
	ListRequest struct {
		State       string               `json:"state,omitzero"`
		Operation   events.OperationName `json:"operation,omitzero"`
		TaskID      events.TaskID        `json:"task_id,omitzero"`
		Since       string               `json:"since,omitzero"`
		Until       string               `json:"until,omitzero"`
		Limit       int64                `json:"limit,omitzero"`
		Cursor      string               `json:"cursor,omitzero"`
		MinPosition string               `json:"min_position,omitzero"`
	}
	// HistoryRequest reads the events of an effect, oldest first.
	HistoryRequest struct {
		EffectID    events.EffectID `json:"effect_id"`
		Cursor      string          `json:"cursor,omitzero"`
		MinPosition string          `json:"min_position,omitzero"`
	}
	// EffectReasonRequest names an effect and why: withdraw, revoke, acknowledge.
	EffectReasonRequest struct {
		EffectID events.EffectID `json:"effect_id"`
		Reason   string          `json:"reason,omitzero"`
	}
	// PendingRequest reads what waits for approval, newest first; or one effect,
	// if it waits.
	PendingRequest struct {
		EffectID    events.EffectID `json:"effect_id,omitzero"`
		Limit       int64           `json:"limit,omitzero"`
		Cursor      string          `json:"cursor,omitzero"`
		MinPosition string          `json:"min_position,omitzero"`
	}
	// ApprovalRequest carries a signed statement: approve, deny.
	ApprovalRequest struct {
		EffectID  events.EffectID `json:"effect_id"`
		Statement string          `json:"statement"`
		Signature string          `json:"signature"`
		PublicKey string          `json:"public_key"`
	}
	// ReconcileRequest asks for one bounded attempt.
	ReconcileRequest struct {
		EffectID   events.EffectID `json:"effect_id"`
		Method     events.Method   `json:"method,omitzero"`
		DeadlineMS int64           `json:"deadline_ms,omitzero"`
	}
	// SettleRequest states an outcome with evidence.
	SettleRequest struct {
		EffectID  events.EffectID `json:"effect_id"`
		Outcome   events.Outcome  `json:"outcome"`
		Evidence  events.Raw      `json:"evidence"`
		Statement string          `json:"statement,omitzero"`
		Signature string          `json:"signature,omitzero"`
		PublicKey string          `json:"public_key,omitzero"`
	}
	// RunRequest names a run; Outcome with run.finish.
	RunRequest struct {
		RunID   events.RunID      `json:"run_id"`
		Outcome events.RunOutcome `json:"outcome,omitzero"`
		Reason  string            `json:"reason,omitzero"`
	}
	// DenialListRequest reads denials, newest first.
	DenialListRequest struct {
		Limit  int64  `json:"limit,omitzero"`
		Cursor string `json:"cursor,omitzero"`
	}
	// EmptyRequest has no members.
	EmptyRequest struct{}
)
