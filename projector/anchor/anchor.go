package anchor

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/go-json-experiment/json"

	"github.com/effectd/effectd/events"
)

var (
	// ErrMissing: there is no anchor.
	ErrMissing = errors.New("the anchor is missing")
	// ErrDamaged: there is an anchor, and no slot of it is intact.
	ErrDamaged = errors.New("the anchor is damaged")
	// ErrExists: there is an anchor already.
	ErrExists = errors.New("there is an anchor already")
)

// Mark is the end of the log as it was seen.
type Mark struct {
	V           int             `json:"v"`
	LedgerID    events.LedgerID `json:"ledger_id"`
	Fingerprint events.Digest   `json:"fingerprint"`
	Seq         uint64          `json:"seq"`
	SHA256      events.Digest   `json:"sha256"` // of entry Seq
	Time        events.Instant  `json:"time"`
}

const (
	fileName = "anchor"
	slotSize = 512 // one sector, so that neighbours are not torn with it
	sumSize  = sha256.Size
)

// Anchor is the open file. It is safe for concurrent use.
type Anchor struct {
	file vfs.File

	mu      sync.Mutex
	durable Mark
	slot    int // where the next mark goes
	err     error
	wanted  Mark          // the latest mark that somebody waits for
	round   chan struct{} // closed when the round that carries wanted is over; nil if none waits
	writing bool
}

// Create makes the anchor of a new ledger, durably. It refuses an existing one.
func Create(fs vfs.FS, dir string, first Mark) error {
	path := fs.PathJoin(dir, fileName)
	if _, err := fs.Stat(path); err == nil {
		return fmt.Errorf("create %s: %w", path, ErrExists)
	}
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create anchor: %w", err)
	}
	block := make([]byte, 2*slotSize)
	copy(block, encode(first))
	temporary := path + ".tmp"
	f, err := fs.Create(temporary, vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("create anchor: %w", err)
	}
	_, err = f.Write(block)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = fs.Rename(temporary, path)
	}
	if err == nil {
		err = syncDir(fs, dir)
	}
	if err != nil {
		return fmt.Errorf("create anchor: %w", err)
	}
	return nil
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Open reads the anchor: [ErrMissing], [ErrDamaged], or what the file system says.
func Open(fs vfs.FS, dir string) (*Anchor, error) {
	path := fs.PathJoin(dir, fileName)
	if _, err := fs.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil, ErrMissing
	}
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("open anchor: %w", err)
	}
	a := &Anchor{file: f, slot: -1}
	for slot := range 2 {
		block := make([]byte, slotSize)
		if n, _ := f.ReadAt(block, int64(slot*slotSize)); n < slotSize {
			continue
		}
		if m, ok := decode(block); ok && (a.slot < 0 || m.Seq >= a.durable.Seq) {
			a.durable, a.slot = m, 1-slot
		}
	}
	if a.slot < 0 {
		return nil, errors.Join(ErrDamaged, f.Close())
	}
	return a, nil
}

// encode fills one slot: checksum, then the mark as JSON, padded with spaces.
func encode(m Mark) []byte {
	m.V = events.Format
	text := events.CanonicalOf(m)
	block := make([]byte, slotSize)
	for i := range block {
		block[i] = ' '
	}
	copy(block[sumSize:], text)
	sum := sha256.Sum256(block[sumSize:])
	copy(block, sum[:])
	return block
}

func decode(block []byte) (Mark, bool) {
	var m Mark
	if sum := sha256.Sum256(block[sumSize:]); string(sum[:]) != string(block[:sumSize]) {
		return m, false
	}
	err := json.Unmarshal(block[sumSize:], &m, json.RejectUnknownMembers(true))
	return m, err == nil && m.V == events.Format
}

// Load is the last durable mark.
func (a *Anchor) Load() Mark {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.durable
}

// Ensure returns nil when a mark at m.Seq or later is fsynced. Everybody who waits
// while a write runs is served by the next one. A write that failed once fails
// for good: what the disk holds is not known any more.
func (a *Anchor) Ensure(ctx context.Context, m Mark) error {
	a.mu.Lock()
	for {
		if a.err != nil || a.durable.Seq >= m.Seq {
			defer a.mu.Unlock()
			return a.err
		}
		if m.Seq > a.wanted.Seq {
			a.wanted = m
		}
		if a.round == nil {
			a.round = make(chan struct{})
		}
		if !a.writing {
			a.write()
			continue
		}
		round := a.round
		a.mu.Unlock()
		select {
		case <-round:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		a.mu.Lock()
	}
}

// write makes the wanted mark durable; called and left with the lock held.
func (a *Anchor) write() {
	m, round, slot := a.wanted, a.round, a.slot
	a.writing, a.round = true, nil
	a.mu.Unlock()
	_, err := a.file.WriteAt(encode(m), int64(slot*slotSize))
	if err == nil {
		err = a.file.SyncData()
	}
	a.mu.Lock()
	a.writing = false
	if err != nil {
		a.err = fmt.Errorf("write anchor: %w", err)
	} else {
		a.durable, a.slot = m, 1-slot
	}
	close(round)
	if a.round != nil && a.err != nil {
		close(a.round)
		a.round = nil
	}
}

// Close closes the file.
func (a *Anchor) Close() error { return a.file.Close() }
