package events

// The events of one effect's life.

// Context is where a request came from: identity from the logged principal
// table, provenance from the request. Credentials never appear in it.
type Context struct {
	Auth        Auth      `json:"auth"`
	CausalID    CausalID  `json:"causal_id"`
	HostBinding string    `json:"host_binding,omitzero"`
	Principal   Principal `json:"principal"`
	Process     string    `json:"process,omitzero"`
	RunID       RunID     `json:"run_id"`
	Service     string    `json:"service,omitzero"`
	Session     string    `json:"session,omitzero"`
	Tenant      Tenant    `json:"tenant"`
	V           int       `json:"v"`
}

// Auth says how the principal was authenticated.
type Auth struct {
	Source   string `json:"source"`   // "nkey"
	Strength string `json:"strength"` // "signature"
}

// Adapter names the kind and build that will send.
type Adapter struct {
	Build string `json:"build"`
	Kind  string `json:"kind"`
}

// Binding is the immutable body of what was asked. Its digest excludes itself,
// transport request ids and secrets.
type Binding struct {
	Adapter          Adapter        `json:"adapter"`
	ContextSHA256    Digest         `json:"context_sha256"`
	EffectID         EffectID       `json:"effect_id"`
	ExpiresAt        Instant        `json:"expires_at"`
	IdempotencyKey   IdempotencyKey `json:"idempotency_key"`
	MaxCost          Amounts        `json:"max_cost"`
	Operation        OperationName  `json:"operation"`
	OperationDigest  Digest         `json:"operation_digest"`
	OperationVersion int64          `json:"operation_version"`
	PayloadSHA256    Digest         `json:"payload_sha256"`
	PolicyRevision   int64          `json:"policy_revision"`
	Precondition     Raw            `json:"precondition,omitzero"`
	Resource         string         `json:"resource"`
	TaskID           TaskID         `json:"task_id"`
	V                int            `json:"v"`
}

// OnPermit says what follows once the permit is issued.
type OnPermit string

// The choices of [OnPermit].
const (
	OnPermitHold  OnPermit = "hold"
	OnPermitAdmit OnPermit = "admit"
)

// Prepared: the exact binding exists; no authority yet.
type Prepared struct {
	Binding       Binding  `json:"binding"`
	BindingDigest Digest   `json:"binding_digest"`
	Context       Context  `json:"context"`
	OnPermit      OnPermit `json:"on_permit"`
	Payload       Raw      `json:"payload,omitzero"`
	PayloadRef    string   `json:"payload_ref,omitzero"`
	Preview       Raw      `json:"preview,omitzero"`
	RequestSHA256 Digest   `json:"request_sha256"`
}

// Authorization is the exact snapshot of what authorized a permit.
type Authorization struct {
	Approver        Actor    `json:"approver,omitzero"`
	CedarRequest    Raw      `json:"cedar_request"`
	Decision        string   `json:"decision"` // "allow"
	Determining     []string `json:"determining"`
	Kind            string   `json:"kind"` // "policy" or "approval"
	PolicyRevision  int64    `json:"policy_revision"`
	PolicySHA256    Digest   `json:"policy_sha256"`
	StatementSHA256 Digest   `json:"statement_sha256,omitzero"`
	V               int      `json:"v"`
}

// The kinds of authorization.
const (
	AuthorizationPolicy   = "policy"
	AuthorizationApproval = "approval"
)

// Permit is one-use authority for exactly one effect and binding.
type Permit struct {
	Authorization Authorization `json:"authorization"`
	BindingDigest Digest        `json:"binding_digest"`
	EffectID      EffectID      `json:"effect_id"`
	ExpiresAt     Instant       `json:"expires_at"`
	ID            PermitID      `json:"id"`
	MaxCost       Amounts       `json:"max_cost"`
	PublicKey     string        `json:"public_key,omitzero"`
	Signature     string        `json:"signature,omitzero"` // base64
	Statement     string        `json:"statement,omitzero"` // the canonical text that was signed
	V             int           `json:"v"`
}

// Permitted: the one-use permit was issued.
type Permitted struct {
	Permit Permit `json:"permit"`
}

// Reason says why an effect ended or is not proven.
type Reason string

// Reasons of refused, and of settled(no_effect) decided at the claim.
const (
	ReasonPolicyDenied     Reason = "policy_denied"
	ReasonApprovalDenied   Reason = "approval_denied"
	ReasonExpired          Reason = "expired"
	ReasonWithdrawn        Reason = "withdrawn"
	ReasonRevoked          Reason = "revoked"
	ReasonTaskClosed       Reason = "task_closed"
	ReasonRunCancelled     Reason = "run_cancelled"
	ReasonOperationRetired Reason = "operation_retired"
	ReasonContextMismatch  Reason = "effect_context_mismatch"
)

// Reasons of settled.
const (
	ReasonClassified          Reason = "classified"           // a rule of the contract matched the answer
	ReasonNotSent             Reason = "not_sent"             // proven: no byte of the request left
	ReasonReconciled          Reason = "reconciled"           // a conclusive attempt
	ReasonOperatorEstablished Reason = "operator_established" // stated by an operator with evidence
	ReasonUnsendable          Reason = "unsendable"           // before the claim: secret missing, request not buildable
)

// Reasons of unknown.
const (
	ReasonResponseLost   Reason = "response_lost"
	ReasonTimeout        Reason = "timeout"
	ReasonAdapterError   Reason = "adapter_error"
	ReasonDispatcherLost Reason = "dispatcher_lost"
	ReasonUnclassified   Reason = "unclassified_response"
	ReasonShutdown       Reason = "shutdown"
)

// Refused: ended before admission; the permit, if any, is revoked.
type Refused struct {
	By     Actor  `json:"by,omitzero"` // who denied, revoked or withdrew
	Detail string `json:"detail,omitzero"`
	// PublicKey, Signature and Statement prove a signed denial.
	PublicKey string `json:"public_key,omitzero"`
	Reason    Reason `json:"reason"`
	Signature string `json:"signature,omitzero"`
	Statement string `json:"statement,omitzero"`
}

// ReservationLine is what one task holds of one unit for one admission.
type ReservationLine struct {
	Amount int64  `json:"amount"`
	TaskID TaskID `json:"task_id"`
	Unit   Unit   `json:"unit"`
}

// Reservation is the budget held by one admission in the task and every
// ancestor; lines are sorted by task id, then unit.
type Reservation struct {
	Lines         []ReservationLine `json:"lines"`
	ReservationID ReservationID     `json:"reservation_id"`
}

// Intent is fixed at admission; its digest stands in every later event.
type Intent struct {
	AuthorizationSHA256 Digest         `json:"authorization_sha256"`
	BindingDigest       Digest         `json:"binding_digest"`
	ContextSHA256       Digest         `json:"context_sha256"`
	IdempotencyKey      IdempotencyKey `json:"idempotency_key"`
	PermitSHA256        Digest         `json:"permit_sha256"`
	Reservation         Reservation    `json:"reservation"`
	V                   int            `json:"v"`
}

// Admitted consumes the permit, declares the intent to dispatch and reserves
// budget, in one record.
type Admitted struct {
	Intent        Intent            `json:"intent"`
	PermitID      PermitID          `json:"permit_id"`
	Reservation   []ReservationLine `json:"reservation"`
	ReservationID ReservationID     `json:"reservation_id"`
}

// Receipt proves an admission. Its id is "rc_" and the digest of the rest.
type Receipt struct {
	CausalID         CausalID  `json:"causal_id"`
	CommittedAt      Instant   `json:"committed_at"`
	DurablePosition  Position  `json:"durable_position"`
	EffectID         EffectID  `json:"effect_id"`
	IntentSHA256     Digest    `json:"intent_sha256"`
	ReceiptID        ReceiptID `json:"receipt_id,omitzero"`
	RunID            RunID     `json:"run_id"`
	StoreFingerprint Digest    `json:"store_fingerprint"`
	Stream           string    `json:"stream"`
	V                int       `json:"v"`
}

// Dispatcher names who claimed: a node and one life of its process.
type Dispatcher struct {
	Incarnation Incarnation `json:"incarnation"`
	Node        string      `json:"node"`
}

// Dispatched is the claim, appended before the send.
type Dispatched struct {
	CredentialSHA256 Digest     `json:"credential_sha256,omitzero"`
	DeadlineMS       int64      `json:"deadline_ms"`
	Dispatcher       Dispatcher `json:"dispatcher"`
	IdempotencyUntil Instant    `json:"idempotency_until,omitzero"`
	NonceSHA256      Digest     `json:"nonce_sha256"`
	Receipt          Receipt    `json:"receipt"`
}

// Outcome is what is proven about an effect. The zero Outcome proves nothing.
type Outcome string

// The outcomes.
const (
	OutcomeUnknown   Outcome = ""
	OutcomeSucceeded Outcome = "succeeded"
	OutcomeFailed    Outcome = "failed"
	OutcomePartial   Outcome = "partial"
	OutcomeNoEffect  Outcome = "no_effect"
)

// Means says how far a succeeded outcome reaches.
type Means string

// The reaches of an outcome.
const (
	MeansAccepted  Means = "accepted"  // the service took the job
	MeansCompleted Means = "completed" // it is done
)

// Evidence is what somebody actually proved, with its source. At most 8 KiB
// encoded; secrets are scrubbed before it is built.
type Evidence struct {
	At        Instant `json:"at,omitzero"`
	Detail    string  `json:"detail,omitzero"`    // what happened, in words
	Named     Raw     `json:"named,omitzero"`     // the values the matched rule names
	Reference string  `json:"reference,omitzero"` // operator: document, ticket, statement
	Rule      string  `json:"rule,omitzero"`      // the contract's rule that matched, such as "outcomes[0]"
	SHA256    Digest  `json:"sha256,omitzero"`    // of the response body
	Source    string  `json:"source"`             // "adapter", "query", "resubmission", "operator", "ledger"
	Status    int64   `json:"status,omitzero"`    // the service's status: HTTP code, exit code
	Who       Actor   `json:"who,omitzero"`
}

// Settled: the outcome is proven.
type Settled struct {
	AttemptID AttemptID `json:"attempt_id,omitzero"`
	// AuditIncomplete: the result waited in the spool while the ledger was away.
	AuditIncomplete bool     `json:"audit_incomplete,omitzero"`
	Cost            Amounts  `json:"cost"` // what was charged, per unit; {} with no_effect
	CostInvalid     bool     `json:"cost_invalid,omitzero"`
	Evidence        Evidence `json:"evidence"`
	Late            bool     `json:"late,omitzero"`
	Means           Means    `json:"means,omitzero"`
	Outcome         Outcome  `json:"outcome"`
	Overrun         Amounts  `json:"overrun,omitempty"` // the part of cost above the reservation
	ProviderRef     string   `json:"provider_ref,omitzero"`
	PublicKey       string   `json:"public_key,omitzero"`
	Reason          Reason   `json:"reason"`
	Signature       string   `json:"signature,omitzero"`
	Statement       string   `json:"statement,omitzero"`
}

// Unknown: dispatch possibly happened and nothing proves the outcome.
type Unknown struct {
	AuditIncomplete bool      `json:"audit_incomplete,omitzero"`
	Evidence        *Evidence `json:"evidence,omitzero"`
	Reason          Reason    `json:"reason"`
	// SendEnded: the claiming incarnation recorded the end of its send, or has
	// provably ended; nothing of this claim can reach the service any more.
	SendEnded bool `json:"send_ended,omitzero"`
}

// Method is how an attempt asks.
type Method string

// The methods of reconciliation.
const (
	MethodQuery           Method = "query"
	MethodResubmitSameKey Method = "resubmit_same_key"
)

// ReconcileStarted: one bounded attempt began.
type ReconcileStarted struct {
	AttemptID    AttemptID  `json:"attempt_id"`
	AuthorizedBy Actor      `json:"authorized_by"`
	Deadline     Instant    `json:"deadline"`
	Dispatcher   Dispatcher `json:"dispatcher"`
	Method       Method     `json:"method"`
}

// AttemptResult is how an attempt ended.
type AttemptResult string

// The results of an attempt.
const (
	AttemptConclusive   AttemptResult = "conclusive"
	AttemptInconclusive AttemptResult = "inconclusive"
	AttemptSuperseded   AttemptResult = "superseded"
)

// ReconcileEnded: the attempt ended.
type ReconcileEnded struct {
	AttemptID AttemptID     `json:"attempt_id"`
	Evidence  *Evidence     `json:"evidence,omitzero"`
	Result    AttemptResult `json:"result"`
}

// Acknowledged: an operator accepted the risk; state and reservation stay.
type Acknowledged struct {
	By     Actor  `json:"by"`
	Reason string `json:"reason"`
}

// Contradicted: evidence after settled that does not agree; the state stays.
type Contradicted struct {
	Cost     Amounts  `json:"cost,omitempty"` // extra, charged as overrun
	Evidence Evidence `json:"evidence"`
	Outcome  Outcome  `json:"outcome"`
}

func (Prepared) Type() Type         { return TypePrepared }
func (Permitted) Type() Type        { return TypePermitted }
func (Refused) Type() Type          { return TypeRefused }
func (Admitted) Type() Type         { return TypeAdmitted }
func (Dispatched) Type() Type       { return TypeDispatched }
func (Settled) Type() Type          { return TypeSettled }
func (Unknown) Type() Type          { return TypeUnknown }
func (ReconcileStarted) Type() Type { return TypeReconcileStarted }
func (ReconcileEnded) Type() Type   { return TypeReconcileEnded }
func (Acknowledged) Type() Type     { return TypeAcknowledged }
func (Contradicted) Type() Type     { return TypeContradicted }

func (Prepared) isData()         {}
func (Permitted) isData()        {}
func (Refused) isData()          {}
func (Admitted) isData()         {}
func (Dispatched) isData()       {}
func (Settled) isData()          {}
func (Unknown) isData()          {}
func (ReconcileStarted) isData() {}
func (ReconcileEnded) isData()   {}
func (Acknowledged) isData()     {}
func (Contradicted) isData()     {}
