package ledger

import (
	"context"
	"sync"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
)

// pending is one command that waits for its decision.
type pending struct {
	who     events.Actor
	command aggregate.Command
	reply   chan Outcome // buffered: the writer never waits for a caller
	state   pendingState // guarded by the queue's mutex
}

type pendingState int

const (
	waiting pendingState = iota
	taken                // it is in an entry that is offered to the log
	gone                 // the caller left before that: it never is
)

// queue holds commands in turns between principals. The ledger's own commands go
// first: each ends or advances work that was admitted already, so that their
// number is bounded by it.
type queue struct {
	mu     sync.Mutex
	ready  chan struct{} // holds a token while commands wait
	own    []*pending
	lines  map[events.Actor][]*pending
	turns  []events.Actor // principals with waiting commands, next first
	closed bool
}

func newQueue() *queue {
	return &queue{ready: make(chan struct{}, 1), lines: map[events.Actor][]*pending{}}
}

// put adds a command; false after close.
func (q *queue) put(p *pending) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	if p.who == events.SystemActor {
		q.own = append(q.own, p)
	} else {
		if len(q.lines[p.who]) == 0 {
			q.turns = append(q.turns, p.who)
		}
		q.lines[p.who] = append(q.lines[p.who], p)
	}
	q.signal()
	return true
}

func (q *queue) signal() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// next removes the command whose turn it is; nil if none waits.
func (q *queue) next() *pending {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if p := q.pop(); p == nil || p.state != gone {
			return p
		}
	}
}

// take marks commands as offered to the log; false, and none is marked, if the
// caller of one has left.
func (q *queue) take(batch []*pending) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range batch {
		if p.state == gone {
			return false
		}
	}
	for _, p := range batch {
		p.state = taken
	}
	return true
}

// left reports whether the caller of a command has left.
func (q *queue) left(p *pending) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return p.state == gone
}

func (q *queue) pop() *pending {
	if len(q.own) > 0 {
		p := q.own[0]
		q.own = q.own[1:]
		return p
	}
	if len(q.turns) == 0 {
		return nil
	}
	who := q.turns[0]
	line := q.lines[who]
	q.turns = q.turns[1:]
	if len(line) == 1 {
		delete(q.lines, who)
	} else {
		q.lines[who] = line[1:]
		q.turns = append(q.turns, who)
	}
	return line[0]
}

// leave marks a command whose caller stopped waiting; false if it was taken.
func (q *queue) leave(p *pending) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.state == waiting {
		p.state = gone
	}
	return p.state == gone
}

// wait blocks until a command waits or ctx ends.
func (q *queue) wait(ctx context.Context) error {
	select {
	case <-q.ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// close refuses further commands and returns the ones that wait.
func (q *queue) close() []*pending {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	var left []*pending
	for p := q.next(); p != nil; p = q.next() {
		left = append(left, p)
	}
	return left
}
