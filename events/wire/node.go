package wire

import "github.com/effectd/effectd/events"

// NodeVerb is what one effectd process asks of the one that writes (SPEC 6). No
// user may publish or subscribe there.
type NodeVerb string

// What a dispatcher asks.
const (
	NodeClaim   NodeVerb = "claim"
	NodeResult  NodeVerb = "result"
	NodeAbandon NodeVerb = "abandon"
)

// NodeVerbs lists every NodeVerb.
func NodeVerbs() []NodeVerb { return []NodeVerb{NodeClaim, NodeResult, NodeAbandon} }

// NodeSubject is where the writer of a ledger is asked.
func NodeSubject(l events.LedgerID, v NodeVerb) string {
	return NodePrefix + string(l) + "." + string(v)
}

// What dispatchers ask, each about one admitted effect.
type (
	// NodeEffect begins each request between processes: its version, and what it
	// is about.
	NodeEffect struct {
		V            int             `json:"v"`
		LedgerID     events.LedgerID `json:"ledger_id"`
		EffectID     events.EffectID `json:"effect_id"`
		IntentSHA256 events.Digest   `json:"intent_sha256"`
	}
	// ClaimRequest asks for the one right to send.
	ClaimRequest struct {
		NodeEffect
		Dispatcher       events.Dispatcher `json:"dispatcher"`
		NonceSHA256      events.Digest     `json:"nonce_sha256"`
		DeadlineMS       int64             `json:"deadline_ms"`
		CredentialSHA256 events.Digest     `json:"credential_sha256,omitzero"`
	}
	// ResultRequest says what the claimed send proved. Nonce is the claim's secret.
	ResultRequest struct {
		NodeEffect
		Nonce           string     `json:"nonce"`
		Result          SendResult `json:"result"`
		AuditIncomplete bool       `json:"audit_incomplete,omitzero"`
	}
	// SendResult is what a send proved; without an outcome nothing is.
	SendResult struct {
		Outcome     events.Outcome  `json:"outcome"`
		Means       events.Means    `json:"means,omitzero"`
		Reason      events.Reason   `json:"reason"`
		Evidence    events.Evidence `json:"evidence"`
		Cost        events.Amounts  `json:"cost,omitempty"`
		CostInvalid bool            `json:"cost_invalid,omitzero"`
		ProviderRef string          `json:"provider_ref,omitzero"`
	}
	// AbandonRequest says that an effect cannot be sent, and why.
	AbandonRequest struct {
		NodeEffect
		Detail string `json:"detail"`
	}
)

// DecisionReply is what the writer decided. The entry Seq, whose body has SHA256,
// and what is before it hold the decision. Refusal is the law's.
type DecisionReply struct {
	Claimed  bool            `json:"claimed"`
	Repeat   bool            `json:"repeat"`
	EffectID events.EffectID `json:"effect_id,omitzero"`
	Seq      uint64          `json:"seq"`
	SHA256   events.Digest   `json:"sha256"`
	At       events.Instant  `json:"at"` // ledger time of the decision
	Refusal  *Error          `json:"refusal,omitzero"`
}

func (r *NodeEffect) check() *Error {
	if r.V != events.Format {
		return FieldError(InvalidRequest, "v", "this version of effectd does not know it")
	}
	return firstOf(CheckID("ledger_id", r.LedgerID), CheckID("effect_id", r.EffectID), checkDigest("intent_sha256", r.IntentSHA256))
}

func (r *ClaimRequest) check() *Error {
	if r.DeadlineMS == 0 {
		return FieldError(InvalidRequest, "deadline_ms", "it is required")
	}
	if r.CredentialSHA256 != "" {
		if refusal := checkDigest("credential_sha256", r.CredentialSHA256); refusal != nil {
			return refusal
		}
	}
	return firstOf(r.NodeEffect.check(), CheckID("dispatcher.node", r.Dispatcher.Node), CheckID("dispatcher.incarnation", r.Dispatcher.Incarnation),
		checkDigest("nonce_sha256", r.NonceSHA256), CheckMS("deadline_ms", r.DeadlineMS))
}

// check leaves the cost to the law: an amount that is none charges the maximum.
func (r *ResultRequest) check() *Error {
	if r.Result.Means != "" {
		if refusal := CheckOneOf("result.means", r.Result.Means, events.MeansAccepted, events.MeansCompleted); refusal != nil {
			return refusal
		}
	}
	return firstOf(r.NodeEffect.check(), CheckID("nonce", r.Nonce),
		CheckOneOf("result.outcome", r.Result.Outcome, events.OutcomeUnknown, events.OutcomeSucceeded, events.OutcomeFailed,
			events.OutcomePartial, events.OutcomeNoEffect),
		CheckID("result.reason", r.Result.Reason), CheckID("result.evidence.source", r.Result.Evidence.Source))
}

func (r *AbandonRequest) check() *Error { return r.NodeEffect.check() }

func (r *DecisionReply) check() *Error { return checkDigest("sha256", r.SHA256) }

// checkDigest wants a SHA-256 in lower-case hexadecimal.
func checkDigest(field string, d events.Digest) *Error {
	if !events.ValidDigest(string(d)) {
		return FieldError(InvalidRequest, field, "want 64 lower-case hexadecimal characters")
	}
	return nil
}
