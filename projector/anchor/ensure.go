package anchor

import (
	"context"
	"fmt"
)

// round is everybody who is served by one write.
type round struct {
	mark Mark          // the latest that somebody asked for
	turn chan struct{} // holds the turn to write, once it has come to this round
	done chan struct{} // closed when the write is over
	err  error         // of the write; read after done
}

func newRound() *round { return &round{turn: make(chan struct{}, 1), done: make(chan struct{})} }

// Ensure returns nil when m or a later mark is durable. A mark of another log is
// [ErrOther]. After any other error nothing is known of m, and what was durable
// before still is; the next Ensure tries again. A cancelled ctx ends the wait,
// not a write that runs.
func (a *Anchor) Ensure(ctx context.Context, m Mark) error {
	r, err := a.join(m)
	if r == nil || err != nil {
		return err
	}
	select {
	case <-r.turn: // one of the round writes for all
		return a.serve(r, nil)
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// join enters the coming round, or returns nil when m is durable already.
func (a *Anchor) join(m Mark) (*round, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.durable.agrees(m); err != nil {
		return nil, err
	}
	if m.Seq <= a.durable.Seq {
		return nil, nil
	}
	r := a.next
	if r.mark.Seq == 0 {
		r.mark = m
	}
	if err := r.mark.agrees(m); err != nil {
		return nil, err
	}
	if m.Seq > r.mark.Seq {
		r.mark = m
	}
	return r, nil
}

// Replace makes m the mark whatever was before, also of another store or further
// back: after an operator has recovered the log (SPEC 16), and never else. Who
// waits for a mark of the log before gets [ErrOther].
func (a *Anchor) Replace(ctx context.Context, m Mark) error {
	for {
		a.mu.Lock()
		r := a.next
		a.mu.Unlock()
		select {
		case <-r.turn:
			return a.serve(r, &m)
		case <-r.done: // the turn is the next round's
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// serve ends a round whose turn the caller took: it writes the round's mark, or
// instead, and passes the turn on.
func (a *Anchor) serve(r *round, instead *Mark) error {
	a.mu.Lock()
	a.next = newRound()
	mark := r.mark
	if instead != nil {
		mark, r.err = *instead, ErrOther
	} else {
		r.err = a.durable.agrees(mark) // it may have been replaced since the round began
	}
	err := r.err
	last, slot := a.durable, a.slot
	a.mu.Unlock()
	if instead != nil || err == nil && mark.Seq > last.Seq {
		last, slot = record{Count: last.Count + 1, Mark: mark}, 1-slot
		err = a.write(slot, last)
	}
	a.mu.Lock()
	if err == nil {
		a.durable, a.slot = last, slot
	} else if r.err == nil {
		r.err = err
	}
	a.next.turn <- struct{}{}
	a.mu.Unlock()
	close(r.done)
	return err
}

// write puts a record into a slot, durably. The caller has the turn.
func (a *Anchor) write(slot int, r record) error {
	content, err := r.encode()
	if err == nil {
		_, err = a.file.WriteAt(content, int64(slot)*slotSize)
	}
	if err == nil {
		err = a.file.SyncData()
	}
	if err != nil {
		return fmt.Errorf("write anchor: %w", err)
	}
	return nil
}
