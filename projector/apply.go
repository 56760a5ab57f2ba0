package projector

import (
	"context"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
)

// Apply folds the next entry, shows the new state and wakes who waits for it. What
// it changed is stored later. A *[eventlog.Distrust] says that the entry does not
// follow, and nothing of it is applied (P5). A store that fails is a
// [Projection.Fault], no error: the state goes on.
func (p *Projection) Apply(ctx context.Context, e events.Stored) error {
	return p.ApplyMany(ctx, []events.Stored{e})
}

// ApplyMany is [Projection.Apply] for consecutive entries. All of them are
// applied, or those before the first that does not follow.
func (p *Projection) ApplyMany(ctx context.Context, entries []events.Stored) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	full, err := p.fold(entries)
	if full {
		p.drain()
	}
	return err
}

// fold applies and shows entries, and reports whether the backlog is full: then it
// must be stored before more is folded (P9).
func (p *Projection) fold(entries []events.Stored) (full bool, err error) {
	p.applying.Lock()
	defer p.applying.Unlock()
	select {
	case <-p.done:
		return false, ErrClosed
	default:
	}
	followed, err := follow(p.base, entries)
	if len(followed) == 0 {
		return false, err
	}
	p.state.Store(p.base.Branch())
	p.waiting.wake(followed)
	p.backlog.add(followed)
	if p.backlog.due() {
		signal(p.behind)
	}
	return p.backlog.full(), err
}

// follow applies entries to a state up to the first that does not follow.
func follow(s *aggregate.State, entries []events.Stored) ([]events.Stored, error) {
	for i := range entries {
		if err := aggregate.Follows(s, &entries[i]); err != nil {
			return entries[:i], &eventlog.Distrust{Reason: err.Error(), Seq: entries[i].Seq}
		}
		s.Apply(&entries[i])
	}
	return entries, nil
}
