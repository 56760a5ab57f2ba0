package wire

// Code is a stable error code.
type Code string

// The error codes, with their HTTP-like numbers in [Code.Status].
const (
	InvalidRequest            Code = "invalid_request"
	InvalidPayload            Code = "invalid_payload"
	InputSchemaViolation      Code = "input_schema_violation"
	PreconditionUnsupported   Code = "precondition_unsupported"
	ApprovalInvalid           Code = "approval_invalid"
	PolicyDenied              Code = "policy_denied"
	EffectContextMismatch     Code = "effect_context_mismatch"
	Forbidden                 Code = "forbidden"
	SelfApproval              Code = "self_approval"
	UnknownEffect             Code = "unknown_effect"
	UnknownTask               Code = "unknown_task"
	UnknownOperation          Code = "unknown_operation"
	UnknownRun                Code = "unknown_run"
	BindingMismatch           Code = "binding_mismatch"
	PermitRequired            Code = "permit_required"
	TooLate                   Code = "too_late"
	IllegalTransition         Code = "illegal_transition"
	RunUnresolved             Code = "run_unresolved"
	RunFinished               Code = "run_finished"
	TaskExists                Code = "task_exists"
	AttemptInProgress         Code = "attempt_in_progress"
	Expired                   Code = "expired"
	TaskClosed                Code = "task_closed"
	Revoked                   Code = "revoked"
	RunCancelled              Code = "run_cancelled"
	OperationRetired          Code = "operation_retired"
	IdempotencyWindowExpired  Code = "idempotency_window_expired"
	RecordTooLarge            Code = "record_too_large"
	BudgetExceeded            Code = "budget_exceeded"
	ExposureExceeded          Code = "exposure_exceeded"
	CostUnbounded             Code = "cost_unbounded"
	ReconciliationUnsupported Code = "reconciliation_unsupported"
	CapacityExhausted         Code = "capacity_exhausted"
	QuotaExceeded             Code = "quota_exceeded"
	Unsupported               Code = "unsupported"
	CommitUnknown             Code = "commit_unknown"
	LedgerUnavailable         Code = "ledger_unavailable"
	LedgerUntrusted           Code = "ledger_untrusted"
	ClockUntrusted            Code = "clock_untrusted"
	NotDispatching            Code = "not_dispatching"
	WaitTimeout               Code = "wait_timeout"
)

// statuses holds the number of every code.
var statuses = map[Code]int{
	InvalidRequest: 400, InvalidPayload: 400, InputSchemaViolation: 400, PreconditionUnsupported: 400,
	ApprovalInvalid: 401,
	PolicyDenied:    403, EffectContextMismatch: 403, Forbidden: 403, SelfApproval: 403,
	UnknownEffect: 404, UnknownTask: 404, UnknownOperation: 404, UnknownRun: 404,
	BindingMismatch: 409, PermitRequired: 409, TooLate: 409, IllegalTransition: 409, RunUnresolved: 409, RunFinished: 409,
	TaskExists: 409, AttemptInProgress: 409,
	Expired: 410, TaskClosed: 410, Revoked: 410, RunCancelled: 410, OperationRetired: 410, IdempotencyWindowExpired: 410,
	RecordTooLarge: 413,
	BudgetExceeded: 422, ExposureExceeded: 422, CostUnbounded: 422, ReconciliationUnsupported: 422,
	CapacityExhausted: 429, QuotaExceeded: 429,
	Unsupported:   501,
	CommitUnknown: 503, LedgerUnavailable: 503, LedgerUntrusted: 503, ClockUntrusted: 503, NotDispatching: 503,
	WaitTimeout: 504,
}

// Status is the HTTP-like number of the code, 500 for one that is not in the contract.
func (c Code) Status() int {
	if n, ok := statuses[c]; ok {
		return n
	}
	return 500
}

// Codes returns every code of the contract with its number.
func Codes() map[Code]int {
	out := make(map[Code]int, len(statuses))
	for c, n := range statuses {
		out[c] = n
	}
	return out
}

// Error is a refusal. Its message names fields, never a secret or payload value.
type Error struct {
	Code    Code    `json:"code"`
	Message string  `json:"message"`
	Field   string  `json:"field,omitzero"`
	Effect  *Effect `json:"effect,omitzero"`
}

func (e *Error) Error() string {
	if e.Field != "" {
		return string(e.Code) + ": " + e.Field + ": " + e.Message
	}
	return string(e.Code) + ": " + e.Message
}

// Errorf is an error with a code and a message.
func Errorf(code Code, message string) *Error { return &Error{Code: code, Message: message} }

// FieldError is an error about one field of the request.
func FieldError(code Code, field, message string) *Error {
	return &Error{Code: code, Field: field, Message: message}
}

// What does not exist, and what exists and is not the caller's to see, have one
// answer each.

// NoSuchEffect answers for an effect.
func NoSuchEffect() *Error { return FieldError(UnknownEffect, "effect_id", "no such effect") }

// NoSuchTask answers for the task that a field names.
func NoSuchTask(field string) *Error { return FieldError(UnknownTask, field, "no such task") }

// NoSuchRun answers for a run.
func NoSuchRun() *Error { return FieldError(UnknownRun, "run_id", "no such run") }

// NotInTable answers a principal that the ledger does not know.
func NotInTable() *Error { return Errorf(Forbidden, "the principal is not in the ledger's table") }

// ErrorReply is the body of a refusal.
type ErrorReply struct {
	Error *Error `json:"error"`
}
