package events

import "github.com/go-json-experiment/json/jsontext"

// The events that create the ledger and change its law.

// LedgerOpened: the ledger was created, or a writer took over.
type LedgerOpened struct {
	LedgerID         LedgerID    `json:"ledger_id"`
	Limits           Limits      `json:"limits"`
	Node             string      `json:"node"`
	Program          string      `json:"program"`
	StoreFingerprint Digest      `json:"store_fingerprint"`
	Writer           Incarnation `json:"writer"`
}

// Limits are the finite bounds of a ledger (SPEC 14). The zero value of a field
// is replaced by the profile's default before it is logged.
type Limits struct {
	EffectRecords        int64  `json:"effect_records"`         // retained effect records
	LiveBytes            int64  `json:"live_bytes"`             // encoded records in the state, bytes
	LogBytes             int64  `json:"log_bytes"`              // the whole log, bytes
	PermitTTLMS          int64  `json:"permit_ttl_ms"`          // from issue to expiry
	PreparedPerPrincipal int64  `json:"prepared_per_principal"` // live prepared effects of one principal
	Profile              string `json:"profile"`
	RecordBytes          int64  `json:"record_bytes"`       // one encoded event with its envelope, bytes
	RequestsInFlight     int64  `json:"requests_in_flight"` // of one principal
}

// LedgerRecovered: an operator restored a damaged store.
type LedgerRecovered struct {
	From           string   `json:"from"`
	LastGood       Position `json:"last_good"`
	NewFingerprint Digest   `json:"new_fingerprint"`
	OldFingerprint Digest   `json:"old_fingerprint"`
}

// OperationRegistered: the owner admitted a contract. The envelope's operation
// is its name.
type OperationRegistered struct {
	Contract string `json:"contract"` // the YAML text, as loaded
	Digest   Digest `json:"digest"`
	Version  int64  `json:"version"`
}

// OperationRetired: a version takes no new effects.
type OperationRetired struct {
	Version int64 `json:"version"`
}

// PolicyChanged: the owner's Cedar policy, whole.
type PolicyChanged struct {
	Policy       string `json:"policy"`
	PolicySHA256 Digest `json:"policy_sha256"`
	Revision     int64  `json:"revision"` // from 1
}

// Role is what a principal may do (SPEC 6, 12).
type Role string

// The roles.
const (
	RoleProducer Role = "producer"
	RoleApprover Role = "approver"
	RoleOperator Role = "operator"
	RoleAuditor  Role = "auditor"
	RoleExecutor Role = "executor"
)

// User is one row of the principal table.
type User struct {
	Operations []string  `json:"operations,omitempty"` // executor: the operations it serves
	Principal  Principal `json:"principal"`
	PublicKey  string    `json:"public_key"` // nkey, "U…"
	Role       Role      `json:"role"`
	Tenant     Tenant    `json:"tenant"`
}

// AccessChanged: the new principal table, sorted by tenant and principal.
type AccessChanged struct {
	Revision int64  `json:"revision"` // from 1
	Users    []User `json:"users"`
}

// TaskOpened: a node of a task tree. The envelope's task_id is its id.
type TaskOpened struct {
	Budgets   Amounts `json:"budgets"`
	ExpiresAt Instant `json:"expires_at"`
	Exposure  Amounts `json:"exposure,omitempty"`
	Holders   []Actor `json:"holders"`
	Parent    TaskID  `json:"parent,omitzero"`
}

// TaskClosed ends the authority of the task and its descendants.
type TaskClosed struct {
	Reason string `json:"reason,omitzero"`
}

// RunCancelled: no further admission in the run.
type RunCancelled struct {
	Principal Principal `json:"principal"`
	Reason    string    `json:"reason,omitzero"`
}

// RunOutcome is the one immutable result of a run.
type RunOutcome string

// The run outcomes (SPEC 15).
const (
	RunSucceeded         RunOutcome = "succeeded"
	RunRejected          RunOutcome = "rejected"
	RunApplicationFailed RunOutcome = "application_failed"
	RunExecutionFailed   RunOutcome = "execution_failed"
	RunOutcomeCancelled  RunOutcome = "cancelled"
)

// RunFinished: the outcome of a run, once.
type RunFinished struct {
	Outcome   RunOutcome `json:"outcome"`
	Principal Principal  `json:"principal"`
}

// Collected: old terminal records left the live state.
type Collected struct {
	Effects []EffectID `json:"effects"`
	Horizon Instant    `json:"horizon"`
}

// Raw is JSON kept as it was digested: always in canonical form.
type Raw = jsontext.Value

func (LedgerOpened) Type() Type        { return TypeLedgerOpened }
func (LedgerRecovered) Type() Type     { return TypeLedgerRecovered }
func (OperationRegistered) Type() Type { return TypeOperationRegistered }
func (OperationRetired) Type() Type    { return TypeOperationRetired }
func (PolicyChanged) Type() Type       { return TypePolicyChanged }
func (AccessChanged) Type() Type       { return TypeAccessChanged }
func (TaskOpened) Type() Type          { return TypeTaskOpened }
func (TaskClosed) Type() Type          { return TypeTaskClosed }
func (RunCancelled) Type() Type        { return TypeRunCancelled }
func (RunFinished) Type() Type         { return TypeRunFinished }
func (Collected) Type() Type           { return TypeCollected }

func (LedgerOpened) isData()        {}
func (LedgerRecovered) isData()     {}
func (OperationRegistered) isData() {}
func (OperationRetired) isData()    {}
func (PolicyChanged) isData()       {}
func (AccessChanged) isData()       {}
func (TaskOpened) isData()          {}
func (TaskClosed) isData()          {}
func (RunCancelled) isData()        {}
func (RunFinished) isData()         {}
func (Collected) isData()           {}
