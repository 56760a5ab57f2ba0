package audit

import (
	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
)

// Code says what is wrong; stable, for programs.
type Code string

// The codes.
const (
	CorruptEntry       Code = "corrupt_entry"       // not what a writer writes
	UnknownVersion     Code = "unknown_version"     // a format version that is not known
	SequenceGap        Code = "sequence_gap"        // an entry is missing, or there twice
	ChainBroken        Code = "chain_broken"        // prev is not the hash of the entry before
	ForeignLedger      Code = "foreign_ledger"      // of another ledger, or of none
	TimeReversed       Code = "time_reversed"       // ledger time goes back
	EventIDInvalid     Code = "event_id_invalid"    // not a ULID of the event's time
	DuplicateEventID   Code = "duplicate_event_id"  //
	DigestMismatch     Code = "digest_mismatch"     // a digest is not that of its body
	EnvelopeMismatch   Code = "envelope_mismatch"   // common fields contradict the data or the effect
	RevisionGap        Code = "revision_gap"        // policy or access skip a revision
	LawInvalid         Code = "law_invalid"         // a contract, policy or table that cannot be used
	OperationMismatch  Code = "operation_mismatch"  // not the contract version that is registered
	ContractMismatch   Code = "contract_mismatch"   // resource, bound, schema or expiry are not the contract's
	Unauthorized       Code = "unauthorized"        // the logged law did not allow it
	SignatureInvalid   Code = "signature_invalid"   // a statement is not signed, or says something else
	ReasonUnfounded    Code = "reason_unfounded"    // the effect did not end for this reason
	IllegalTransition  Code = "illegal_transition"  //
	DuplicateEffect    Code = "duplicate_effect"    // an effect id is prepared twice
	DuplicateCausalID  Code = "duplicate_causal_id" //
	DuplicatePermit    Code = "duplicate_permit"    //
	DuplicateAdmission Code = "duplicate_admission" //
	DuplicateClaim     Code = "duplicate_claim"     //
	DuplicateSettle    Code = "duplicate_settle"    //
	DuplicateTask      Code = "duplicate_task"      //
	DuplicateOperation Code = "duplicate_operation" //
	ReceiptMismatch    Code = "receipt_mismatch"    // not the receipt of the admission
	ClaimMismatch      Code = "claim_mismatch"      // a claim that the contract or the law does not give
	ResultNoIntent     Code = "result_without_intent"
	IntentNoResult     Code = "intent_without_result" // forgotten before it was settled
	IntentMismatch     Code = "intent_commitment_mismatch"
	ReservationWrong   Code = "reservation_mismatch" // not exactly task and ancestors, unit by unit
	BudgetOverdrawn    Code = "budget_overdrawn"     //
	ExposureOverdrawn  Code = "exposure_overdrawn"   //
	CostMismatch       Code = "cost_mismatch"        // the charge contradicts bound and outcome
	BooksDiffer        Code = "books_differ"         // the fold has other accounts than the log
	CollectedEarly     Code = "collected_early"      // something could still refer to the record
)

// Finding is one thing that is wrong, and where. A finding about a whole entry
// stands at its first event.
type Finding struct {
	Code     Code            `json:"code"`
	Position events.Position `json:"position"`
	Message  string          `json:"message"`
}

// Rule is one kind of check and what it found.
type Rule struct {
	Name       string   `json:"name"`
	Checked    int64    `json:"checked"` // 0: there was nothing to check
	Violations int64    `json:"violations"`
	First      *Finding `json:"first,omitzero"`
}

// Verdict is "ok", "violated", or "nothing to check".
func (r Rule) Verdict() string {
	switch {
	case r.Violations > 0:
		return "violated"
	case r.Checked == 0:
		return "nothing to check"
	}
	return "ok"
}

// Report is what an audit found up to the last entry.
type Report struct {
	Entries int64    `json:"entries"`
	Events  int64    `json:"events"`
	Rules   []Rule   `json:"rules"`
	First   *Finding `json:"first,omitzero"` // in the order of the log
	// Open counts the intents without a settled result: ordinary while their
	// effects are under way.
	Open   int64            `json:"open"`
	Digest events.Digest    `json:"digest"` // of the state at the end
	State  *aggregate.State `json:"-"`
}

// ruleID orders the rules of a report.
type ruleID int

const (
	ruleSequence ruleID = iota
	ruleChain
	ruleLedger
	ruleTime
	ruleIDs
	ruleDigests
	ruleLaw
	ruleAuthority
	ruleContracts
	ruleTransitions
	ruleUnique
	rulePairs
	ruleReceipts
	ruleReservations
	ruleBudget
	ruleCollected
	ruleCount
)

var ruleNames = [ruleCount]string{
	ruleSequence:     "the sequence has no gap",
	ruleChain:        "every entry names the hash of the one before",
	ruleLedger:       "one ledger, one format",
	ruleTime:         "ledger time never goes back",
	ruleIDs:          "every event id is one of its time, once",
	ruleDigests:      "every digest is that of its body",
	ruleLaw:          "the law changes in order and can be read",
	ruleAuthority:    "every decision is allowed by the law as logged",
	ruleContracts:    "every binding is what its contract makes of the payload",
	ruleTransitions:  "every effect, run and task goes its legal way",
	ruleUnique:       "permit, admission, claim, settle and causal id are there once",
	rulePairs:        "every result has its intent, and carries its digest",
	ruleReceipts:     "every receipt is that of its admission",
	ruleReservations: "every reservation is exactly the bound, in task and ancestors",
	ruleBudget:       "no account is overdrawn at any position",
	ruleCollected:    "nothing is forgotten that could still be referred to",
}
