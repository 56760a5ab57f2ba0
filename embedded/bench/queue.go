package bench

import (
	"context"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/effectd/effectd/events"
)

// command is events that belong into one entry.
type command struct {
	events  []events.Event
	encoded [][]byte
	bytes   int
	entry   events.Stored      // that holds them, once done
	done    chan events.Stored // gets the entry once it is durable; an empty one says that it never will be
}

// about is a command that writes events like these about another effect.
func about(effect events.EffectID, like []events.Event) *command {
	c := &command{done: make(chan events.Stored, 1)}
	for _, ev := range like {
		ev.EffectID, ev.ID, ev.Time = effect, events.EventID(ulid.Make().String()), events.InstantOf(time.Now())
		encoded := events.CanonicalOf(&ev)
		c.events, c.encoded, c.bytes = append(c.events, ev), append(c.encoded, encoded), c.bytes+len(encoded)
	}
	return c
}

// queue holds commands until the writer is free.
type queue struct {
	ready chan struct{} // holds a token while commands wait

	mu     sync.Mutex
	lines  []*command
	failed bool
}

func newQueue() queue { return queue{ready: make(chan struct{}, 1)} }

// do waits until the command is durable; false if it never will be.
func (q *queue) do(c *command) bool {
	q.mu.Lock()
	if q.failed {
		q.mu.Unlock()
		return false
	}
	q.lines = append(q.lines, c)
	q.mu.Unlock()
	select {
	case q.ready <- struct{}{}:
	default:
	}
	c.entry = <-c.done
	return c.entry.Seq > 0
}

// The bounds of an entry, as the ledger has them.
const (
	maxEvents = 256
	maxBytes  = 512 << 10
)

// next takes as many commands as fit an entry, in their order.
func (q *queue) next() []*command {
	q.mu.Lock()
	defer q.mu.Unlock()
	count, bytes, n := 0, 0, 0
	for _, c := range q.lines {
		count, bytes = count+len(c.events), bytes+c.bytes
		if n > 0 && (count > maxEvents || bytes > maxBytes) {
			break
		}
		n++
	}
	batch := q.lines[:n:n]
	q.lines = q.lines[n:]
	if len(q.lines) == 0 {
		q.lines = nil
	}
	return batch
}

// fail ends everything that waits or comes.
func (q *queue) fail() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failed = true
	for _, c := range q.lines {
		c.done <- events.Stored{}
	}
	q.lines = nil
}

// write appends one entry at a time, until ctx ends or an append fails.
func (b *bare) write(ctx context.Context) {
	defer b.queue.fail()
	for {
		select {
		case <-b.queue.ready:
		case <-ctx.Done():
			return
		}
		for batch := b.queue.next(); len(batch) > 0; batch = b.queue.next() {
			entry := b.entry(batch)
			err := b.log.Append(ctx, entry)
			if err != nil {
				b.fail(err)
				entry = events.Stored{}
			}
			b.last = entry
			for _, c := range batch {
				c.done <- entry
			}
			if err != nil {
				return
			}
		}
	}
}

// entry joins the events of a batch.
func (b *bare) entry(batch []*command) events.Stored {
	e := events.Entry{V: events.Format, LedgerID: bareLedger, Seq: b.last.Seq + 1, Prev: b.last.SHA256, Time: events.InstantOf(time.Now()), Writer: "bare"}
	var encoded [][]byte
	for _, c := range batch {
		e.Events, encoded = append(e.Events, c.events...), append(encoded, c.encoded...)
	}
	return events.SealEncoded(e, encoded)
}
