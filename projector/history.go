package projector

import (
	"context"
	"errors"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/events/wire"
)

// errMissing: the log does not hold an event where the projection has seen it.
var errMissing = errors.New("the log does not hold the event")

// history answers effect.history: every event that names the effect, oldest
// first, as the log holds it.
func (q *Queries) history(ctx context.Context, c aggregate.Caller, r wire.HistoryRequest) (any, *wire.Error) {
	if refusal := q.reach(ctx, r.MinPosition, 0); refusal != nil {
		return nil, refusal
	}
	behind, refusal := cursorPosition(r.Cursor)
	if refusal != nil {
		return nil, refusal
	}
	v, refusal := q.visible(ctx, c, r.EffectID)
	if refusal != nil {
		return nil, refusal
	}
	positions, err := q.projection.Positions(r.EffectID, behind)
	if err != nil {
		return nil, unreadable(err)
	}
	out := &wire.History{Position: v.Position}
	size := 0
	for _, at := range positions {
		if v.Position.Less(at) { // applied since: it belongs to a later answer (P4)
			break
		}
		ev, n, err := q.event(ctx, at)
		if errors.Is(err, eventlog.ErrUntrusted) {
			q.node.Distrust(err.Error())
			return nil, wire.Errorf(wire.LedgerUntrusted, err.Error())
		}
		if err != nil {
			return nil, unreadable(err)
		}
		if size += n; size > pageBytes && len(out.Items) > 0 {
			out.Cursor = out.Items[len(out.Items)-1].Position.String()
			break
		}
		out.Items = append(out.Items, wire.HistoryItem{Position: at, Event: events.CanonicalOf(ev)})
	}
	return out, nil
}

// cursorPosition reads the cursor of a history: the last position of a page.
func cursorPosition(cursor string) (events.Position, *wire.Error) {
	if cursor == "" {
		return events.Position{}, nil
	}
	at, err := events.ParsePosition(cursor)
	if err != nil {
		return at, wire.FieldError(wire.InvalidRequest, "cursor", "it does not belong to this list")
	}
	return at, nil
}

// event reads one event, and its encoded size, from the log.
func (q *Queries) event(ctx context.Context, at events.Position) (*events.Event, int, error) {
	entries, err := q.log.Read(ctx, at.Seq, 1)
	if err != nil {
		return nil, 0, err
	}
	if len(entries) == 0 || at.Index >= len(entries[0].Events) {
		return nil, 0, errMissing
	}
	return &entries[0].Events[at.Index], entries[0].Sizes[at.Index], nil
}
