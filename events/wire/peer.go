package wire

import "github.com/effectd/effectd/events"

// Requests of one effectd process to the one that writes, which no user can see
// or send (SPEC 6).
type (
	// ClaimRequest asks for the one right to send an admitted effect.
	ClaimRequest struct {
		EffectID         events.EffectID   `json:"effect_id"`
		IntentSHA256     events.Digest     `json:"intent_sha256"`
		Dispatcher       events.Dispatcher `json:"dispatcher"`
		NonceSHA256      events.Digest     `json:"nonce_sha256"`
		DeadlineMS       int64             `json:"deadline_ms"`
		CredentialSHA256 events.Digest     `json:"credential_sha256,omitzero"`
	}
	// AbandonRequest says why an admitted effect can never be sent.
	AbandonRequest struct {
		EffectID     events.EffectID `json:"effect_id"`
		IntentSHA256 events.Digest   `json:"intent_sha256"`
		Detail       string          `json:"detail"`
	}
	// ResultRequest says what the claimed send proved. Nonce is the claim's secret.
	ResultRequest struct {
		EffectID        events.EffectID `json:"effect_id"`
		IntentSHA256    events.Digest   `json:"intent_sha256"`
		Nonce           string          `json:"nonce"`
		Result          events.Raw      `json:"result"`
		AuditIncomplete bool            `json:"audit_incomplete,omitzero"`
	}
	// PeerReply is what became of one of them, as of entry Seq.
	PeerReply struct {
		Claimed bool   `json:"claimed,omitzero"`
		Repeat  bool   `json:"repeat,omitzero"`
		Seq     uint64 `json:"seq,omitzero"`
		// Refusal is the law's: it is decided. Error is why nothing was, or why that
		// is not known.
		Refusal *Error `json:"refusal,omitzero"`
		Error   *Error `json:"error,omitzero"`
	}
)

// The last tokens of the subjects between processes.
const (
	PeerClaim   = "claim"
	PeerAbandon = "abandon"
	PeerResult  = "result"
)

// PeerSubject is where the process that writes a ledger is asked by another.
func PeerSubject(l events.LedgerID, what string) string { return NodePrefix + string(l) + "." + what }
