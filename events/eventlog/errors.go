package eventlog

import (
	"errors"
	"fmt"
)

var (
	// ErrConflict: another entry is proven to be at the sequence. Catch up and
	// decide again.
	ErrConflict = errors.New("another entry is at this sequence")
	// ErrFull: proven not stored, the log or its disk is full.
	ErrFull = errors.New("log is full")
	// ErrUnavailable: an append is proven not stored, or a read was not answered.
	// Back off and try again.
	ErrUnavailable = errors.New("log is unavailable")
	// ErrAppendUnknown: the append, or one before it, is neither success nor
	// failure. Append the same entry again, or read the log, until the sequence is
	// fixed. No other sentinel is in its chain.
	ErrAppendUnknown = errors.New("append is unknown")
	// ErrUntrusted is in the chain of every [Distrust].
	ErrUntrusted = errors.New("log is not trustworthy")
	// ErrExists: Create found a stream of that name.
	ErrExists = errors.New("stream exists")
	// ErrClosed: the connection of the log is closed for good.
	ErrClosed = errors.New("log is closed")
)

// Distrust says what makes the log unfit to decide on, and where. Stop, never
// skip. Seq is 0 when it is not about one entry.
type Distrust struct {
	Reason string
	Seq    uint64
}

func (d *Distrust) Error() string {
	if d.Seq == 0 {
		return fmt.Sprintf("%s: %s", ErrUntrusted, d.Reason)
	}
	return fmt.Sprintf("%s: entry %d: %s", ErrUntrusted, d.Seq, d.Reason)
}

// Is makes every Distrust match [ErrUntrusted].
func (d *Distrust) Is(target error) bool { return target == ErrUntrusted }

func distrust(seq uint64, format string, args ...any) *Distrust {
	return &Distrust{Reason: fmt.Sprintf(format, args...), Seq: seq}
}
