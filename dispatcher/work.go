package dispatcher

import (
	"sync"

	"github.com/effectd/effectd/events"
)

// work is the set of admitted effects that this process has still to claim or
// to see claimed, in one line per operation.
type work struct {
	mu    sync.Mutex
	known map[events.EffectID]bool // in a line, or running
	lines map[events.OperationName]*line
	// start is called, without the lock, for an effect that got a slot.
	start func(task)
	held  bool // no slots are given any more
}

// task is one effect to dispatch.
type task struct {
	id        events.EffectID
	operation events.OperationName
	slots     int
}

// line is the waiting effects of one operation and its running sends.
type line struct {
	waiting []task
	running int
}

func newWork(start func(task)) *work {
	return &work{known: map[events.EffectID]bool{}, lines: map[events.OperationName]*line{}, start: start}
}

// add puts an effect in its line, once.
func (w *work) add(t task) {
	w.mu.Lock()
	if w.known[t.id] {
		w.mu.Unlock()
		return
	}
	w.known[t.id] = true
	l := w.lines[t.operation]
	if l == nil {
		l = &line{}
		w.lines[t.operation] = l
	}
	l.waiting = append(l.waiting, t)
	w.mu.Unlock()
	w.fill(t.operation)
}

// done frees the slot of an effect that is settled, unknown, or another's.
func (w *work) done(t task) {
	w.mu.Lock()
	delete(w.known, t.id)
	w.lines[t.operation].running--
	w.mu.Unlock()
	w.fill(t.operation)
}

// fill gives free slots to waiting effects.
func (w *work) fill(o events.OperationName) {
	for {
		w.mu.Lock()
		l := w.lines[o]
		if w.held || l == nil || len(l.waiting) == 0 || l.running >= l.waiting[0].slots {
			w.mu.Unlock()
			return
		}
		t := l.waiting[0]
		l.waiting = l.waiting[1:]
		l.running++
		w.mu.Unlock()
		w.start(t)
	}
}

// hold gives no slots any more.
func (w *work) hold() {
	w.mu.Lock()
	w.held = true
	w.mu.Unlock()
}
