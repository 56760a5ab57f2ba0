package audit

import (
	"fmt"

	"github.com/effectd/effectd/events"
	"github.com/oklog/ulid/v2"
)

// head is how far the log has come.
type head struct {
	seq    uint64
	sha256 events.Digest
	ledger events.LedgerID
	store  events.Digest // the fingerprint that is pinned
	time   events.Instant
	ids    map[events.EventID]struct{} // of the current millisecond
	idsOf  uint64
	nodes  map[string]events.Incarnation // that has the ledger, by node
}

func newHead() head {
	return head{sha256: events.ZeroDigest, ids: map[events.EventID]struct{}{}, nodes: map[string]events.Incarnation{}}
}

// chain checks an entry against the one before it.
func (a *Audit) chain(e *events.Stored) {
	h := &a.head
	a.check(ruleSequence, e.Seq == h.seq+1, SequenceGap, fmt.Sprintf("entry %d follows entry %d", e.Seq, h.seq))
	a.check(ruleChain, e.Prev == h.sha256, ChainBroken, "prev is not the hash of the entry before")
	sha := events.DigestBytes(e.Body)
	a.check(ruleChain, e.SHA256 == sha, ChainBroken, "the entry's hash is not that of its bytes")
	a.check(ruleLedger, e.V == events.Format, UnknownVersion, fmt.Sprintf("entry version %d", e.V))
	if h.ledger == "" && len(e.Events) > 0 {
		opened, ok := e.Events[0].Data.(events.LedgerOpened)
		a.check(ruleLedger, ok && e.Seq == 1, ForeignLedger, "the log does not begin with the opening of a ledger")
		h.ledger = opened.LedgerID
	}
	a.check(ruleLedger, e.LedgerID == h.ledger, ForeignLedger, "the entry is of another ledger")
	a.check(ruleTime, e.Time >= h.time, TimeReversed, "the entry is older than the one before")
	h.seq, h.sha256, h.time = e.Seq, sha, max(h.time, e.Time)
}

// envelope checks what every event has.
func (a *Audit) envelope(e *events.Stored, ev *events.Event) {
	a.check(ruleLedger, ev.V == events.Format, UnknownVersion, fmt.Sprintf("event version %d", ev.V))
	a.check(ruleTime, ev.Time == e.Time, TimeReversed, "the event has another time than its entry")
	a.check(ruleLedger, ev.Data != nil && ev.Type == ev.Data.Type(), EnvelopeMismatch, "type is not that of the data")
	a.eventID(ev)
}

// eventID holds every id apart from all before with a memory of one millisecond:
// an id names its time, and times never go back.
func (a *Audit) eventID(ev *events.Event) {
	id, err := ulid.ParseStrict(string(ev.ID))
	ms := uint64(ev.Time) / 1e6
	if !a.check(ruleIDs, err == nil && id.String() == string(ev.ID) && id.Time() == ms, EventIDInvalid,
		"the id is not a ULID of the event's time, so it may be another event's") {
		return
	}
	h := &a.head
	if h.idsOf != ms {
		clear(h.ids)
		h.idsOf = ms
	}
	_, known := h.ids[ev.ID]
	a.check(ruleIDs, !known, DuplicateEventID, "another event has the id")
	h.ids[ev.ID] = struct{}{}
}

// freshID checks the id of something new that an event names: like the event's
// own, it is a ULID of its time, and so of no earlier thing.
func (a *Audit) freshID(id string, what string) {
	parsed, err := ulid.ParseStrict(id)
	a.check(ruleIDs, err == nil && parsed.String() == id && parsed.Time() == uint64(a.now)/1e6, EventIDInvalid,
		what+" is not a ULID of the event's time, so it may be another one's")
}
