package peer

import (
	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// The commands of dispatchers, and how they are written on the wire.

func about(l events.LedgerID, id events.EffectID, intent events.Digest) wire.NodeEffect {
	return wire.NodeEffect{V: events.Format, LedgerID: l, EffectID: id, IntentSHA256: intent}
}

func claimRequest(l events.LedgerID, c aggregate.ClaimEffect) wire.ClaimRequest {
	return wire.ClaimRequest{NodeEffect: about(l, c.EffectID, c.IntentSHA256), Dispatcher: c.Dispatcher, NonceSHA256: c.NonceSHA256,
		DeadlineMS: c.DeadlineMS, CredentialSHA256: c.CredentialSHA256}
}

func claimOf(r wire.ClaimRequest) aggregate.ClaimEffect {
	return aggregate.ClaimEffect{EffectID: r.EffectID, IntentSHA256: r.IntentSHA256, Dispatcher: r.Dispatcher, NonceSHA256: r.NonceSHA256,
		DeadlineMS: r.DeadlineMS, CredentialSHA256: r.CredentialSHA256}
}

func resultRequest(l events.LedgerID, c aggregate.Report) wire.ResultRequest {
	return wire.ResultRequest{NodeEffect: about(l, c.EffectID, c.IntentSHA256), Nonce: c.Nonce, Result: wire.SendResult(c.Result),
		AuditIncomplete: c.AuditIncomplete}
}

func reportOf(r wire.ResultRequest) aggregate.Report {
	return aggregate.Report{EffectID: r.EffectID, IntentSHA256: r.IntentSHA256, Nonce: r.Nonce, Result: aggregate.Result(r.Result),
		AuditIncomplete: r.AuditIncomplete}
}

func abandonRequest(l events.LedgerID, c aggregate.Abandon) wire.AbandonRequest {
	return wire.AbandonRequest{NodeEffect: about(l, c.EffectID, c.IntentSHA256), Detail: c.Detail}
}

func abandonOf(r wire.AbandonRequest) aggregate.Abandon {
	return aggregate.Abandon{EffectID: r.EffectID, IntentSHA256: r.IntentSHA256, Detail: r.Detail}
}
