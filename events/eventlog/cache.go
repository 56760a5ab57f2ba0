package eventlog

import (
	"sync"

	"github.com/effectd/effectd/events"
)

const (
	cacheEntries = 256
	cacheBytes   = 8 << 20 // of bodies; decoded they take a few times that
)

// cache keeps the entries seen last by the digest of their bytes, so that the
// writer, the projector and the dispatcher of one process decode an entry once.
// What it returns was decoded from bytes with this very digest.
type cache struct {
	mu    sync.Mutex
	known map[events.Digest]events.Stored
	order []events.Digest // oldest first
	bytes int
}

func newCache() *cache { return &cache{known: make(map[events.Digest]events.Stored)} }

func (c *cache) get(sum events.Digest) (events.Stored, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.known[sum]
	return s, ok
}

func (c *cache) put(s events.Stored) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.known[s.SHA256]; ok || len(s.Body) > cacheBytes {
		return
	}
	for len(c.order) > 0 && (len(c.order) >= cacheEntries || c.bytes+len(s.Body) > cacheBytes) {
		oldest := c.order[0]
		c.order = c.order[1:]
		c.bytes -= len(c.known[oldest].Body)
		delete(c.known, oldest)
	}
	c.known[s.SHA256] = s
	c.order = append(c.order, s.SHA256)
	c.bytes += len(s.Body)
}
