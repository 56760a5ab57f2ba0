package aggregate

import (
	"time"

	"github.com/effectd/effectd/aggregate/operation"
	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// decide binds one effect exactly, asks the owner's policy for its permit and,
// with Admit, admits it.
func (c Prepare) decide(t *turn) *wire.Error {
	user, refusal := t.user(c.Caller, events.RoleProducer)
	if refusal != nil {
		return refusal
	}
	r := &c.Request
	if known := t.s.Causal(c.Tenant, *r.RunID, *r.CausalID); known != nil {
		return c.repeat(t, known)
	}
	if refusal := t.runTakes(c.Caller, *r.RunID); refusal != nil {
		return refusal
	}
	chain, refusal := t.heldTask(c.Caller, r.TaskID)
	if refusal != nil {
		return refusal
	}
	prepared, refusal := c.bind(t, user, chain)
	if refusal != nil {
		return refusal
	}
	return c.record(t, user, chain, prepared)
}

// repeat answers a request whose run and causal id are known.
func (c Prepare) repeat(t *turn, known *Causal) *wire.Error {
	if known.Principal != c.Principal {
		return wire.NoSuchRun()
	}
	if known.RequestSHA256 != c.RequestSHA256 {
		return wire.FieldError(wire.BindingMismatch, "causal_id", "run_id and causal_id name another request")
	}
	t.d.EffectID, t.d.Repeat = known.EffectID, true
	e := t.s.Effect(known.EffectID)
	if e == nil || !c.Admit {
		return nil
	}
	if t.d.Frozen = !sealedEqual(&e.Prepared.Context, c.Request.SealedContext); t.d.Frozen {
		return nil
	}
	switch e = t.lapse(e); e.State {
	case wire.StateRefused:
		return RefusalError(e.Refused.Reason)
	case wire.StatePermitted:
		return t.admit(e)
	}
	return nil
}

// runTakes checks that a run may get another effect from the caller.
func (t *turn) runTakes(c Caller, id events.RunID) *wire.Error {
	run := t.s.Run(c.Tenant, id)
	switch {
	case run == nil:
		return nil
	case run.Principal != c.Principal:
		return wire.NoSuchRun()
	case run.Cancelled:
		return wire.FieldError(wire.RunCancelled, "run_id", "the run was cancelled")
	case run.Outcome != "":
		return wire.FieldError(wire.RunFinished, "run_id", "the run has its outcome")
	}
	return nil
}

// heldTask is the ancestry of a task that the caller may use now.
func (t *turn) heldTask(c Caller, id events.TaskID) ([]*Task, *wire.Error) {
	chain := t.s.ancestry(c.Tenant, id)
	if len(chain) == 0 || !chain[0].Holds(c.Actor()) {
		return nil, wire.NoSuchTask("task_id")
	}
	return chain, t.alive(chain, "task_id")
}

// alive refuses a task that gives no authority any more.
func (t *turn) alive(chain []*Task, field string) *wire.Error {
	switch t.s.taskEnded(chain, t.in.At) {
	case events.ReasonTaskClosed:
		return wire.FieldError(wire.TaskClosed, field, "the task, or an ancestor of it, is closed")
	case events.ReasonExpired:
		return wire.FieldError(wire.Expired, field, "the task, or an ancestor of it, is expired")
	}
	return nil
}

// taskEnded says why a task gives no authority any more; empty if it does.
func (s *State) taskEnded(chain []*Task, at events.Instant) events.Reason {
	for _, task := range chain {
		if task.Closed != nil {
			return events.ReasonTaskClosed
		}
	}
	for _, task := range chain {
		if at >= task.ExpiresAt {
			return events.ReasonExpired
		}
	}
	return ""
}

// bind builds the exact binding, or says which field of the request forbids it.
func (c Prepare) bind(t *turn, user events.User, chain []*Task) (*events.Prepared, *wire.Error) {
	r := &c.Request
	op := t.s.Operation(r.Operation, r.Version)
	switch {
	case op == nil && len(t.s.law.versions[r.Operation]) > 0 && r.Version == 0:
		return nil, wire.FieldError(wire.OperationRetired, "operation", "every version of the operation is retired")
	case op == nil:
		return nil, wire.FieldError(wire.UnknownOperation, "operation", "no such operation or version is registered")
	case op.Retired:
		return nil, wire.FieldError(wire.OperationRetired, "operation", "the operation version is retired")
	}
	contract := op.Contract
	if contract.Payload == operation.PayloadProtected {
		return nil, wire.FieldError(wire.Unsupported, "operation", "protected payloads are not served by this program")
	}
	if err := contract.Validate(c.Payload); err != nil {
		return nil, wire.FieldError(wire.InputSchemaViolation, "payload", err.Error())
	}
	if err := contract.CheckPrecondition(r.Precondition); err != nil {
		return nil, wire.FieldError(wire.PreconditionUnsupported, "precondition", err.Error())
	}
	resource, err := contract.Resource(c.Payload)
	if err != nil {
		return nil, wire.FieldError(wire.InputSchemaViolation, "payload", "the resource cannot be computed: "+err.Error())
	}
	bound, err := contract.Bound(c.Payload)
	if err != nil {
		return nil, wire.FieldError(wire.CostUnbounded, "payload", err.Error())
	}
	if r.MaxCost != nil {
		for _, u := range sortedUnits(bound) {
			if bound[u] > r.MaxCost[u] {
				return nil, wire.FieldError(wire.BudgetExceeded, "max_cost."+string(u), "the bound of the operation is higher")
			}
		}
	}
	expires := c.expiry(t, contract.Lifetime(r.Precondition != nil), chain)
	if expires <= t.in.At {
		return nil, wire.FieldError(wire.Expired, "expires_at", "it is not in the future of ledger time")
	}
	ctx := sealContext(user, r.SealedContext)
	id := events.EffectID(t.id())
	payloadSHA256 := events.DigestBytes(r.Payload)
	binding := events.Binding{
		V: events.Format, EffectID: id,
		Operation: contract.Name, OperationVersion: contract.Version, OperationDigest: contract.Digest, Adapter: contract.Adapter(),
		PayloadSHA256: payloadSHA256, Resource: resource, Precondition: r.Precondition,
		ContextSHA256: events.DigestOf(&ctx), TaskID: r.TaskID, MaxCost: bound, ExpiresAt: expires,
		PolicyRevision: t.s.law.revision, IdempotencyKey: idempotencyKey(t.s.head.LedgerID, id, payloadSHA256),
	}
	onPermit := events.OnPermitHold
	if c.Admit {
		onPermit = events.OnPermitAdmit
	}
	return &events.Prepared{Binding: binding, BindingDigest: events.DigestOf(&binding), RequestSHA256: c.RequestSHA256,
		Context: ctx, Payload: r.Payload, OnPermit: onPermit}, nil
}

// expiry is the earliest of what the request, the contract and the tasks allow.
func (c Prepare) expiry(t *turn, longest time.Duration, chain []*Task) events.Instant {
	at := t.in.At.Add(longest)
	if c.ExpiresAt != 0 {
		at = min(at, c.ExpiresAt)
	}
	for _, task := range chain {
		at = min(at, task.ExpiresAt)
	}
	return at
}

// record appends what policy makes of the binding.
func (c Prepare) record(t *turn, user events.User, chain []*Task, p *events.Prepared) *wire.Error {
	about := &Effect{ID: p.Binding.EffectID, Tenant: c.Tenant, Principal: c.Principal, Prepared: p}
	permit, asks := t.policyPermit(user, about, chain)
	prepared, permitted := t.compose(subject{actor: c.Actor(), effect: about}, *p), composed{}
	if permit != nil {
		permitted = t.compose(subject{actor: events.SystemActor, effect: about}, events.Permitted{Permit: *permit})
	}
	if refusal := t.roomFor(about, max(len(prepared.encoded), len(permitted.encoded)), asks); refusal != nil {
		return refusal
	}
	t.push(prepared)
	e := t.s.Effect(about.ID)
	t.d.EffectID = e.ID
	switch {
	case asks != nil:
		return nil
	case permit == nil:
		t.about(e, events.SystemActor, events.Refused{Reason: events.ReasonPolicyDenied})
		if c.Admit {
			return RefusalError(events.ReasonPolicyDenied)
		}
		return nil
	}
	t.push(permitted)
	if c.Admit {
		return t.consume(t.s.Effect(e.ID)) // all else that admission wants was checked just now
	}
	return nil
}

// roomFor checks limits and quotas before a record comes to be. Nothing live is
// ever removed to make room.
func (t *turn) roomFor(e *Effect, encoded int, asks *policy.Request) *wire.Error {
	limits, live := t.s.head.Limits, t.s.head.LiveBytes
	largest := int64(encoded)
	if asks != nil { // the approval to come quotes the request, and a statement within a string
		statement := t.s.statementAbout(e, policy.DecisionApprove, "", 0).Text()
		largest = max(largest, int64(len(asks.JSON())+2*len(statement)+4096))
	}
	switch {
	case t.exceeds(largest):
		return wire.FieldError(wire.RecordTooLarge, "payload", "the encoded record exceeds the limit of the ledger")
	case limits.EffectRecords > 0 && int64(t.s.effects.Len()) >= limits.EffectRecords:
		return wire.Errorf(wire.CapacityExhausted, "the ledger holds its maximum of effect records")
	case limits.LiveBytes > 0 && live+largest > limits.LiveBytes:
		return wire.Errorf(wire.CapacityExhausted, "the ledger holds its maximum of live effect bytes")
	}
	held, _ := t.s.prepared.Get(string(e.Actor()))
	if limits.PreparedPerPrincipal > 0 && held >= limits.PreparedPerPrincipal {
		return wire.Errorf(wire.QuotaExceeded, "the principal holds its maximum of prepared effects")
	}
	return nil
}

// sealContext joins identity from the logged table with provenance from the
// request.
func sealContext(u events.User, c wire.SealedContext) events.Context {
	ctx := events.Context{V: events.Format, Tenant: u.Tenant, Principal: u.Principal,
		Auth: events.Auth{Source: "nkey", Strength: "signature"}, RunID: *c.RunID, CausalID: *c.CausalID}
	for _, f := range []struct {
		to   *string
		from *string
	}{{&ctx.Service, c.Service}, {&ctx.Session, c.Session}, {&ctx.Process, c.Process}, {&ctx.HostBinding, c.HostBinding}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	return ctx
}

// sealedEqual reports whether every sealed field stands in the request, equal;
// absent differs from present.
func sealedEqual(ctx *events.Context, c wire.SealedContext) bool {
	same := func(sealed string, given *string) bool {
		return given == nil && sealed == "" || given != nil && sealed != "" && *given == sealed
	}
	return c.RunID != nil && *c.RunID == ctx.RunID && c.CausalID != nil && *c.CausalID == ctx.CausalID &&
		same(ctx.Service, c.Service) && same(ctx.Session, c.Session) && same(ctx.Process, c.Process) && same(ctx.HostBinding, c.HostBinding)
}

// idempotencyKey is derived from the effect, not from equal arguments.
func idempotencyKey(l events.LedgerID, id events.EffectID, payload events.Digest) events.IdempotencyKey {
	return events.IdempotencyKey("ek_" + string(events.DigestOf(struct {
		V             int             `json:"v"`
		LedgerID      events.LedgerID `json:"ledger_id"`
		EffectID      events.EffectID `json:"effect_id"`
		PayloadSHA256 events.Digest   `json:"payload_sha256"`
	}{events.Format, l, id, payload})))
}
