package projector

import (
	"context"
	"sync"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// waiting knows who waits for what. Each waiter has a channel of its own that
// holds at most one wake.
type waiting struct {
	mu        sync.Mutex
	effects   map[events.EffectID]map[chan struct{}]struct{}
	positions map[chan struct{}]uint64 // the entry waited for
}

func (w *waiting) forEffect(id events.EffectID) (woken <-chan struct{}, leave func()) {
	ch := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.effects == nil {
		w.effects = map[events.EffectID]map[chan struct{}]struct{}{}
	}
	if w.effects[id] == nil {
		w.effects[id] = map[chan struct{}]struct{}{}
	}
	w.effects[id][ch] = struct{}{}
	return ch, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if delete(w.effects[id], ch); len(w.effects[id]) == 0 {
			delete(w.effects, id)
		}
	}
}

func (w *waiting) forEntry(seq uint64) (woken <-chan struct{}, leave func()) {
	ch := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.positions == nil {
		w.positions = map[chan struct{}]uint64{}
	}
	w.positions[ch] = seq
	return ch, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.positions, ch)
	}
}

// wake tells those who wait for an effect that entries name, or for one of the
// entries (P8). The new state is shown already.
func (w *waiting) wake(entries []events.Stored) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ch, want := range w.positions {
		if want <= entries[len(entries)-1].Seq {
			signal(ch)
		}
	}
	if len(w.effects) == 0 {
		return
	}
	for i := range entries {
		for j := range entries[i].Events {
			for _, id := range effectsOf(&entries[i].Events[j]) {
				w.wakeEffect(id)
			}
		}
	}
}

func (w *waiting) wakeEffect(id events.EffectID) {
	for ch := range w.effects[id] {
		signal(ch)
	}
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default: // it has one that it has not taken yet
	}
}

// Await waits until an effect that was seen, here or by the writer, satisfies
// done. When ctx ends before, it returns the effect as it then stands, with ctx's
// error. What it returns is never older than what was seen.
func (p *Projection) Await(ctx context.Context, seen *wire.Effect, done func(*wire.Effect) bool) (*wire.Effect, error) {
	woken, leave := p.waiting.forEffect(seen.EffectID)
	defer leave()
	for {
		v, err := p.view(seen)
		if err != nil || done(v) {
			return v, err
		}
		select {
		case <-woken:
		case <-p.done:
			return v, ErrClosed
		case <-ctx.Done():
			v, err := p.view(seen)
			if err == nil && !done(v) {
				err = ctx.Err()
			}
			return v, err
		}
	}
}

// view shows an effect at ledger time, as it was seen until that is applied: only
// one that has left the live state since is looked up in the rows.
func (p *Projection) view(seen *wire.Effect) (*wire.Effect, error) {
	state := p.State()
	if state.Head().Last.Less(seen.Position) {
		return seen, nil
	}
	if e := state.Effect(seen.EffectID); e != nil {
		return state.View(e, p.now(state)), nil
	}
	c, err := p.collected(state, seen.EffectID)
	if err != nil || c == nil {
		return seen, err
	}
	return state.CollectedView(c), nil
}

// AwaitPosition waits until the entry of a position is applied.
func (p *Projection) AwaitPosition(ctx context.Context, at events.Position) error {
	if p.State().Seq() >= at.Seq {
		return nil
	}
	woken, leave := p.waiting.forEntry(at.Seq)
	defer leave()
	if p.State().Seq() >= at.Seq {
		return nil
	}
	select {
	case <-woken:
		return nil
	case <-p.done:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}
