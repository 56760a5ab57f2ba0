package audit

import (
	"github.com/oklog/ulid/v2"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
)

// Code names what is wrong.
type Code = string

// The codes.
const (
	SequenceGap              Code = "sequence_gap"
	ChainBroken              Code = "chain_broken"
	ForeignLedger            Code = "foreign_ledger"
	TimeReversed             Code = "time_reversed"
	DuplicateEventID         Code = "duplicate_event_id"
	DigestMismatch           Code = "digest_mismatch"
	OperationMismatch        Code = "operation_mismatch"
	Unauthorized             Code = "unauthorized"
	IllegalTransition        Code = "illegal_transition"
	DuplicateAdmission       Code = "duplicate_admission"
	DuplicateClaim           Code = "duplicate_claim"
	DuplicateSettle          Code = "duplicate_settle"
	DuplicatePermit          Code = "duplicate_permit"
	DuplicateCausalID        Code = "duplicate_causal_id"
	DuplicateEffectID        Code = "duplicate_effect_id"
	DuplicateTask            Code = "duplicate_task"
	ResultWithoutIntent      Code = "result_without_intent"
	IntentWithoutResult      Code = "intent_without_result"
	IntentCommitmentMismatch Code = "intent_commitment_mismatch"
	ReceiptMismatch          Code = "receipt_mismatch"
	ReservationMismatch      Code = "reservation_mismatch"
	BudgetOverdrawn          Code = "budget_overdrawn"
	CollectedEarly           Code = "collected_early"
)

// Finding is the first thing that a rule found wrong.
type Finding struct {
	Code     Code            `json:"code"`
	Position events.Position `json:"position"`
	Message  string          `json:"message"`
}

// Rule is one thing that is checked.
type Rule struct {
	Name       string   `json:"name"`
	Checked    int64    `json:"checked"` // 0: there was nothing to check
	Violations int64    `json:"violations"`
	First      *Finding `json:"first,omitzero"`
}

// Report is what an audit found.
type Report struct {
	Entries int64            `json:"entries"`
	Events  int64            `json:"events"`
	Rules   []Rule           `json:"rules"`
	First   *Finding         `json:"first,omitzero"`
	Digest  events.Digest    `json:"digest"` // of the state at the end
	Open    int64            `json:"open"`   // intents without a result yet: admitted, dispatched, unknown
	State   *aggregate.State `json:"-"`
}

// The rules, in the order of the report.
const (
	ruleSequence    = "sequence without gaps"
	ruleChain       = "hash chain"
	ruleLedger      = "one ledger"
	ruleTime        = "time never goes back"
	ruleEventIDs    = "event ids are unique"
	ruleDigests     = "digests recomputed"
	ruleContracts   = "bindings follow the logged contract"
	ruleAuthority   = "permits allowed by the logged law"
	ruleTransitions = "legal transitions"
	ruleUnique      = "uniqueness"
	ruleIntents     = "intent and result pairs"
	ruleReceipts    = "receipts"
	ruleReserved    = "reservations cover the ancestry"
	ruleBudget      = "budget invariant"
	ruleCollected   = "collected only after the horizon"
)

var ruleNames = []string{ruleSequence, ruleChain, ruleLedger, ruleTime, ruleEventIDs, ruleDigests, ruleContracts, ruleAuthority,
	ruleTransitions, ruleUnique, ruleIntents, ruleReceipts, ruleReserved, ruleBudget, ruleCollected}

// Audit checks a log entry by entry, in bounded memory beside the live state.
type Audit struct {
	state  *aggregate.State
	rules  map[string]*Rule
	first  *Finding
	report Report
	pos    events.Position         // of what is being checked
	ids    map[events.EventID]bool // within the present millisecond
	idTime uint64
}

// New starts before the first entry.
func New() *Audit {
	a := &Audit{state: aggregate.New(), rules: map[string]*Rule{}, ids: map[events.EventID]bool{}}
	for _, name := range ruleNames {
		a.rules[name] = &Rule{Name: name}
	}
	return a
}

// check counts one check of a rule and notes a violation.
func (a *Audit) check(rule string, ok bool, code Code, message string) bool {
	r := a.rules[rule]
	r.Checked++
	if ok {
		return true
	}
	r.Violations++
	f := &Finding{Code: code, Position: a.pos, Message: message}
	if r.First == nil {
		r.First = f
	}
	if a.first == nil {
		a.first = f
	}
	return false
}

// Entry checks the next entry and folds it.
func (a *Audit) Entry(stored events.Stored) {
	e := &stored
	a.pos = events.Position{Seq: e.Seq}
	head := a.state.Head()
	a.report.Entries++
	a.check(ruleSequence, e.Seq == head.Seq+1, SequenceGap, "the entry does not follow the one before it")
	a.check(ruleChain, e.Prev == head.SHA256, ChainBroken, "prev is not the hash of the entry before")
	if head.LedgerID != "" {
		a.check(ruleLedger, e.LedgerID == head.LedgerID, ForeignLedger, "the entry names another ledger")
	}
	a.check(ruleTime, e.Time >= head.Time, TimeReversed, "the entry is older than the one before it")
	for i := range e.Events {
		a.pos = events.Position{Seq: e.Seq, Index: i}
		a.report.Events++
		a.event(e, i)
		a.state.ApplyEvent(e, i)
		a.after(&e.Events[i])
	}
	a.state.Seal(e.Seq, e.SHA256, e.Time)
	a.state.Settle()
}

// event checks one event on the state before it.
func (a *Audit) event(e *events.Stored, i int) {
	ev := &e.Events[i]
	a.check(ruleTime, ev.Time == e.Time, TimeReversed, "the event has another time than its entry")
	a.eventID(ev, e.Time)
	if opened, ok := ev.Data.(events.LedgerOpened); ok {
		a.opened(opened)
		return
	}
	if ev.EffectID != "" {
		a.effectEvent(ev, e.Time)
		return
	}
	a.ownerEvent(ev)
}

// eventID checks that an id was not used before. An id carries the millisecond of
// its entry, so only ids of the same millisecond can be equal.
func (a *Audit) eventID(ev *events.Event, at events.Instant) {
	id, err := ulid.ParseStrict(string(ev.ID))
	ms := ulid.Timestamp(at.Time())
	if !a.check(ruleEventIDs, err == nil && id.Time() == ms, DuplicateEventID, "the event id is not of its entry's time") {
		return
	}
	if ms != a.idTime {
		a.idTime, a.ids = ms, map[events.EventID]bool{}
	}
	a.check(ruleEventIDs, !a.ids[ev.ID], DuplicateEventID, "another event has this id")
	a.ids[ev.ID] = true
}

// opened checks who takes over what.
func (a *Audit) opened(d events.LedgerOpened) {
	head := a.state.Head()
	if head.LedgerID == "" {
		a.check(ruleLedger, a.pos == events.Position{Seq: 1}, ForeignLedger, "the ledger is not opened by its first event")
		return
	}
	a.check(ruleLedger, d.LedgerID == head.LedgerID && d.StoreFingerprint == head.Fingerprint, ForeignLedger, "another ledger or store is opened")
}

// Report says what was found so far.
func (a *Audit) Report() Report {
	r := a.report
	r.First, r.State, r.Digest = a.first, a.state, a.state.Digest()
	a.state.EachEffect(func(e *aggregate.Effect) bool {
		if e.Admission != nil && !e.State.Terminal() {
			r.Open++
		}
		return true
	})
	for _, name := range ruleNames {
		r.Rules = append(r.Rules, *a.rules[name])
	}
	return r
}
