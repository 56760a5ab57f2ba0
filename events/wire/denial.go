package wire

import "github.com/effectd/effectd/events"

// Denial is a request that was denied and left nothing in the log: a message of
// EFFECT_DENIALS. It names fields, and holds no value of a payload.
type Denial struct {
	V          int              `json:"v"`
	Time       events.Instant   `json:"time"`
	Tenant     events.Tenant    `json:"tenant"`
	Principal  events.Principal `json:"principal"`
	Verb       Verb             `json:"verb"`
	Code       Code             `json:"code"`
	Field      string           `json:"field,omitzero"`
	Message    string           `json:"message"`
	EffectID   events.EffectID  `json:"effect_id,omitzero"`   // if the ledger knows an effect of the request
	RequestSeq uint64           `json:"request_seq,omitzero"` // position in EFFECT_REQUESTS, if it came from there
	RunID      events.RunID     `json:"run_id,omitzero"`
	CausalID   events.CausalID  `json:"causal_id,omitzero"`
}

// Queued says where a request lies in the intake: it is kept, and not decided yet.
type Queued struct {
	Stream string `json:"stream"`
	Seq    uint64 `json:"seq"`
}

// Intake is how the work queue stands.
type Intake struct {
	Serving        bool   `json:"serving"`
	Reason         string `json:"reason,omitzero"` // why it is not
	Waiting        uint64 `json:"waiting"`
	DenialsDropped uint64 `json:"denials_dropped"` // since the node started
}
