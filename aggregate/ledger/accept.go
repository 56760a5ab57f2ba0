package ledger

import (
	"context"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events/wire"
)

// Accept decides a submitted effect for who will not wait for more: it answers when
// the decision is durable. A refusal holds the effect, if there is one.
func (e *Endpoints) Accept(ctx context.Context, c aggregate.Caller, r wire.SubmitRequest) *wire.Error {
	cmd, refusal := e.prepareCommand(c, r.PrepareRequest, true)
	if refusal == nil {
		_, refusal = e.do(ctx, c, cmd)
	}
	return refusal
}
