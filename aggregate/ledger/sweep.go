package ledger

import (
	"context"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
)

// sweepLimit bounds the effects that one sweep touches, so that fan-out ends
// never hold up other commands.
const sweepLimit = 32

// Sweep records, until ctx ends, what ledger time or a change of law has made
// due: expiries, lost dispatchers, interrupted attempts, ended authority.
func (l *Ledger) Sweep(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	rechecked := int64(-1) // every start rechecks once
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for l.sweepOnce(ctx, &rechecked) {
		}
	}
}

// sweepOnce reports whether more is due at once.
func (l *Ledger) sweepOnce(ctx context.Context, rechecked *int64) bool {
	state := l.State()
	now, trusted := l.Now()
	due := state.NextDue()
	retractions := state.Head().Retractions
	overdue := due != 0 && due <= now
	if !trusted || l.Distrusted() != "" || !overdue && *rechecked == retractions {
		return false
	}
	next := events.EffectID("")
	for {
		o, err := l.Do(ctx, events.SystemActor, aggregate.Sweep{Limit: sweepLimit, Recheck: *rechecked != retractions, From: next})
		if err != nil {
			return false
		}
		if next = o.Next; next == "" {
			break
		}
	}
	*rechecked = retractions
	return l.State().NextDue() != 0 && l.State().NextDue() <= now
}
