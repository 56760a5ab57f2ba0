package events

// Format is the version of every body written today. A reader refuses others.
const Format = 1

// Type is the name of an event, in the past tense.
type Type string

// The closed set of event types (SPEC 4).
const (
	TypeLedgerOpened        Type = "ledger-opened"
	TypeLedgerRecovered     Type = "ledger-recovered"
	TypeOperationRegistered Type = "operation-registered"
	TypeOperationRetired    Type = "operation-retired"
	TypePolicyChanged       Type = "policy-changed"
	TypeAccessChanged       Type = "access-changed"
	TypeTaskOpened          Type = "task-opened"
	TypeTaskClosed          Type = "task-closed"
	TypePrepared            Type = "prepared"
	TypePermitted           Type = "permitted"
	TypeRefused             Type = "refused"
	TypeAdmitted            Type = "admitted"
	TypeDispatched          Type = "dispatched"
	TypeSettled             Type = "settled"
	TypeUnknown             Type = "unknown"
	TypeReconcileStarted    Type = "reconcile-started"
	TypeReconcileEnded      Type = "reconcile-ended"
	TypeAcknowledged        Type = "acknowledged"
	TypeContradicted        Type = "contradicted"
	TypeRunCancelled        Type = "run-cancelled"
	TypeRunFinished         Type = "run-finished"
	TypeCollected           Type = "collected"
)

// Data is what an event of one type says beside the common fields.
//
//sumtype:decl
type Data interface {
	// Type names the event that carries the data.
	Type() Type
	isData()
}

// Event is one fact of the log. Members that do not apply are absent.
type Event struct {
	Actor        Actor         `json:"actor"`
	CausalID     CausalID      `json:"causal_id,omitzero"`
	Data         Data          `json:"data"`
	EffectID     EffectID      `json:"effect_id,omitzero"`
	ID           EventID       `json:"id"`
	IntentSHA256 Digest        `json:"intent_sha256,omitzero"`
	Operation    OperationName `json:"operation,omitzero"`
	RunID        RunID         `json:"run_id,omitzero"`
	TaskID       TaskID        `json:"task_id,omitzero"`
	Tenant       Tenant        `json:"tenant"`
	Time         Instant       `json:"time"`
	Type         Type          `json:"type"`
	V            int           `json:"v"`
}

// Entry is one message of the log: the events decided together, appended
// atomically at sequence Seq.
type Entry struct {
	Events   []Event     `json:"events"`
	LedgerID LedgerID    `json:"ledger_id"`
	Prev     Digest      `json:"prev"`
	Seq      uint64      `json:"seq"`
	Time     Instant     `json:"time"`
	V        int         `json:"v"`
	Writer   Incarnation `json:"writer"`
}
