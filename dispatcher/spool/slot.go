package spool

import (
	"errors"
	"fmt"
	"math"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// MaxRecord is the largest encoded record, in bytes.
const MaxRecord = 32 << 10

// lookEvery is how many reservations pass between two looks at the disk. A look
// costs a system call; one in so many keeps Reserve at nanoseconds.
const lookEvery = 128

// Slot is room for one record. Release gives it back.
type Slot struct {
	spool    *Spool
	released bool // under spool.space.mu
}

// Reserve makes sure that one more record fits, in the bound of the spool and on
// the disk as it was seen within the last reservations, or returns [ErrFull].
func (s *Spool) Reserve() (*Slot, error) {
	s.space.Lock()
	defer s.space.Unlock()
	if s.look--; s.look <= 0 {
		s.measure()
	}
	promised := (s.slots + 1) * MaxRecord
	if s.used+promised > s.max {
		return nil, fmt.Errorf("%w: its bound is reached", ErrFull)
	}
	if promised > s.free {
		s.look = 0 // look again at once
		return nil, fmt.Errorf("%w: the disk is full", ErrFull)
	}
	s.slots++
	return &Slot{spool: s}, nil
}

// Release gives the slot back, after Put or when the result was appended. Only
// the first call counts.
func (l *Slot) Release() {
	l.spool.space.Lock()
	defer l.spool.space.Unlock()
	if !l.released {
		l.released = true
		l.spool.slots--
	}
}

// measure looks at the disk; what cannot be seen is not there. A file system
// that has no notion of it is not bounded by it.
func (s *Spool) measure() {
	s.look = lookEvery
	usage, err := s.fs.GetDiskUsage(s.dir)
	switch {
	case errors.Is(err, vfs.ErrUnsupported):
		s.free = math.MaxInt64
	case err != nil:
		s.free = 0
	default:
		s.free = int64(min(usage.AvailBytes, math.MaxInt64))
	}
}

// take accounts for a record of so many bytes, and reports whether it fits.
func (s *Spool) take(bytes int64) bool {
	s.space.Lock()
	defer s.space.Unlock()
	if s.used+bytes > s.max {
		return false
	}
	s.used += bytes
	s.look = 0
	return true
}

// give takes a record out of the account.
func (s *Spool) give(bytes int64) {
	s.space.Lock()
	defer s.space.Unlock()
	s.used -= bytes
	s.look = 0
}

// onDisk is the room of a file in whole blocks.
func onDisk(bytes int64) int64 {
	const block = 4 << 10
	return (bytes + block - 1) / block * block
}
