package projector

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strings"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
	"github.com/oklog/ulid/v2"
)

// filter is what a list request asks for.
type filter struct {
	caller       aggregate.Caller
	state        wire.State
	operation    events.OperationName
	task         events.TaskID
	since, until events.Instant // created in [since, until); zero: no bound
}

func filterOf(c aggregate.Caller, r wire.ListRequest) (filter, *wire.Error) {
	f := filter{caller: c, state: wire.State(r.State), operation: r.Operation, task: r.TaskID}
	for _, bound := range []struct {
		field, text string
		at          *events.Instant
	}{{"since", r.Since, &f.since}, {"until", r.Until, &f.until}} {
		if bound.text == "" {
			continue
		}
		at, err := events.ParseInstant(bound.text)
		if err != nil {
			return f, wire.FieldError(wire.InvalidRequest, bound.field, err.Error())
		}
		*bound.at = at
	}
	return f, nil
}

// spans are the rows that hold every match, in the narrowest table: before is
// the cursor.
func (f *filter) spans(before events.EffectID) []span {
	tenant := f.caller.Tenant
	switch {
	case f.task != "":
		return []span{f.span(taskPrefix(tenant, f.task), before)}
	case f.state == wire.StateRefused: // these show as refused from the moment that something ended them
		return []span{f.span(statePrefix(tenant, wire.StateRefused), before), f.span(statePrefix(tenant, wire.StatePrepared), before),
			f.span(statePrefix(tenant, wire.StatePermitted), before)}
	case f.state != "":
		return []span{f.span(statePrefix(tenant, f.state), before)}
	case f.operation != "":
		return []span{f.span(operationPrefix(tenant, f.operation), before)}
	}
	return []span{f.span(createdPrefix(tenant), before)}
}

// span bounds a table by time, as exactly as ids tell it, and by the cursor.
func (f *filter) span(prefix []byte, before events.EffectID) span {
	s := span{prefix: prefix, to: string(before)}
	if f.since > 0 {
		s.from = firstID(f.since)
	}
	if f.until > 0 {
		if end := firstID(f.until.Add(time.Millisecond)); s.to == "" || end < s.to {
			s.to = end
		}
	}
	if s.to != "" && s.to < s.from {
		s.to = s.from // nothing; bounds must not cross
	}
	return s
}

// firstID is the lowest effect id of the millisecond of an instant.
func firstID(at events.Instant) string {
	var id ulid.ULID
	if id.SetTime(ulid.Timestamp(at.Time())) != nil {
		return ""
	}
	return id.String()
}

// matches decides on what the effect shows. Whether the caller may see it is
// another question.
func (f *filter) matches(e *aggregate.Effect, shown wire.State) bool {
	return (f.state == "" || shown == f.state) && (f.operation == "" || e.Operation() == f.operation) &&
		(f.task == "" || e.TaskID() == f.task) && e.CreatedAt >= f.since && (f.until == 0 || e.CreatedAt < f.until)
}

// A cursor is the last effect of a page, behind the digest of what was asked for
// and by whom: it goes on with the same question only.

func (f *filter) digest() []byte {
	times := binary.BigEndian.AppendUint64(nil, uint64(f.since))
	times = binary.BigEndian.AppendUint64(times, uint64(f.until))
	sum := events.DigestBytes(keyOf(tableCreated, string(f.caller.Tenant), string(f.caller.Principal), string(f.state),
		string(f.operation), string(f.task), string(times)))
	return []byte(sum[:16])
}

func (f *filter) cursor(last events.EffectID) string {
	return base64.RawURLEncoding.EncodeToString(append(f.digest(), last...))
}

// resume reads a cursor: the effect before which to go on.
func (f *filter) resume(cursor string) (events.EffectID, *wire.Error) {
	if cursor == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	last, ours := strings.CutPrefix(string(raw), string(f.digest()))
	if err != nil || !ours || last == "" || len(last) > math.MaxUint8 {
		return "", wire.FieldError(wire.InvalidRequest, "cursor", "it does not belong to this list")
	}
	return events.EffectID(last), nil
}
