package aggregate

import (
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
	"github.com/oklog/ulid/v2"
)

// Input is what decide needs from the world.
type Input struct {
	At events.Instant // ledger time
	// ID is where fresh ids start: the k-th id of the decision is ID + k.
	ID ulid.ULID
	// Seq and Index are where the first event of the decision will stand.
	Seq   uint64
	Index int
}

// Decision is what a command leads to. Events and Refusal may both be there: a
// request can end an effect and be refused.
type Decision struct {
	Events  []events.Event
	Encoded [][]byte // canonical form of each event
	Refusal *wire.Error
	// What the reply is about; the state after the events holds it.
	EffectID  events.EffectID
	AttemptID events.AttemptID
	TaskID    events.TaskID
	RunID     events.RunID
	// Repeat: the request created nothing.
	Repeat bool
	// Frozen: a repeat whose context differs from the sealed one; it advances
	// nothing, so there is nothing to wait for.
	Frozen bool
	// Claimed: this command, and no other, is the claim's winner.
	Claimed bool
	// Next is where a bounded recheck goes on; empty when it is complete.
	Next events.EffectID
	// ID is the last id used.
	ID ulid.ULID
}

// Decide decides a command on the state and evolves the state by the events it
// leads to, so that the next command is decided on what this one leaves. With
// equal state, command and input the decision is equal. No event means that the
// state is unchanged.
func (s *State) Decide(c Command, in Input) Decision {
	t := &turn{s: s, in: in}
	t.d.ID = in.ID
	t.d.Refusal = c.decide(t)
	return t.d
}

// turn is one decision being made.
type turn struct {
	s  *State
	in Input
	d  Decision
}

// id draws the next fresh id.
func (t *turn) id() string {
	for i := len(t.d.ID) - 1; i >= 6; i-- { // the 80 bits behind the time
		t.d.ID[i]++
		if t.d.ID[i] != 0 {
			break
		}
	}
	return t.d.ID.String()
}

// subject is what the common fields of an event are about.
type subject struct {
	tenant    events.Tenant
	actor     events.Actor
	effect    *Effect
	operation events.OperationName
	task      events.TaskID
	run       events.RunID
}

// emit appends an event and evolves the state by it.
func (t *turn) emit(about subject, data events.Data) {
	t.push(t.compose(about, data))
}

// composed is an event with its canonical form, not yet part of the decision.
type composed struct {
	event   events.Event
	encoded []byte
}

// compose encodes an event, so that its size can be judged before it comes to be.
func (t *turn) compose(about subject, data events.Data) composed {
	ev := t.event(about, data)
	ev.ID = events.EventID(t.id())
	return composed{ev, events.CanonicalOf(&ev)}
}

// event is what emit appends, without its id.
func (t *turn) event(about subject, data events.Data) events.Event {
	ev := events.Event{V: events.Format, Type: data.Type(), Time: t.in.At, Tenant: about.tenant, Actor: about.actor, Operation: about.operation, TaskID: about.task, RunID: about.run, Data: data}
	if e := about.effect; e != nil {
		ev.Tenant, ev.EffectID, ev.Operation, ev.TaskID = e.Tenant, e.ID, e.Operation(), e.TaskID()
		ev.RunID, ev.CausalID, ev.IntentSHA256 = e.Prepared.Context.RunID, e.Prepared.Context.CausalID, e.IntentSHA256()
	}
	if a, ok := data.(events.Admitted); ok {
		ev.IntentSHA256 = events.DigestOf(&a.Intent)
	}
	return ev
}

// size is how large the record of an event would be at most, with its envelope.
func (t *turn) size(about subject, data events.Data) int64 {
	ev := t.event(about, data)
	ev.ID, ev.Time = "00000000000000000000000000", 1<<62+1
	return int64(len(events.CanonicalOf(&ev)))
}

// exceeds reports whether a record of this size is over the limit of the ledger.
func (t *turn) exceeds(size int64) bool {
	limit := t.s.head.Limits.RecordBytes
	return limit > 0 && size > limit
}

// push makes an event part of the decision and evolves the state by it.
func (t *turn) push(c composed) {
	pos := events.Position{Seq: t.in.Seq, Index: t.in.Index + len(t.d.Events)}
	t.d.Events = append(t.d.Events, c.event)
	t.d.Encoded = append(t.d.Encoded, c.encoded)
	t.s.evolve(&c.event, pos, t.in.At, len(c.encoded))
}

// about emits an event about an effect and returns its new record.
func (t *turn) about(e *Effect, actor events.Actor, data events.Data) *Effect {
	t.emit(subject{actor: actor, effect: e}, data)
	return t.s.Effect(e.ID)
}

// user is the caller's row in the logged table, if it has one of the roles.
func (t *turn) user(c Caller, roles ...events.Role) (events.User, *wire.Error) {
	u, ok := t.s.User(c.Actor())
	if !ok {
		return u, wire.NotInTable()
	}
	for _, r := range roles {
		if u.Role == r {
			return u, nil
		}
	}
	return u, wire.Errorf(wire.Forbidden, "the role "+string(u.Role)+" may not do this")
}

// own is the caller's own effect; somebody else's does not exist for the caller.
func (t *turn) own(c Caller, id events.EffectID) (*Effect, *wire.Error) {
	e := t.s.Effect(id)
	if e == nil || e.Tenant != c.Tenant || e.Principal != c.Principal {
		return nil, wire.NoSuchEffect()
	}
	t.d.EffectID = e.ID
	return e, nil
}

// inTenant is any effect of the caller's tenant.
func (t *turn) inTenant(c Caller, id events.EffectID) (*Effect, *wire.Error) {
	e := t.s.Effect(id)
	if e == nil || e.Tenant != c.Tenant {
		return nil, wire.NoSuchEffect()
	}
	t.d.EffectID = e.ID
	return e, nil
}

// MaxReason bounds the reason that a principal gives, in bytes.
const MaxReason = 1024

func checkReason(reason string) *wire.Error {
	if len(reason) > MaxReason {
		return wire.FieldError(wire.InvalidRequest, "reason", "it is longer than 1024 bytes")
	}
	return nil
}

// RefusalError is the error that answers for an effect that ended in refused.
func RefusalError(r events.Reason) *wire.Error {
	switch r {
	case events.ReasonPolicyDenied:
		return wire.Errorf(wire.PolicyDenied, "the owner's policy does not allow it")
	case events.ReasonApprovalDenied:
		return wire.Errorf(wire.PolicyDenied, "the approver denied it")
	case events.ReasonExpired:
		return wire.Errorf(wire.Expired, "its time ended before it was admitted")
	case events.ReasonWithdrawn:
		return wire.Errorf(wire.Revoked, "its producer withdrew it")
	case events.ReasonRevoked:
		return wire.Errorf(wire.Revoked, "an operator revoked it")
	case events.ReasonTaskClosed:
		return wire.Errorf(wire.TaskClosed, "its task, or an ancestor of it, is closed")
	case events.ReasonRunCancelled:
		return wire.Errorf(wire.RunCancelled, "its run was cancelled")
	case events.ReasonOperationRetired:
		return wire.Errorf(wire.OperationRetired, "its operation version is retired")
	case events.ReasonContextMismatch:
		return wire.Errorf(wire.EffectContextMismatch, "the context differs from the sealed one")
	}
	return wire.Errorf(wire.IllegalTransition, "it ended before admission")
}

// DigestNonce is what the log holds of a claim's nonce.
func DigestNonce(nonce string) events.Digest {
	return events.DigestBytes([]byte(nonce))
}
