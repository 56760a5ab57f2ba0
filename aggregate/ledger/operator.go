package ledger

import (
	"context"

	"github.com/go-json-experiment/json"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// settle records an outcome that an operator states, with the whole document that
// is its evidence.
func (e *Endpoints) settle(ctx context.Context, c aggregate.Caller, r wire.SettleRequest) (any, *wire.Error) {
	evidence, refusal := evidenceOf(r.Evidence)
	if refusal != nil {
		return nil, refusal
	}
	cmd := aggregate.SettleByOperator{Caller: c, EffectID: r.EffectID, Outcome: r.Outcome, Evidence: evidence}
	if r.Statement != "" || r.Signature != "" || r.PublicKey != "" {
		cmd.Signed = &policy.Signed{Statement: r.Statement, Signature: r.Signature, PublicKey: r.PublicKey}
	}
	return e.answer(ctx, c, cmd)
}

// evidenceOf checks the document that an operator brings: it says where the
// outcome is known from.
func evidenceOf(document events.Raw) (events.Evidence, *wire.Error) {
	var says struct {
		Who       string `json:"who"`
		Source    string `json:"source"`
		Reference string `json:"reference"`
	}
	if err := json.Unmarshal(document, &says); err != nil {
		return events.Evidence{}, wire.FieldError(wire.InvalidRequest, "evidence", "who, source and reference are texts")
	}
	if says.Source == "" && says.Reference == "" {
		return events.Evidence{}, wire.FieldError(wire.InvalidRequest, "evidence", "it names no source and no reference: where is the outcome known from?")
	}
	return events.Evidence{Named: document, Reference: says.Reference}, nil
}

// acknowledge accepts the risk of an unknown effect.
func (e *Endpoints) acknowledge(ctx context.Context, c aggregate.Caller, r wire.EffectReasonRequest) (any, *wire.Error) {
	if r.Reason == "" {
		return nil, wire.FieldError(wire.InvalidRequest, "reason", "it is required: why the risk is accepted")
	}
	return e.answer(ctx, c, aggregate.Acknowledge{Caller: c, EffectID: r.EffectID, Reason: r.Reason})
}
