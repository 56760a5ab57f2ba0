package events

import (
	"fmt"
	"regexp"
	"time"
)

// Instant is a point in ledger time: nanoseconds since the Unix epoch, UTC. The
// zero Instant means "none". It is written as RFC 3339 with up to nanoseconds.
type Instant int64

// InstantOf converts a wall-clock time.
func InstantOf(t time.Time) Instant { return Instant(t.UnixNano()) }

// Time converts to a time.Time in UTC.
func (i Instant) Time() time.Time { return time.Unix(0, int64(i)).UTC() }

// Add returns the instant d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns the duration from j to i.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i - j) }

// IsZero reports whether there is no instant.
func (i Instant) IsZero() bool { return i == 0 }

func (i Instant) String() string { return i.Time().Format(time.RFC3339Nano) }

// AppendText writes RFC 3339 in UTC.
func (i Instant) AppendText(dst []byte) ([]byte, error) {
	return i.Time().AppendFormat(dst, time.RFC3339Nano), nil
}

// MarshalText writes RFC 3339 in UTC.
func (i Instant) MarshalText() ([]byte, error) { return i.AppendText(make([]byte, 0, 32)) }

// UnmarshalText accepts exactly what MarshalText writes.
func (i *Instant) UnmarshalText(b []byte) error {
	t, err := time.Parse(time.RFC3339Nano, string(b))
	if err != nil {
		return fmt.Errorf("time: want RFC 3339 in UTC")
	}
	if y := t.Year(); y < 1970 || y > 2200 {
		return fmt.Errorf("time: year out of range 1970 to 2200")
	}
	*i = InstantOf(t)
	if i.String() != string(b) {
		return fmt.Errorf("time: want RFC 3339 in UTC, shortest form")
	}
	return nil
}

var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$`)

// ParseInstant accepts any RFC 3339 time after the epoch, with up to
// nanoseconds, as requests carry it.
func ParseInstant(s string) (Instant, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || !rfc3339.MatchString(s) { // time.Parse takes more than RFC 3339
		return 0, fmt.Errorf("want an RFC 3339 time with up to nanoseconds")
	}
	if y := t.UTC().Year(); y < 1970 || y > 2200 || t.Equal(time.Unix(0, 0)) {
		return 0, fmt.Errorf("year out of range 1970 to 2200")
	}
	return InstantOf(t), nil
}
