package eventlog

import (
	"context"

	"github.com/effectd/effectd/events"
)

// memoryConsumer is what a durable consumer remembers: next was never
// delivered, waiting was and is not acknowledged.
type memoryConsumer struct {
	next    uint64
	waiting map[uint64]uint64 // sequence to deliveries so far
}

// Deliveries implements [Log]. Opening it again delivers again what was not
// acknowledged.
func (m *Memory) Deliveries(_ context.Context, durable string, from uint64) (Deliveries, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.durable[durable]
	if c == nil {
		c = &memoryConsumer{next: max(from, 1), waiting: make(map[uint64]uint64)}
		m.durable[durable] = c
	}
	d := &memoryDeliveries{m: m, c: c}
	for seq := range c.waiting {
		d.again = append(d.again, seq)
	}
	return d, nil
}

type memoryDeliveries struct {
	m       *Memory
	c       *memoryConsumer
	again   []uint64
	stopped bool
}

// Next implements [Deliveries].
func (d *memoryDeliveries) Next(ctx context.Context) (Delivery, error) {
	defer context.AfterFunc(ctx, d.m.wake)()
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	for {
		switch {
		case ctx.Err() != nil:
			return Delivery{}, ctx.Err()
		case d.stopped:
			return Delivery{}, ErrClosed
		}
		if seq, ok := d.take(); ok {
			d.c.waiting[seq]++
			s, err := d.m.opener.open(message{seq, d.m.bodies[seq-1]})
			return d.delivery(s, seq), err
		}
		d.m.grown.Wait()
	}
}

// take picks the next sequence to deliver, skipping holes as a consumer does.
func (d *memoryDeliveries) take() (uint64, bool) {
	if n := len(d.again); n > 0 {
		seq := d.again[n-1]
		d.again = d.again[:n-1]
		return seq, true
	}
	for d.c.next <= uint64(len(d.m.bodies)) {
		seq := d.c.next
		d.c.next++
		if d.m.bodies[seq-1] != nil {
			return seq, true
		}
	}
	return 0, false
}

func (d *memoryDeliveries) delivery(s events.Stored, seq uint64) Delivery {
	return Delivery{Stored: s, Times: d.c.waiting[seq], ack: func() error {
		d.m.mu.Lock()
		defer d.m.mu.Unlock()
		delete(d.c.waiting, seq)
		return nil
	}}
}

// Stop implements [Deliveries].
func (d *memoryDeliveries) Stop() {
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	d.stopped = true
	d.m.grown.Broadcast()
}
