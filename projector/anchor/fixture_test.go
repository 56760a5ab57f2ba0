package anchor

import (
	"strconv"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/effectd/effectd/events"
)

const ledger = events.LedgerID("01JZZZZZZZZZZZZZZZZZZZZZZZ")

var print1 = events.DigestBytes([]byte("fingerprint"))

// at is the mark of the entry at seq.
func at(seq uint64) Mark {
	return Mark{LedgerID: ledger, Fingerprint: print1, Seq: seq, SHA256: events.DigestBytes([]byte(strconv.FormatUint(seq, 10))),
		Time: events.Instant(1_700_000_000_000_000_000 + int64(seq))}
}

// created opens a new anchor with the mark of seq.
func created(fs vfs.FS, seq uint64) (*Anchor, error) {
	if err := Create(fs, "anchor", at(seq)); err != nil {
		return nil, err
	}
	return Open(fs, "anchor")
}
