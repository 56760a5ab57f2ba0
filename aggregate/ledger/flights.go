package ledger

import (
	"sync"

	"github.com/effectd/effectd/events"
)

// flights counts the requests of each principal that are not answered yet.
type flights struct {
	mu    sync.Mutex
	count map[events.Actor]int64
}

// start counts a request; false at the limit (0: none).
func (f *flights) start(who events.Actor, limit int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if limit > 0 && f.count[who] >= limit {
		return false
	}
	if f.count == nil {
		f.count = map[events.Actor]int64{}
	}
	f.count[who]++
	return true
}

func (f *flights) end(who events.Actor) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count[who]--; f.count[who] == 0 {
		delete(f.count, who)
	}
}
