package eventlog

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// Memory is the log in memory, for tests. Its contents are gone with it.
type Memory struct {
	// Before is called before an entry is stored; an error is returned by Append
	// and nothing is stored. It may append a foreign entry itself.
	Before func(events.Stored) error
	// After is called after an entry was stored; an error is returned by Append
	// all the same, as when the acknowledgement is lost.
	After func(events.Stored) error

	opener  *opener
	created time.Time

	mu      sync.Mutex
	grown   *sync.Cond
	bodies  [][]byte // of entry i+1; nil where one is missing
	durable map[string]*memoryConsumer
}

var _ Log = (*Memory)(nil)

// NewMemory makes an empty log. An empty ledger id is learned from the first
// entry.
func NewMemory(ledger events.LedgerID, created time.Time) *Memory {
	m := &Memory{opener: newOpener(ledger), created: created.UTC(), durable: make(map[string]*memoryConsumer)}
	m.grown = sync.NewCond(&m.mu)
	return m
}

// Append implements [Log].
func (m *Memory) Append(ctx context.Context, e events.Stored) error {
	if e.Seq == 0 || len(e.Events) == 0 || len(e.Body) == 0 {
		return fmt.Errorf("append: %w: the entry is not sealed", ErrUnavailable)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("append %d: %w: %w", e.Seq, ErrUnavailable, err)
	}
	if m.Before != nil {
		if err := m.Before(e); err != nil {
			return err
		}
	}
	if err := m.store(e); err != nil {
		return fmt.Errorf("append %d: %w", e.Seq, err)
	}
	if m.After != nil {
		return m.After(e)
	}
	return nil
}

func (m *Memory) store(e events.Stored) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := uint64(len(m.bodies))
	switch {
	case e.Seq <= last && bytes.Equal(m.bodies[e.Seq-1], e.Body):
		return nil
	case e.Seq <= last && m.bodies[e.Seq-1] != nil:
		return ErrConflict
	case e.Seq <= last:
		return distrust(e.Seq, "the log counts it but does not deliver it")
	case e.Seq > last+1, last > 0 && m.bodies[last-1] == nil:
		return distrust(e.Seq-1, "missing")
	case last > 0 && events.DigestBytes(m.bodies[last-1]) != e.Prev:
		return distrust(e.Seq-1, "it is not the entry that was there before")
	}
	m.opener.cache.put(e)
	m.bodies = append(m.bodies, e.Body)
	m.grown.Broadcast()
	return nil
}

// Put appends bytes of any kind, as another writer could.
func (m *Memory) Put(body []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bodies = append(m.bodies, body)
	m.grown.Broadcast()
}

// Damage replaces the bytes of an entry; nil removes it.
func (m *Memory) Damage(seq uint64, body []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bodies[seq-1] = body
}

// Truncate cuts the log after an entry.
func (m *Memory) Truncate(last uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bodies = slices.Clone(m.bodies[:last])
}

// Read implements [Log].
func (m *Memory) Read(ctx context.Context, from uint64, limit int) ([]events.Stored, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	from = max(from, 1)
	if limit <= 0 {
		limit = fetchMessages
	}
	msgs, last := m.messages(from, limit)
	out, gap, err := m.opener.unroll(from, msgs)
	if next := from + uint64(len(out)); gap == 0 && next <= last {
		gap = next // a hole at the end
	}
	if err == nil && gap != 0 {
		err = distrust(gap, "missing")
	}
	return out, err
}

// messages gives the messages from the one before from up to last, without
// those that are missing, as a server would.
func (m *Memory) messages(from uint64, limit int) (msgs []message, last uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last = min(uint64(len(m.bodies)), from+uint64(limit)-1)
	for seq := max(from, 2) - 1; seq <= last; seq++ {
		if body := m.bodies[seq-1]; body != nil {
			msgs = append(msgs, message{seq, body})
		}
	}
	return msgs, last
}

// Last implements [Log].
func (m *Memory) Last(context.Context) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return uint64(len(m.bodies)), nil
}

// Status implements [Log].
func (m *Memory) Status(context.Context) (Status, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := Status{Stream: wire.LogStream, Created: m.created, Replicas: 1, LastSeq: uint64(len(m.bodies))}
	for i, body := range m.bodies {
		if body == nil {
			s.Deleted++
			continue
		}
		if s.FirstSeq == 0 {
			s.FirstSeq = uint64(i) + 1
		}
		s.Messages++
		s.Bytes += uint64(len(body))
	}
	return s, nil
}

// Tail implements [Log].
func (m *Memory) Tail(ctx context.Context, from uint64, prev events.Digest, fn func(events.Stored) error) error {
	next := max(from, 1)
	for {
		if err := m.await(ctx, next); err != nil {
			return err
		}
		entries, err := m.Read(ctx, next, 0)
		for _, e := range entries {
			if prev != "" {
				if err := linked(prev, e); err != nil {
					return err
				}
			}
			if err := fn(e); err != nil {
				return err
			}
			next, prev = e.Seq+1, e.SHA256
		}
		if err != nil {
			return err
		}
	}
}

// await waits until the log holds seq.
func (m *Memory) await(ctx context.Context, seq uint64) error {
	defer context.AfterFunc(ctx, m.wake)()
	m.mu.Lock()
	defer m.mu.Unlock()
	for uint64(len(m.bodies)) < seq && ctx.Err() == nil {
		m.grown.Wait()
	}
	return ctx.Err()
}

func (m *Memory) wake() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.grown.Broadcast()
}
