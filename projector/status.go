package projector

import (
	"context"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events/wire"
)

// status answers ledger.status. Effects are counted in the caller's tenant, by
// the state that the log has recorded; usage is the whole ledger's.
func (q *Queries) status(_ context.Context, c aggregate.Caller, _ wire.EmptyRequest) (any, *wire.Error) {
	state := q.projection.State()
	if _, known := state.User(c.Actor()); !known {
		return nil, wire.NotInTable()
	}
	head, standing := state.Head(), q.node.Standing()
	_, _, revision := state.Policy()
	out := &wire.Status{
		LedgerID: head.LedgerID, Stream: wire.LogStream, StoreFingerprint: head.Fingerprint, Position: head.Last, Seq: head.Seq,
		Trusted: standing.Trusted, Reason: standing.Reason, ClockTrusted: standing.ClockTrusted, Dispatching: standing.Dispatching,
		Node: standing.Node, Program: standing.Program, PolicyRevision: revision, Limits: head.Limits,
		Usage:   wire.Usage{EffectRecords: int64(state.EffectCount()), LiveBytes: head.LiveBytes, LogBytes: standing.LogBytes},
		Effects: map[wire.State]int64{}, Intake: standing.Intake, Time: q.projection.now(state),
	}
	state.EachEffect(func(e *aggregate.Effect) bool {
		if e.Tenant == c.Tenant {
			out.Effects[e.State]++
		}
		return true
	})
	return out, nil
}
