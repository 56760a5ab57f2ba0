package ledger

import (
	"context"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/events/wire"
)

// approve issues the permit that a signed statement asks for.
func (e *Endpoints) approve(ctx context.Context, c aggregate.Caller, r wire.ApprovalRequest) (any, *wire.Error) {
	return e.answer(ctx, c, aggregate.Approve{Caller: c, EffectID: r.EffectID, Signed: signed(r)})
}

// deny ends an effect that waits for approval.
func (e *Endpoints) deny(ctx context.Context, c aggregate.Caller, r wire.ApprovalRequest) (any, *wire.Error) {
	return e.answer(ctx, c, aggregate.Deny{Caller: c, EffectID: r.EffectID, Signed: signed(r)})
}

func signed(r wire.ApprovalRequest) policy.Signed {
	return policy.Signed{Statement: r.Statement, Signature: r.Signature, PublicKey: r.PublicKey}
}

func (e *Endpoints) revoke(ctx context.Context, c aggregate.Caller, r wire.EffectReasonRequest) (any, *wire.Error) {
	return e.answer(ctx, c, aggregate.Revoke{Caller: c, EffectID: r.EffectID, Reason: r.Reason})
}
