package audit_test

import (
	"github.com/effectd/effectd/aggregate/audit"
	"github.com/effectd/effectd/aggregate/rehearsal"
	"github.com/effectd/effectd/events"
)

type event = events.Event

// entryDamage is to entries and envelopes.
var entryDamage = []damage{
	{"an entry of another ledger", audit.ForeignLedger, func(d *damaged) events.Position {
		d.log[5].LedgerID = "01K0000000000000000000ELSE"
		return position(5, 0)
	}},
	{"the log has no beginning", audit.ForeignLedger, func(d *damaged) events.Position {
		d.log = d.log[1:]
		return position(0, 0)
	}},
	{"another store takes over", audit.ForeignLedger, func(d *damaged) events.Position {
		_, _ = at[events.LedgerOpened](d, "", 0)
		opened := d.log[0].Events[0]
		data := opened.Data.(events.LedgerOpened)
		data.StoreFingerprint = events.ZeroDigest
		opened.Data = data
		return d.insert(6, opened)
	}},
	{"time goes back", audit.TimeReversed, func(d *damaged) events.Position {
		d.log[9].Time = d.log[8].Time - 1
		return position(9, 0)
	}},
	{"an event is older than its entry", audit.TimeReversed, func(d *damaged) events.Position {
		i, j := at[events.Permitted](d, d.sent, 0)
		d.log[i].Events[j].Time--
		return position(i, j)
	}},
	{"two events of an entry have one id", audit.DuplicateEventID, func(d *damaged) events.Position {
		i, j := at[events.Permitted](d, d.sent, 0)
		d.log[i].Events[j].ID = d.log[i].Events[j-1].ID
		return position(i, j)
	}},
	{"an event has the id of an earlier one", audit.EventIDInvalid, func(d *damaged) events.Position {
		return edit(d, d.lost, func(ev *event, _ *events.Dispatched) { ev.ID = d.log[4].Events[0].ID })
	}},
	{"an event names another operation", audit.OperationMismatch, func(d *damaged) events.Position {
		return edit(d, d.sent, func(ev *event, _ *events.Dispatched) { ev.Operation = "note" })
	}},
	{"an event names another task", audit.EnvelopeMismatch, func(d *damaged) events.Position {
		return edit(d, d.sent, func(ev *event, _ *events.Settled) { ev.TaskID = "t" })
	}},
	{"an event names another tenant", audit.EnvelopeMismatch, func(d *damaged) events.Position {
		return edit(d, d.lost, func(ev *event, _ *events.Unknown) { ev.Tenant = "side" })
	}},
	{"an event repeats another intent", audit.IntentMismatch, func(d *damaged) events.Position {
		return edit(d, d.lost, func(ev *event, _ *events.Unknown) { ev.IntentSHA256 = events.ZeroDigest })
	}},
}

// sealed makes every digest of a changed binding anew, as a forger would.
func sealed(p *events.Prepared) {
	b := &p.Binding
	b.PayloadSHA256, b.ContextSHA256 = events.DigestBytes(p.Payload), events.DigestOf(p.Context)
	b.IdempotencyKey = events.IdempotencyKey("ek_" + events.DigestOf(map[string]any{"v": 1, "ledger_id": rehearsal.LedgerID,
		"effect_id": b.EffectID, "payload_sha256": b.PayloadSHA256}))
	p.BindingDigest = events.DigestOf(*b)
}

func binding(f func(*events.Prepared)) func(*damaged) events.Position {
	return func(d *damaged) events.Position {
		return edit(d, d.sent, func(_ *event, p *events.Prepared) { f(p) })
	}
}

// bindingDamage is to what was asked.
var bindingDamage = []damage{
	{"the payload", audit.DigestMismatch, binding(func(p *events.Prepared) { p.Payload = events.Raw(`{"account":"b","amount":100}`) })},
	{"the payload's digest", audit.DigestMismatch, binding(func(p *events.Prepared) { p.Binding.PayloadSHA256 = events.ZeroDigest })},
	{"the context", audit.DigestMismatch, binding(func(p *events.Prepared) { p.Context.Service = "another" })},
	{"the binding's digest", audit.DigestMismatch, binding(func(p *events.Prepared) { p.BindingDigest = events.ZeroDigest })},
	{"the idempotency key", audit.DigestMismatch, binding(func(p *events.Prepared) {
		p.Binding.IdempotencyKey = "ek_" + events.IdempotencyKey(events.ZeroDigest)
		p.BindingDigest = events.DigestOf(p.Binding)
	})},
	{"the request's digest", audit.DigestMismatch, binding(func(p *events.Prepared) { p.RequestSHA256 = "none" })},
	{"payload, sealed: another amount", audit.ContractMismatch, binding(func(p *events.Prepared) {
		p.Payload = events.Raw(`{"account":"a","amount":90}`)
		sealed(p)
	})},
	{"payload, sealed: another account", audit.ContractMismatch, binding(func(p *events.Prepared) {
		p.Payload = events.Raw(`{"account":"b","amount":100}`)
		sealed(p)
	})},
	{"payload, sealed: not of the schema", audit.ContractMismatch, binding(func(p *events.Prepared) {
		p.Payload = events.Raw(`{"account":"a"}`)
		sealed(p)
	})},
	{"resource, sealed", audit.ContractMismatch, binding(func(p *events.Prepared) {
		p.Binding.Resource = "account/b"
		sealed(p)
	})},
	{"bound, sealed", audit.ContractMismatch, binding(func(p *events.Prepared) {
		p.Binding.MaxCost = events.Amounts{"usd_cents": 1}
		sealed(p)
	})},
	{"expiry beyond the contract, sealed", audit.ContractMismatch, binding(func(p *events.Prepared) {
		p.Binding.ExpiresAt = p.Binding.ExpiresAt.Add(3600e9)
		sealed(p)
	})},
	{"another contract, sealed", audit.OperationMismatch, binding(func(p *events.Prepared) {
		p.Binding.OperationDigest = events.ZeroDigest
		sealed(p)
	})},
	{"another policy revision, sealed", audit.Unauthorized, binding(func(p *events.Prepared) {
		p.Binding.PolicyRevision++
		sealed(p)
	})},
	{"another task, not of the producer, sealed", audit.Unauthorized, func(d *damaged) events.Position {
		i, _ := at[events.TaskOpened](d, "", 1)
		root := d.log[i].Events[0]
		data := root.Data.(events.TaskOpened)
		data.Holders, data.Parent = []events.Actor{"main/other"}, ""
		root.Data, root.TaskID, root.Actor = data, "private", rehearsal.Operator.Actor()
		d.insert(i, root)
		return edit(d, d.sent, func(ev *event, p *events.Prepared) {
			p.Binding.TaskID, ev.TaskID = "private", "private"
			sealed(p)
		})
	}},
	{"another producer, sealed", audit.Unauthorized, binding(func(p *events.Prepared) {
		p.Context.Principal = "other"
		sealed(p)
	})},
	{"the causal id of another effect, sealed", audit.DuplicateCausalID, func(d *damaged) events.Position {
		return edit(d, d.lost, func(ev *event, p *events.Prepared) {
			p.Context.CausalID, ev.CausalID = "sent", "sent"
			sealed(p)
		})
	}},
}
