package eventlog

import (
	"context"
	"time"

	"github.com/effectd/effectd/events"
)

// Log is what [Stream] and [Memory] both are. Its methods may be called
// concurrently; entries that it returns are shared and must not be changed.
type Log interface {
	// Append stores s at s.Seq, when the log ends at s.Seq−1 with the entry that
	// s.Prev names. It returns nil when the log holds these bytes at s.Seq, also
	// when they were there before. ErrConflict, ErrFull, ErrUnavailable and
	// ErrClosed (before anything was sent) mean not stored, a *Distrust that the
	// entry before s is missing or another one. Without an answer it retries the
	// same bytes until ctx ends and then returns ErrAppendUnknown.
	Append(ctx context.Context, s events.Stored) error

	// Read returns consecutive entries from the given sequence (0 means 1), at
	// most max (0 means a default), possibly fewer, none when the log ends before
	// it. The entry before from must exist. With a *Distrust come the entries
	// that are good before it. In a cluster a replica may answer that is behind.
	Read(ctx context.Context, from uint64, max int) ([]events.Stored, error)

	// Last is the sequence of the last entry, 0 when there is none. A cluster may
	// answer late: decide by Append, never by Last.
	Last(ctx context.Context) (uint64, error)

	// Status describes the log without judging it.
	Status(ctx context.Context) (Status, error)

	// Tail calls fn for each entry from the given sequence in order, and goes on
	// with new ones as they are committed. prev is the digest of the entry before
	// from (ZeroDigest for the first; empty: not checked). It outlives lost
	// connections and consumers, and returns fn's error, ctx's error, ErrClosed or
	// a *Distrust, never nil.
	Tail(ctx context.Context, from uint64, prev events.Digest, fn func(events.Stored) error) error

	// Deliveries opens the durable consumer of that name, and makes it, starting
	// at from (0 means 1), when it is absent.
	Deliveries(ctx context.Context, durable string, from uint64) (Deliveries, error)
}

// Deliveries hands out entries at least once, in no promised order, until they
// are acknowledged. One goroutine at a time may call Next.
type Deliveries interface {
	// Next waits for an entry. It returns ctx's error, ErrClosed or a *Distrust,
	// and outlives a lost connection.
	Next(ctx context.Context) (Delivery, error)
	// Stop ends the prefetch. What was not acknowledged comes again.
	Stop()
}

// Delivery is one entry as delivered.
type Delivery struct {
	events.Stored
	Times uint64 // deliveries of this entry so far, this one included

	ack func() error
}

// Ack says that the entry need not come again. A lost ack only means that it
// does.
func (d Delivery) Ack() error { return d.ack() }

// Status is what a log says about itself.
type Status struct {
	Stream   string
	Created  time.Time
	Replicas int
	FirstSeq uint64 // 0 or 1 in a log without entries
	LastSeq  uint64
	Messages uint64
	Bytes    uint64
	MaxBytes int64
	Deleted  int // sequences without a message between first and last
	Lost     int // messages that the store reports as lost
}

// Fingerprint identifies the store of a ledger (SPEC 3).
func (s Status) Fingerprint(ledger events.LedgerID) events.Digest {
	return Fingerprint(ledger, s.Stream, s.Created)
}

// Fingerprint is the digest of ledger, stream name and stream creation time.
func Fingerprint(ledger events.LedgerID, stream string, created time.Time) events.Digest {
	return events.DigestOf(struct {
		V        int             `json:"v"`
		LedgerID events.LedgerID `json:"ledger_id"`
		Stream   string          `json:"stream"`
		Created  events.Instant  `json:"created"`
	}{events.Format, ledger, stream, events.InstantOf(created)})
}
