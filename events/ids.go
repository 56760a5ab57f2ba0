package events

// Named identifier types. All are opaque strings; knowing one grants nothing.
type (
	// LedgerID names one ledger (a ULID), pinned at creation.
	LedgerID string
	// EventID is the ULID of one event.
	EventID string
	// EffectID is the ULID of one intended external action, issued by the ledger.
	EffectID string
	// TaskID names a node of a task tree; chosen by who opens it.
	TaskID string
	// RunID groups the effects of one invocation; chosen by the producer.
	RunID string
	// CausalID names one step of a run; chosen by the producer.
	CausalID string
	// PermitID is the ULID of a one-use authority.
	PermitID string
	// ReservationID is the ULID of the budget held by one admission.
	ReservationID string
	// ReceiptID is "rc_" and the digest of the rest of the receipt.
	ReceiptID string
	// AttemptID is the ULID of one reconciliation attempt.
	AttemptID string
	// Tenant, Principal, OperationName and Unit are subject tokens (see [ValidToken]).
	Tenant string
	// Principal is the token of a user within a tenant.
	Principal string
	// OperationName is the token of a registered kind of effect.
	OperationName string
	// Unit is the token of something a budget counts, such as "usd_cents".
	Unit string
	// Digest is a SHA-256 in 64 lower-case hexadecimal characters.
	Digest string
	// IdempotencyKey is "ek_" and a digest derived from the effect.
	IdempotencyKey string
	// Incarnation is the ULID of one life of a node's process.
	Incarnation string
	// Actor is "<tenant>/<principal>": who caused an event.
	Actor string
)

// ZeroDigest is the prev of the first entry.
const ZeroDigest Digest = "0000000000000000000000000000000000000000000000000000000000000000"

// Reserved names of the ledger itself; refused for users.
const (
	SystemTenant    Tenant    = "_"
	SystemPrincipal Principal = "ledger"
	SystemActor     Actor     = "_/ledger"
)

// MaxID is the longest identifier that a request may carry, in bytes.
const MaxID = 256

// MaxAmount is the largest amount of a unit: the largest integer that every
// JSON reader represents exactly, 2^53−1.
const MaxAmount int64 = 1<<53 - 1

// Amounts maps a unit to an integer in [0, MaxAmount].
type Amounts map[Unit]int64

// ActorOf names a principal as the actor of events and the holder of tasks.
func ActorOf(t Tenant, p Principal) Actor { return Actor(string(t) + "/" + string(p)) }

// ValidToken reports whether s can stand as one subject token of the ledger:
// 1 to 64 characters of a-z 0-9 - _, and not the reserved "_".
func ValidToken(s string) bool {
	if len(s) == 0 || len(s) > 64 || s == string(SystemTenant) {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// ValidDigest reports whether s is a SHA-256 in lower-case hexadecimal.
func ValidDigest(s string) bool {
	if len(s) != len(ZeroDigest) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
