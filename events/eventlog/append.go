package eventlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/effectd/effectd/events"
)

// Append implements [Log].
func (s *Stream) Append(ctx context.Context, e events.Stored) error {
	if e.Seq == 0 || len(e.Events) == 0 || len(e.Body) == 0 {
		return fmt.Errorf("append: %w: the entry is not sealed", ErrUnavailable)
	}
	select {
	case s.appending <- struct{}{}:
		defer func() { <-s.appending }()
	case <-ctx.Done():
		return fmt.Errorf("append %d: %w: %w", e.Seq, ErrUnavailable, ctx.Err())
	}
	if s.tail.seq != 0 && s.tail.seq == e.Seq-1 && s.tail.sha256 != e.Prev {
		return fmt.Errorf("append %d: %w: it does not follow the entry before it", e.Seq, ErrUnavailable)
	}
	a := appending{s: s, entry: e}
	if err := a.settle(ctx); err != nil {
		return fmt.Errorf("append %d: %w", e.Seq, err)
	}
	s.opener.cache.put(e)
	if err := a.run(ctx); err != nil {
		return fmt.Errorf("append %d: %w", e.Seq, err)
	}
	return nil
}

// appending is one append until it is resolved or given up.
type appending struct {
	s     *Stream
	entry events.Stored

	sent    bool  // an attempt was sent whose fate is not known
	cause   error // why the last attempt did not resolve it
	strange int   // times in a row that answers and log contradicted each other
}

// On one replica, answers and log cannot contradict each other twice without
// damage. In a cluster they can while leadership moves, for some seconds.
func (a *appending) tolerated() int {
	if a.s.at.Replicas <= 1 {
		return 1
	}
	return 120 // at up to 250 ms each
}

// settle lets go of an earlier append that was left unresolved, or refuses to
// publish beside it (L4).
func (a *appending) settle(ctx context.Context) error {
	p := a.s.pending
	switch {
	case p == nil:
		return nil
	case p.Seq == a.entry.Seq && bytes.Equal(p.Body, a.entry.Body):
		a.sent = true
		return nil
	case p.Seq < a.entry.Seq:
		// Whatever the log does with the new entry: it can be stored only where
		// the sequence of the pending one is taken already.
		a.s.pending = nil
		return nil
	}
	if found, err := a.s.look(ctx, *p); err != nil || found != mine && found != other {
		return fmt.Errorf("%w: an earlier append is unresolved", ErrAppendUnknown)
	}
	a.s.pending = nil
	return nil
}

func (a *appending) run(ctx context.Context) error {
	for n := 0; ; n++ {
		if n > 0 && pause(ctx, n) != nil || ctx.Err() != nil {
			return a.giveUp(ctx.Err())
		}
		if a.s.nc.IsClosed() {
			return a.giveUp(ErrClosed)
		}
		resolved, err := a.round(ctx)
		if resolved {
			return a.resolve(err)
		}
	}
}

// because notes why the append is not resolved yet. That the time is up is not
// why.
func (a *appending) because(ctx context.Context, err error) {
	if ctx.Err() == nil || a.cause == nil {
		a.cause = err
	}
}

// giveUp ends an append that nothing resolved in time. What it says of the
// cause is for people: with it in the chain, an unknown append would pass for
// one of the sentinels that mean not stored.
func (a *appending) giveUp(err error) error {
	if a.cause != nil {
		err = fmt.Errorf("%w: last attempt: %s", err, a.cause.Error())
	}
	if !a.sent {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	a.s.pending = &a.entry
	return fmt.Errorf("%w: %s", ErrAppendUnknown, err.Error())
}

func (a *appending) resolve(err error) error {
	a.s.pending = nil
	if err == nil {
		a.s.tail = tip{a.entry.Seq, a.entry.SHA256}
	}
	return err
}

// round makes one attempt and reports whether it resolved the append.
func (a *appending) round(ctx context.Context) (resolved bool, err error) {
	// After a new connection the server may be one that restarted on damaged
	// files, cut the log and numbers on: the expectation alone would not see it.
	reconnects := a.s.nc.Stats().Reconnects
	if reconnects != a.s.verified || a.sent {
		if resolved, free, err := a.inspect(ctx); resolved || !free {
			return resolved, err
		}
		a.s.verified = reconnects
	}
	answer, err := a.s.offer(ctx, a.entry)
	switch answer {
	case stored:
		return true, nil
	case refused:
		if !a.sent {
			return true, err
		}
	case silent:
		a.sent = true
	case broken:
		return true, err
	case unsent, wrongSequence:
	}
	a.because(ctx, err)
	resolved, free, err := a.inspect(ctx)
	if resolved {
		return true, err
	}
	if answer == wrongSequence && free {
		// The server says that its last sequence is another one, but the log ends
		// right before the entry.
		return a.contradiction(a.entry.Seq, "the log counts it but does not deliver it")
	}
	if free {
		a.strange = 0
	}
	return false, nil
}

// inspect looks whether the log resolves the append. free: it ends with the
// entry before, so that the entry may be sent (again).
func (a *appending) inspect(ctx context.Context) (resolved, free bool, err error) {
	found, err := a.s.look(ctx, a.entry)
	var d *Distrust
	switch {
	case errors.As(err, &d):
		return true, false, err
	case err != nil:
		a.because(ctx, err)
		return false, false, nil
	}
	switch found {
	case mine:
		return true, false, nil
	case other:
		return true, false, ErrConflict
	case forked:
		return true, false, distrust(a.entry.Seq-1, "it is not the entry that was there before")
	case behind:
		resolved, err = a.contradiction(a.entry.Seq-1, "missing")
		// A replica may only be late: in a cluster the expectation decides.
		return resolved, a.s.at.Replicas > 1, err
	}
	return false, true, nil
}

// contradiction counts what damage explains, and a cluster in motion too.
func (a *appending) contradiction(seq uint64, reason string) (bool, error) {
	if a.strange++; a.strange <= a.tolerated() {
		return false, nil
	}
	return true, distrust(seq, "%s", reason)
}

// sight is what stands in the log where an entry should be appended.
type sight int

const (
	free   sight = iota // the entry before is the last
	mine                // these very bytes
	other               // other bytes
	behind              // the entry before is not there
	forked              // the entry before is another one
)

// look reads the place of e and the one before it.
func (s *Stream) look(ctx context.Context, e events.Stored) (sight, error) {
	first, n := e.Seq, 1
	if e.Seq > 1 {
		first, n = e.Seq-1, 2
	}
	b, err := s.fetch(ctx, first, n)
	if err != nil {
		return free, err
	}
	before := e.Seq == 1
	for _, m := range b.msgs {
		switch {
		case m.seq == e.Seq && bytes.Equal(m.body, e.Body):
			return mine, nil
		case m.seq == e.Seq:
			return other, nil
		case m.seq == e.Seq-1 && events.DigestBytes(m.body) != e.Prev:
			return forked, nil
		case m.seq == e.Seq-1:
			before = true
		}
	}
	if !before {
		return behind, nil
	}
	return free, nil
}
