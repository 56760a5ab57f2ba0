package projector

import (
	"context"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// Bounds of a page.
const (
	defaultPage = 50
	maxPage     = 500
	pageBytes   = 512 << 10 // of the effects' events: a reply must fit a message
	pageScan    = 10_000    // effects looked at; then the page ends, with a cursor
)

// list answers effect.list: what the caller may see, newest first. A page may be
// short, even empty, and still have a cursor.
func (q *Queries) list(ctx context.Context, c aggregate.Caller, r wire.ListRequest) (any, *wire.Error) {
	limit, refusal := pageLimit(r.Limit, defaultPage)
	if refusal != nil {
		return nil, refusal
	}
	f, refusal := filterOf(c, r)
	if refusal != nil {
		return nil, refusal
	}
	before, refusal := f.resume(r.Cursor)
	if refusal != nil {
		return nil, refusal
	}
	if refusal := q.reach(ctx, r.MinPosition, 0); refusal != nil {
		return nil, refusal
	}
	if _, known := q.projection.State().User(c.Actor()); !known {
		return nil, wire.NotInTable()
	}
	var out *page[*wire.Effect]
	refusal = q.walk(&f, before, func(s *aggregate.State) func(events.EffectID) bool {
		at := q.projection.now(s)
		out = newPage(s, &f, limit, func(e *aggregate.Effect) (*wire.Effect, int64) {
			v := s.View(e, at)
			if !f.matches(e, v.State) || !s.MaySee(c, e) {
				return nil, 0
			}
			return v, e.Size
		})
		return out.take
	})
	if refusal != nil {
		return nil, refusal
	}
	return &out.List, nil
}

func pageLimit(asked int64, otherwise int) (int, *wire.Error) {
	switch {
	case asked == 0:
		return otherwise, nil
	case asked > maxPage:
		return 0, wire.FieldError(wire.InvalidRequest, "limit", "want an integer in 1 to 500")
	}
	return int(asked), nil
}

// walk shows the effects that a filter may match, newest first, to what begin
// returns, until that returns false.
func (q *Queries) walk(f *filter, before events.EffectID, begin func(*aggregate.State) func(events.EffectID) bool) *wire.Error {
	err := q.projection.snapshot(func(s snapshot) error {
		return newest(s.rows, f.spans(before), begin(s.state))
	})
	if err != nil && q.projection.Fault() != nil { // in memory, then
		s := q.projection.State()
		newestLive(s, before, begin(s))
		err = nil
	}
	if err != nil {
		return unreadable(err)
	}
	return nil
}

// page is a list being filled.
type page[T comparable] struct {
	wire.List[T]
	filter  *filter
	limit   int
	state   *aggregate.State
	show    func(*aggregate.Effect) (item T, size int64) // the zero item does not belong on the page
	scanned int
	bytes   int64
	last    events.EffectID // looked at, and on the page if it belongs there
}

func newPage[T comparable](s *aggregate.State, f *filter, limit int, show func(*aggregate.Effect) (T, int64)) *page[T] {
	return &page[T]{List: wire.List[T]{Position: s.Head().Last}, filter: f, limit: limit, state: s, show: show}
}

// take looks at the next effect, and returns false when the page is full.
func (p *page[T]) take(id events.EffectID) bool {
	if p.scanned++; p.scanned > pageScan {
		p.Cursor = p.filter.cursor(p.last)
		return false
	}
	var item, none T
	var size int64
	if e := p.state.Effect(id); e != nil {
		item, size = p.show(e)
	}
	if item != none && len(p.Items) > 0 && (len(p.Items) == p.limit || p.bytes+size > pageBytes) {
		p.Cursor = p.filter.cursor(p.last)
		return false
	}
	p.last = id
	if item != none {
		p.Items = append(p.Items, item)
		p.bytes += size
	}
	return true
}
