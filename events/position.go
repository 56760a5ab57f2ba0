package events

import (
	"fmt"
	"strconv"
	"strings"
)

// Position is the place of one event in the log: entry sequence (from 1) and
// index within the entry (from 0), written "1042.3". The zero Position is
// before every event and is written "0.0".
type Position struct {
	Seq   uint64
	Index int
}

func (p Position) String() string { return string(p.append(nil)) }

func (p Position) append(dst []byte) []byte {
	return strconv.AppendInt(append(strconv.AppendUint(dst, p.Seq, 10), '.'), int64(p.Index), 10)
}

// Less orders positions as the log does.
func (p Position) Less(q Position) bool {
	return p.Seq < q.Seq || p.Seq == q.Seq && p.Index < q.Index
}

// IsZero reports whether p is before every event.
func (p Position) IsZero() bool { return p == Position{} }

// MarshalText writes "seq.index".
func (p Position) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads "seq.index".
func (p *Position) UnmarshalText(b []byte) error {
	q, err := ParsePosition(string(b))
	if err == nil {
		*p = q
	}
	return err
}

// ParsePosition reads "seq.index", or "seq" for the first event of an entry.
func ParsePosition(s string) (Position, error) {
	seq, index, dotted := strings.Cut(s, ".")
	if !dotted {
		index = "0"
	}
	n, err := strconv.ParseUint(seq, 10, 53)
	if err != nil {
		return Position{}, fmt.Errorf("position: want SEQ.INDEX")
	}
	i, err := strconv.ParseUint(index, 10, 31)
	if err != nil {
		return Position{}, fmt.Errorf("position: want SEQ.INDEX")
	}
	return Position{Seq: n, Index: int(i)}, nil
}
