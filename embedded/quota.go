package embedded

import (
	"context"
	"sync"

	"github.com/effectd/effectd/events/wire"
	"github.com/effectd/effectd/events/wire/endpoint"
)

// quota counts the requests of each principal that are not answered yet, reads
// that wait among them: nobody takes up what all share (SPEC 12).
type quota struct {
	limit func() int64 // 0: none

	mu    sync.Mutex
	count map[endpoint.Caller]int64
}

// bound serves what stays within the quota of who asks.
func (q *quota) bound(serve endpoint.Serve) endpoint.Serve {
	return func(ctx context.Context, r endpoint.Request) (any, *wire.Error) {
		if !q.start(r.Caller) {
			return nil, wire.Errorf(wire.QuotaExceeded, "the principal has its maximum of requests in flight")
		}
		defer q.end(r.Caller)
		return serve(ctx, r)
	}
}

func (q *quota) start(who endpoint.Caller) bool {
	limit := q.limit()
	q.mu.Lock()
	defer q.mu.Unlock()
	if limit > 0 && q.count[who] >= limit {
		return false
	}
	if q.count == nil {
		q.count = map[endpoint.Caller]int64{}
	}
	q.count[who]++
	return true
}

func (q *quota) end(who endpoint.Caller) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.count[who]--; q.count[who] == 0 {
		delete(q.count, who)
	}
}
