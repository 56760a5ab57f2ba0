package bench

import (
	"context"
	"sync"
)

// command is records that belong into one entry.
type command struct {
	records [][]byte
	seq     uint64      // of the entry, once done
	done    chan uint64 // gets the entry's sequence once it is durable; 0 says that it never will be
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
	c.seq = <-c.done
	return c.seq > 0
}

// The bounds of an entry, as the ledger has them.
const (
	maxRecords = 256
	maxBytes   = 512 << 10
)

// next takes as many commands as fit an entry, in their order.
func (q *queue) next(envelope int) []*command {
	q.mu.Lock()
	defer q.mu.Unlock()
	records, bytes, n := 0, envelope, 0
	for _, c := range q.lines {
		records += len(c.records)
		for _, r := range c.records {
			bytes += len(r) + 1
		}
		if n > 0 && (records > maxRecords || bytes > maxBytes) {
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
		c.done <- 0
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
		for batch := b.queue.next(len(b.shape.envelope)); len(batch) > 0; batch = b.queue.next(len(b.shape.envelope)) {
			err := b.stream.append(ctx, b.entry(batch))
			for _, c := range batch {
				if err != nil {
					c.done <- 0
				} else {
					c.done <- b.stream.seq
				}
			}
			if err != nil {
				b.fail(err)
				return
			}
		}
	}
}

// entry joins the records of a batch behind an envelope.
func (b *bare) entry(batch []*command) []byte {
	size := len(b.shape.envelope)
	for _, c := range batch {
		for _, r := range c.records {
			size += len(r) + 1
		}
	}
	body := append(make([]byte, 0, size), b.shape.envelope...)
	for _, c := range batch {
		for _, r := range c.records {
			body = append(append(body, r...), ',')
		}
	}
	return body
}
