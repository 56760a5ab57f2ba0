package peer

import (
	"context"
	"sync"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
)

// remembered is of how many entries the fold knows the digest.
const remembered = 4096

// fold is the state of the log as this process read it.
type fold struct {
	mu     sync.Mutex
	state  *aggregate.State // never changed after it is set
	ends   [remembered]end  // of the latest entries, by sequence
	passed chan struct{}    // closed when the state moves on
}

type end struct {
	seq    uint64
	sha256 events.Digest
}

func newFold(s *aggregate.State) *fold {
	f := &fold{state: s, passed: make(chan struct{})}
	head := s.Head()
	f.ends[head.Seq%remembered] = end{head.Seq, head.SHA256}
	return f
}

// now is the state of the last entry read.
func (f *fold) now() *aggregate.State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

// apply takes the next entry. One goroutine calls it.
func (f *fold) apply(e events.Stored) error {
	next := f.now().Branch()
	if fault := aggregate.Follows(next, &e); fault != nil {
		return &eventlog.Distrust{Reason: fault.Error(), Seq: e.Seq}
	}
	next.Apply(&e)
	next.ClearTouched()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state = next
	f.ends[e.Seq%remembered] = end{e.Seq, e.SHA256}
	close(f.passed)
	f.passed = make(chan struct{})
	return nil
}

// reach waits for a state that holds entry seq. The digest of that entry is empty
// if it is too long ago.
func (f *fold) reach(ctx context.Context, seq uint64) (*aggregate.State, events.Digest, error) {
	for {
		f.mu.Lock()
		state, passed, at := f.state, f.passed, f.ends[seq%remembered]
		f.mu.Unlock()
		if state.Seq() >= seq {
			if at.seq != seq {
				at.sha256 = ""
			}
			return state, at.sha256, nil
		}
		select {
		case <-passed:
		case <-ctx.Done():
			return nil, "", context.Cause(ctx)
		}
	}
}
