package aggregate

import (
	"encoding/binary"
	"time"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// Effect is the live record of one effect.
type Effect struct {
	ID        events.EffectID  `json:"id"`
	Tenant    events.Tenant    `json:"tenant"`
	Principal events.Principal `json:"principal"`
	State     wire.State       `json:"state"`
	Prepared  *events.Prepared `json:"prepared"` // never changed once it is set

	Permit       *events.Permit   `json:"permit,omitzero"`
	PermitSHA256 events.Digest    `json:"permit_sha256,omitzero"`
	AdmitError   *wire.AdmitError `json:"admit_error,omitzero"` // why its approval did not admit it
	Admission    *Admission       `json:"admission,omitzero"`
	Claim        *Claim           `json:"claim,omitzero"`
	Unknown      *Unknown         `json:"unknown,omitzero"`
	Attempts     []Attempt        `json:"attempts,omitempty"`
	Settled      *events.Settled  `json:"settled,omitzero"`
	Refused      *events.Refused  `json:"refused,omitzero"`

	Acknowledged *wire.Acknowledged    `json:"acknowledged,omitzero"`
	Contradicted []events.Contradicted `json:"contradicted,omitempty"`

	CreatedAt events.Instant  `json:"created_at"`
	UpdatedAt events.Instant  `json:"updated_at"`
	Position  events.Position `json:"position"` // of its last event
	Size      int64           `json:"size"`     // encoded bytes of its events
}

// Admission is the record that consumed the permit.
type Admission struct {
	Position     events.Position `json:"position"`
	IntentSHA256 events.Digest   `json:"intent_sha256"`
	Intent       events.Intent   `json:"intent"`
	Receipt      events.Receipt  `json:"receipt"`
}

// Claim is the one dispatcher's right to send.
type Claim struct {
	events.Dispatched
	Position events.Position `json:"position"`
	At       events.Instant  `json:"at"`
}

// Unknown is why nothing is proven, and since when.
type Unknown struct {
	events.Unknown
	Since events.Instant `json:"since"`
}

// Attempt is one reconciliation attempt; no Result while it runs.
type Attempt struct {
	events.ReconcileStarted
	StartedAt events.Instant       `json:"started_at"`
	Result    events.AttemptResult `json:"result,omitzero"`
}

// Grace is how long after a deadline the ledger still waits for the report of
// who had it.
const Grace = 2 * time.Second

// TaskID is the task that pays.
func (e *Effect) TaskID() events.TaskID { return e.Prepared.Binding.TaskID }

// Operation is the kind of effect.
func (e *Effect) Operation() events.OperationName { return e.Prepared.Binding.Operation }

// Actor is the producer.
func (e *Effect) Actor() events.Actor { return events.ActorOf(e.Tenant, e.Principal) }

// IntentSHA256 is empty before the admission.
func (e *Effect) IntentSHA256() events.Digest {
	if e.Admission == nil {
		return ""
	}
	return e.Admission.IntentSHA256
}

// ExpiresAt is when the authority that the effect has or waits for ends.
func (e *Effect) ExpiresAt() events.Instant {
	if e.Permit != nil {
		return e.Permit.ExpiresAt
	}
	return e.Prepared.Binding.ExpiresAt
}

// Running returns the attempt that has not ended; nil if none.
func (e *Effect) Running() *Attempt {
	if n := len(e.Attempts); n > 0 && e.Attempts[n-1].Result == "" {
		return &e.Attempts[n-1]
	}
	return nil
}

// What follows says no of a record that is not there.

// holds reports whether the reservation is held: admitted, dispatched, unknown.
func (e *Effect) holds() bool {
	return e != nil && (e.State == wire.StateAdmitted || e.State == wire.StateDispatched || e.State == wire.StateUnknown)
}

// beforeAdmission reports whether the effect is prepared or permitted.
func (e *Effect) beforeAdmission() bool {
	return e != nil && (e.State == wire.StatePrepared || e.State == wire.StatePermitted)
}

// beforeClaim reports whether the effect can still be ended without a send.
func (e *Effect) beforeClaim() bool {
	return e.beforeAdmission() || e != nil && e.State == wire.StateAdmitted
}

// dueAt is when the ledger itself must act on the effect; zero for never.
func (e *Effect) dueAt() events.Instant {
	if e == nil {
		return 0
	}
	switch e.State {
	case wire.StatePrepared, wire.StatePermitted, wire.StateAdmitted:
		return e.ExpiresAt()
	case wire.StateDispatched:
		return e.Claim.At.Add(time.Duration(e.Claim.DeadlineMS)*time.Millisecond + Grace)
	case wire.StateUnknown:
		if a := e.Running(); a != nil {
			return a.Deadline.Add(Grace)
		}
	}
	return 0
}

func dueKey(at events.Instant, id events.EffectID) string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(at))
	return string(b[:]) + string(id)
}

// Causal is what a (tenant, run_id, causal_id) names. Outcome and State are kept
// here once the effect is collected.
type Causal struct {
	Tenant        events.Tenant    `json:"tenant"`
	RunID         events.RunID     `json:"run_id"`
	CausalID      events.CausalID  `json:"causal_id"`
	EffectID      events.EffectID  `json:"effect_id"`
	Principal     events.Principal `json:"principal"`
	RequestSHA256 events.Digest    `json:"request_sha256"`
	State         wire.State       `json:"state,omitzero"`
	Outcome       events.Outcome   `json:"outcome,omitzero"`
	Collected     bool             `json:"collected,omitzero"`
}

// Run is the record of one invocation.
type Run struct {
	Tenant    events.Tenant     `json:"tenant"`
	ID        events.RunID      `json:"id"`
	Principal events.Principal  `json:"principal"`
	Cancelled bool              `json:"cancelled,omitzero"`
	Outcome   events.RunOutcome `json:"outcome,omitzero"`
	Position  events.Position   `json:"position"`
}
