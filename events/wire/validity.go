package wire

import (
	"strconv"

	"github.com/effectd/effectd/events"
)

// What a well-formed request is, whatever the ledger knows. A value that is
// well-formed and merely wrong has its own code, given by the ledger: an id
// that names nothing is unknown_…, a digest that differs is binding_mismatch.

// The words of the member "wait".
const (
	WaitNone     = "none"
	WaitAdmitted = "admitted"
	WaitTerminal = "terminal"
)

func checkWait(wait string, timeoutMS int64) *Error {
	if wait != "" {
		if refusal := CheckOneOf("wait", wait, WaitNone, WaitAdmitted, WaitTerminal); refusal != nil {
			return refusal
		}
	}
	return CheckMS("timeout_ms", timeoutMS)
}

func (r *TaskOpenRequest) check() *Error {
	for i, h := range r.Holders {
		if refusal := CheckActor("holders."+strconv.Itoa(i), h); refusal != nil {
			return refusal
		}
	}
	return firstOf(CheckID("task_id", r.TaskID), CheckOptionalID("parent", r.Parent), CheckAmounts("budgets", r.Budgets),
		CheckAmounts("exposure", r.Exposure), CheckTime("expires_at", r.ExpiresAt))
}

func (r *TaskCloseRequest) check() *Error { return CheckID("task_id", r.TaskID) }

func (r *TaskGetRequest) check() *Error {
	return firstOf(CheckID("task_id", r.TaskID), CheckPosition("min_position", r.MinPosition))
}

func (r *TaskListRequest) check() *Error {
	return firstOf(CheckOptionalID("under", r.Under), CheckOptionalID("cursor", r.Cursor), CheckAmount("limit", r.Limit),
		CheckPosition("min_position", r.MinPosition))
}

// check wants what a context can be sealed with: an empty field would be
// sealed like an absent one.
func (c *SealedContext) check() *Error {
	if c.RunID == nil {
		return FieldError(InvalidRequest, "run_id", "it is required")
	}
	if c.CausalID == nil {
		return FieldError(InvalidRequest, "causal_id", "it is required")
	}
	return firstOf(CheckID("run_id", *c.RunID), CheckID("causal_id", *c.CausalID), checkSealed("service", c.Service),
		checkSealed("session", c.Session), checkSealed("process", c.Process), checkSealed("host_binding", c.HostBinding))
}

func checkSealed(field string, text *string) *Error {
	if text == nil {
		return nil
	}
	if *text == "" {
		return FieldError(InvalidRequest, field, "it is sent but empty")
	}
	return CheckOptionalID(field, *text)
}

func (r *PrepareRequest) check() *Error {
	if string(r.Precondition) == "null" {
		r.Precondition = nil
	}
	if r.Payload == nil {
		return FieldError(InvalidRequest, "payload", "it is required")
	}
	if r.Version < 0 {
		return FieldError(InvalidRequest, "version", "want an integer from 1")
	}
	return firstOf(CheckID("task_id", r.TaskID), CheckToken("operation", r.Operation), CheckAmounts("max_cost", r.MaxCost),
		CheckOptionalTime("expires_at", r.ExpiresAt), r.SealedContext.check())
}

func (r *SubmitRequest) check() *Error {
	return firstOf(r.PrepareRequest.check(), checkWait(r.Wait, r.TimeoutMS))
}

// check leaves the context to the ledger, which compares it with the sealed one.
func (r *AdmitRequest) check() *Error {
	return firstOf(CheckID("effect_id", r.EffectID), CheckID("binding_digest", r.BindingDigest))
}

func (r *GetRequest) check() *Error {
	named := firstOf(CheckOptionalID("effect_id", r.EffectID), CheckOptionalID("run_id", r.RunID), CheckOptionalID("causal_id", r.CausalID))
	switch {
	case named != nil:
		return named
	case r.EffectID == "" && (r.RunID == "" || r.CausalID == ""):
		return FieldError(InvalidRequest, "effect_id", "effect_id, or run_id and causal_id, are required")
	case r.EffectID != "" && (r.RunID != "" || r.CausalID != ""):
		return FieldError(InvalidRequest, "effect_id", "give either effect_id, or run_id and causal_id")
	}
	return firstOf(checkWait(r.Wait, r.TimeoutMS), CheckPosition("min_position", r.MinPosition))
}

func (r *ListRequest) check() *Error {
	if r.State != "" {
		if refusal := CheckOneOf("state", State(r.State), States()...); refusal != nil {
			return refusal
		}
	}
	return firstOf(CheckOptionalToken("operation", r.Operation), CheckOptionalID("task_id", r.TaskID), CheckOptionalTime("since", r.Since),
		CheckOptionalTime("until", r.Until), CheckAmount("limit", r.Limit), CheckPosition("min_position", r.MinPosition))
}

func (r *HistoryRequest) check() *Error {
	return firstOf(CheckID("effect_id", r.EffectID), CheckPosition("min_position", r.MinPosition))
}

func (r *EffectReasonRequest) check() *Error { return CheckID("effect_id", r.EffectID) }

func (r *PendingRequest) check() *Error {
	return firstOf(CheckOptionalID("effect_id", r.EffectID), CheckAmount("limit", r.Limit), CheckPosition("min_position", r.MinPosition))
}

// check leaves statement, signature and key to the ledger: approval_invalid.
func (r *ApprovalRequest) check() *Error { return CheckID("effect_id", r.EffectID) }

func (r *ReconcileRequest) check() *Error {
	if r.Method != "" {
		if refusal := CheckOneOf("method", r.Method, events.MethodQuery, events.MethodResubmitSameKey); refusal != nil {
			return refusal
		}
	}
	return firstOf(CheckID("effect_id", r.EffectID), CheckMS("deadline_ms", r.DeadlineMS))
}

func (r *SettleRequest) check() *Error {
	if len(r.Evidence) == 0 || r.Evidence[0] != '{' {
		return FieldError(InvalidRequest, "evidence", "want an object")
	}
	return firstOf(CheckID("effect_id", r.EffectID), CheckOneOf("outcome", r.Outcome,
		events.OutcomeSucceeded, events.OutcomeFailed, events.OutcomePartial, events.OutcomeNoEffect))
}

func (r *RunRequest) check() *Error {
	if r.Outcome != "" {
		if refusal := CheckOneOf("outcome", r.Outcome, events.RunSucceeded, events.RunRejected, events.RunApplicationFailed,
			events.RunExecutionFailed, events.RunOutcomeCancelled); refusal != nil {
			return refusal
		}
	}
	return CheckID("run_id", r.RunID)
}

func (r *DenialListRequest) check() *Error {
	if _, err := strconv.ParseUint(r.Cursor, 10, 63); r.Cursor != "" && err != nil {
		return FieldError(InvalidRequest, "cursor", "it is none of ours")
	}
	return CheckAmount("limit", r.Limit)
}
