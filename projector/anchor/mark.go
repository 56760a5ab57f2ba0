package anchor

import (
	"crypto/sha256"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/effectd/effectd/events"
)

// Mark is the end of a log as it was seen.
type Mark struct {
	LedgerID    events.LedgerID `json:"ledger_id"`
	Fingerprint events.Digest   `json:"fingerprint"` // of the store
	Seq         uint64          `json:"seq"`
	SHA256      events.Digest   `json:"sha256"` // of entry Seq
	Time        events.Instant  `json:"time"`
}

// agrees reports whether m and o can be marks of one log.
func (m Mark) agrees(o Mark) error {
	switch {
	case m.LedgerID != o.LedgerID:
		return fmt.Errorf("%w: ledger_id differs", ErrOther)
	case m.Fingerprint != o.Fingerprint:
		return fmt.Errorf("%w: fingerprint differs", ErrOther)
	case m.Seq == o.Seq && m.SHA256 != o.SHA256:
		return fmt.Errorf("%w: entry %d differs", ErrOther, m.Seq)
	}
	return nil
}

const (
	// slotSize is the largest sector and page that storage writes as one, so
	// that a slot is never torn with its neighbour.
	slotSize = 4096
	sumSize  = sha256.Size
)

// record is the content of a slot. Of two intact ones the larger count is the later.
type record struct {
	V     int    `json:"v"`
	Count uint64 `json:"count"`
	Mark
}

// encode fills one slot: checksum, then JSON padded with spaces.
func (r record) encode() ([]byte, error) {
	r.V = events.Format
	text := events.CanonicalOf(r)
	if len(text) > slotSize-sumSize {
		return nil, fmt.Errorf("a mark of %d bytes does not fit", len(text))
	}
	slot := make([]byte, slotSize)
	for i := range slot {
		slot[i] = ' '
	}
	copy(slot[sumSize:], text)
	sum := sha256.Sum256(slot[sumSize:])
	copy(slot, sum[:])
	return slot, nil
}

// decode reports false for a slot that is damaged or was written by an unknown version.
func decode(slot []byte) (record, bool) {
	var r record
	if sum := sha256.Sum256(slot[sumSize:]); string(sum[:]) != string(slot[:sumSize]) {
		return r, false
	}
	err := json.Unmarshal(slot[sumSize:], &r, json.RejectUnknownMembers(true))
	return r, err == nil && r.V == events.Format
}
