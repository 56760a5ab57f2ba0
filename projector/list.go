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
	limit := int(r.Limit)
	switch {
	case r.Limit == 0:
		limit = defaultPage
	case r.Limit > maxPage:
		return nil, wire.FieldError(wire.InvalidRequest, "limit", "want an integer in 1 to 500")
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
		return nil, notInTable()
	}
	var out *page
	err := q.projection.snapshot(ctx, func(s snapshot) error {
		out = q.page(s.state, &f, limit)
		return newest(s.rows, f.spans(before), out.take)
	})
	if err != nil && q.projection.Fault() != nil { // in memory, then
		out, err = q.page(q.projection.State(), &f, limit), nil
		newestLive(out.state, before, out.take)
	}
	if err != nil {
		return nil, unreadable(err)
	}
	return &out.List, nil
}

func (q *Queries) page(s *aggregate.State, f *filter, limit int) *page {
	return &page{List: wire.List[*wire.Effect]{Position: s.Head().Last}, filter: f, limit: limit, state: s, at: q.projection.now(s)}
}

// page is a list being filled.
type page struct {
	wire.List[*wire.Effect]
	filter  *filter
	limit   int
	state   *aggregate.State
	at      events.Instant
	scanned int
	bytes   int64
	last    events.EffectID // looked at, and on the page if it belongs there
}

// take looks at the next effect, and returns false when the page is full.
func (p *page) take(id events.EffectID) bool {
	if p.scanned++; p.scanned > pageScan {
		p.Cursor = p.filter.cursor(p.last)
		return false
	}
	v, size := p.show(id)
	if v != nil && len(p.Items) > 0 && (len(p.Items) == p.limit || p.bytes+size > pageBytes) {
		p.Cursor = p.filter.cursor(p.last)
		return false
	}
	p.last = id
	if v != nil {
		p.Items = append(p.Items, v)
		p.bytes += size
	}
	return true
}

// show is the view of an effect that belongs on the page; nil if it does not.
func (p *page) show(id events.EffectID) (*wire.Effect, int64) {
	e := p.state.Effect(id)
	if e == nil {
		return nil, 0
	}
	v := p.state.View(e, p.at)
	if !p.filter.matches(e, v.State) || !p.state.MaySee(p.filter.caller, e) {
		return nil, 0
	}
	return v, e.Size
}
