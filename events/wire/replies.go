package wire

import "github.com/effectd/effectd/events"

// State is where an effect stands (SPEC 5).
type State string

// The states.
const (
	StatePrepared   State = "prepared"
	StatePermitted  State = "permitted"
	StateRefused    State = "refused"
	StateAdmitted   State = "admitted"
	StateDispatched State = "dispatched"
	StateUnknown    State = "unknown"
	StateSettled    State = "settled"
)

// States lists every state, in the order of an effect's life.
func States() []State {
	return []State{StatePrepared, StatePermitted, StateRefused, StateAdmitted, StateDispatched, StateUnknown, StateSettled}
}

// Terminal reports whether nothing follows the state.
func (s State) Terminal() bool { return s == StateRefused || s == StateSettled }

// PermitState is where the one-use authority of an effect stands.
type PermitState string

// The permit states.
const (
	PermitPendingState PermitState = "pending"
	PermitIssued       PermitState = "issued"
	PermitConsumed     PermitState = "consumed"
	PermitRevoked      PermitState = "revoked"
	PermitExpired      PermitState = "expired"
	PermitRefused      PermitState = "refused"
)

// Effect is the reply about one effect.
type Effect struct {
	EffectID         events.EffectID          `json:"effect_id"`
	State            State                    `json:"state"`
	Operation        events.OperationName     `json:"operation,omitzero"`
	Version          int64                    `json:"version,omitzero"`
	Tenant           events.Tenant            `json:"tenant,omitzero"`
	Principal        events.Principal         `json:"principal,omitzero"`
	TaskID           events.TaskID            `json:"task_id,omitzero"`
	RunID            events.RunID             `json:"run_id,omitzero"`
	CausalID         events.CausalID          `json:"causal_id,omitzero"`
	Resource         string                   `json:"resource,omitzero"`
	BindingDigest    events.Digest            `json:"binding_digest,omitzero"`
	IntentSHA256     events.Digest            `json:"intent_sha256,omitzero"`
	IdempotencyKey   events.IdempotencyKey    `json:"idempotency_key,omitzero"`
	Permit           *Permit                  `json:"permit,omitzero"`
	MaxCost          events.Amounts           `json:"max_cost,omitempty"`
	Reservation      []events.ReservationLine `json:"reservation"`
	Receipt          *events.Receipt          `json:"receipt,omitzero"`
	Outcome          events.Outcome           `json:"outcome,omitzero"`
	Means            events.Means             `json:"means,omitzero"`
	Reason           events.Reason            `json:"reason,omitzero"`
	Evidence         *events.Evidence         `json:"evidence,omitzero"`
	ProviderRef      string                   `json:"provider_ref,omitzero"`
	Cost             events.Amounts           `json:"cost,omitempty"`
	Overrun          events.Amounts           `json:"overrun,omitempty"`
	CostInvalid      bool                     `json:"cost_invalid,omitzero"`
	Late             bool                     `json:"late,omitzero"`
	AuditIncomplete  bool                     `json:"audit_incomplete,omitzero"`
	Unknown          *Unknown                 `json:"unknown,omitzero"`
	Attempts         []Attempt                `json:"attempts"`
	Acknowledged     *Acknowledged            `json:"acknowledged,omitzero"`
	Contradicted     []events.Contradicted    `json:"contradicted,omitempty"`
	AdmitError       *AdmitError              `json:"admit_error,omitzero"`
	CreatedAt        events.Instant           `json:"created_at,omitzero"`
	UpdatedAt        events.Instant           `json:"updated_at,omitzero"`
	ExpiresAt        events.Instant           `json:"expires_at,omitzero"`
	IdempotencyUntil events.Instant           `json:"idempotency_until,omitzero"`
	Position         events.Position          `json:"position"`
	Repeat           bool                     `json:"repeat"`
}

// Permit is the state of the authority of an effect.
type Permit struct {
	State     PermitState     `json:"state"`
	ID        events.PermitID `json:"id,omitzero"`
	Kind      string          `json:"kind,omitzero"`
	Approver  events.Actor    `json:"approver,omitzero"`
	ExpiresAt events.Instant  `json:"expires_at,omitzero"`
}

// Unknown says why nothing is proven and since when.
type Unknown struct {
	Reason   events.Reason    `json:"reason"`
	Since    events.Instant   `json:"since"`
	Evidence *events.Evidence `json:"evidence,omitzero"`
}

// Attempt is one reconciliation attempt; no Result while it runs.
type Attempt struct {
	AttemptID events.AttemptID     `json:"attempt_id"`
	Method    events.Method        `json:"method"`
	Result    events.AttemptResult `json:"result,omitzero"`
	Deadline  events.Instant       `json:"deadline"`
}

// Acknowledged says who accepted the risk of an unknown outcome.
type Acknowledged struct {
	By     events.Actor   `json:"by"`
	Reason string         `json:"reason"`
	At     events.Instant `json:"at"`
}

// AdmitError says why a permitted effect was not admitted.
type AdmitError struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

// Budget is the account of one unit in one task. Reserved includes what unknown
// effects hold; Unknown is that part. Available is max − reserved − spent, or
// what the ancestors leave if that is less.
type Budget struct {
	Max       int64 `json:"max"`
	Reserved  int64 `json:"reserved"`
	Spent     int64 `json:"spent"`
	Unknown   int64 `json:"unknown"`
	Available int64 `json:"available"`
}

// Task is the reply about one task.
type Task struct {
	TaskID    events.TaskID          `json:"task_id"`
	Parent    events.TaskID          `json:"parent,omitzero"`
	Holders   []events.Actor         `json:"holders"`
	ExpiresAt events.Instant         `json:"expires_at"`
	Closed    *TaskClosure           `json:"closed,omitzero"`
	Budgets   map[events.Unit]Budget `json:"budgets"`
	Exposure  events.Amounts         `json:"exposure,omitempty"`
	Position  events.Position        `json:"position"`
	Repeat    bool                   `json:"repeat"`
}

// TaskClosure says when and why a task was closed.
type TaskClosure struct {
	At     events.Instant `json:"at"`
	By     events.Actor   `json:"by"`
	Reason string         `json:"reason,omitzero"`
}

// Run is the reply about one run.
type Run struct {
	RunID     events.RunID      `json:"run_id"`
	Principal events.Principal  `json:"principal"`
	Outcome   events.RunOutcome `json:"outcome,omitzero"`
	Cancelled bool              `json:"cancelled,omitzero"`
	Effects   map[State]int64   `json:"effects"`
	Position  events.Position   `json:"position"`
	Repeat    bool              `json:"repeat"`
}

// List is a page of items.
type List[T any] struct {
	Items    []T             `json:"items"`
	Cursor   string          `json:"cursor,omitzero"`
	Position events.Position `json:"position"`
}

// HistoryItem is one event of an effect, as the log holds it.
type HistoryItem struct {
	Position events.Position `json:"position"`
	Event    events.Raw      `json:"event"`
}

// History is the events of one effect, oldest first.
type History = List[HistoryItem]

// Operation is the reply about one registered contract version.
type Operation struct {
	Name        events.OperationName `json:"name"`
	Version     int64                `json:"version"`
	Digest      events.Digest        `json:"digest"`
	Description string               `json:"description,omitzero"`
	Adapter     string               `json:"adapter"`
	Retired     bool                 `json:"retired,omitzero"`
	Input       events.Raw           `json:"input,omitzero"`
	Units       []events.Unit        `json:"units"`
	Supports    map[string]bool      `json:"supports"` // query, resubmit_same_key, precondition, idempotency, preview
}

// Pending is one effect that waits for approval, with both statements ready to
// sign for the approver who asked.
type Pending struct {
	EffectID      events.EffectID              `json:"effect_id"`
	Operation     events.OperationName         `json:"operation"`
	Resource      string                       `json:"resource"`
	Exposed       events.Raw                   `json:"exposed"` // the payload fields that approvers see
	Reason        string                       `json:"reason"`  // why it waits
	Budget        map[events.Unit]BudgetChange `json:"budget"`
	ExpiresAt     events.Instant               `json:"expires_at"`
	Statement     string                       `json:"statement"`
	DenyStatement string                       `json:"deny_statement"`
}

// BudgetChange is what the effect's task and its ancestors leave before its
// admission, and after it; negative when it is not enough.
type BudgetChange struct {
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

// PendingList is the reply of permit.pending.
type PendingList struct {
	Pending  []Pending       `json:"pending"`
	Cursor   string          `json:"cursor,omitzero"`
	Position events.Position `json:"position"`
}

// Status is the reply of ledger.status.
type Status struct {
	LedgerID         events.LedgerID `json:"ledger_id"`
	Stream           string          `json:"stream"`
	StoreFingerprint events.Digest   `json:"store_fingerprint"`
	Position         events.Position `json:"position"`
	Seq              uint64          `json:"seq"`
	Trusted          bool            `json:"trusted"`
	Reason           string          `json:"reason,omitzero"` // why it is not trusted, and at which position
	ClockTrusted     bool            `json:"clock_trusted"`
	Dispatching      bool            `json:"dispatching"`
	Node             string          `json:"node"`
	Program          string          `json:"program"`
	PolicyRevision   int64           `json:"policy_revision"`
	Limits           events.Limits   `json:"limits"`
	Usage            Usage           `json:"usage"`
	Effects          map[State]int64 `json:"effects"`
	Intake           Intake          `json:"intake"`
	Time             events.Instant  `json:"time"`
}

// Usage is what counts against the limits.
type Usage struct {
	EffectRecords int64 `json:"effect_records"`
	LiveBytes     int64 `json:"live_bytes"`
	LogBytes      int64 `json:"log_bytes"`
}

// ClockReply says what ledger time is.
type ClockReply struct {
	Time         events.Instant `json:"time"`
	ClockTrusted bool           `json:"clock_trusted"`
}
