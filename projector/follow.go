package projector

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
)

// reader gives entries of the log.
type reader interface {
	Read(ctx context.Context, from uint64, most int) ([]events.Stored, error)
}

// log is what the projection follows.
type log interface {
	reader
	Last(ctx context.Context) (uint64, error)
	Tail(ctx context.Context, from uint64, prev events.Digest, fn func(events.Stored) error) error
}

// CatchUp applies everything that the log holds, many entries to a batch. It
// calls progress, if there is one, with the entries applied and the entries of
// the log. A *[eventlog.Distrust] says that the log does not go on from what was
// applied before.
func (p *Projection) CatchUp(ctx context.Context, l log, progress func(done, total uint64)) error {
	if err := p.meets(ctx, l); err != nil {
		return err
	}
	total, err := l.Last(ctx)
	if err != nil {
		return fmt.Errorf("catch up: %w", err)
	}
	for {
		entries, readErr := l.Read(ctx, p.State().Seq()+1, 0)
		if err := p.ApplyMany(ctx, entries); err != nil {
			return err
		}
		if done := p.State().Seq(); progress != nil {
			progress(done, max(done, total))
		}
		if readErr != nil {
			return fmt.Errorf("catch up: %w", readErr)
		}
		if len(entries) == 0 {
			return nil
		}
	}
}

// meets checks that the log holds the last entry applied.
func (p *Projection) meets(ctx context.Context, l reader) error {
	head := p.State().Head()
	if head.Seq == 0 {
		return nil
	}
	entries, err := l.Read(ctx, head.Seq, 1)
	if err != nil {
		return fmt.Errorf("catch up: %w", err)
	}
	if len(entries) == 0 || entries[0].SHA256 != head.SHA256 {
		return &eventlog.Distrust{Reason: "it is not the entry that the projection applied", Seq: head.Seq}
	}
	return nil
}

// Run applies entries as they are committed. It returns nil when ctx ends, and a
// *[eventlog.Distrust] when the log is not to be trusted; what was applied can be
// read all the same.
func (p *Projection) Run(ctx context.Context, l log) error {
	ctx, cancel := context.WithCancel(ctx)
	var storing sync.WaitGroup
	storing.Go(func() { p.keepStored(ctx) })
	defer storing.Wait()
	defer cancel()
	head := p.State().Head()
	err := l.Tail(ctx, head.Seq+1, head.SHA256, func(e events.Stored) error { return p.Apply(ctx, e) })
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	p.stopped.Store(true)
	return fmt.Errorf("projector: %w", err)
}

// keepStored stores the backlog before it is full, so that nobody waits for it.
func (p *Projection) keepStored(ctx context.Context) {
	for {
		select {
		case <-p.behind:
			p.drain()
		case <-ctx.Done():
			return
		}
	}
}
