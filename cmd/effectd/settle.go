package main

import (
	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
)

// settleCmd states what became of an unknown effect, with evidence.
type settleCmd struct {
	target
	which
	Outcome   string `required:"" enum:"succeeded,failed,partial,no_effect" help:"What is proven: ${enum}. What is not known is not settled."`
	Source    string `required:"" placeholder:"TEXT" help:"Where that is known from, such as the service's own books."`
	Reference string `required:"" placeholder:"TEXT" help:"What to look up there."`
	Who       string `placeholder:"TEXT" help:"Who looked (default: who runs this)."`
	Yes       bool   `short:"y" help:"Sign without asking."`
}

// Run implements the command.
func (c *settleCmd) Run(e *env) error { return c.allowed(events.RoleOperator, c.settle(e)) }

// settle sends the statement. That nothing happened is signed with the key of who
// says so: it frees the reservation.
func (c *settleCmd) settle(e *env) error {
	who, err := c.identity(events.RoleOperator)
	if err != nil {
		return err
	}
	l, err := who.dial()
	if err != nil {
		return err
	}
	defer l.Close()
	id, err := c.id(e.ctx, l)
	if err != nil {
		return err
	}
	operator := events.ActorOf(who.tenant, who.principal)
	request := wire.SettleRequest{EffectID: id, Outcome: events.Outcome(c.Outcome),
		Evidence: events.CanonicalOf(map[string]any{"who": or(c.Who, string(operator)), "source": c.Source, "reference": c.Reference})}
	if request.Outcome == events.OutcomeNoEffect {
		if err := c.sign(e, l, who, &request); err != nil {
			return err
		}
	}
	x, err := l.Settle(e.ctx, request)
	return e.effect(&x, changed(err), false)
}

// sign shows the statement that nothing happened, and signs it.
func (c *settleCmd) sign(e *env, l *client.Client, who identity, r *wire.SettleRequest) error {
	x, err := l.Get(e.ctx, wire.GetRequest{EffectID: r.EffectID})
	if err != nil {
		return err
	}
	status, err := l.Status(e.ctx)
	if err != nil {
		return err
	}
	s := policy.Settlement{V: events.Format, LedgerID: status.LedgerID, EffectID: x.EffectID, BindingDigest: x.BindingDigest, Outcome: r.Outcome,
		EvidenceSHA256: events.DigestBytes(r.Evidence), Operator: events.ActorOf(who.tenant, who.principal), IssuedAt: events.InstantOf(e.now())}
	err = e.agreed(c.Yes, func(p *page) {
		p.field("state", "that "+string(x.Operation)+" "+x.Resource+" had no effect")
		p.field("frees", amountsText(x.MaxCost))
		p.field("known from", c.Source)
		p.field("reference", c.Reference)
		p.field("effect", string(s.EffectID))
		p.field("binding", string(s.BindingDigest))
		p.field("ledger", string(s.LedgerID))
		p.field("signed by", string(s.Operator))
	})
	if err != nil {
		return err
	}
	signed, err := who.sign(s.Text())
	if err != nil {
		return err
	}
	r.Statement, r.Signature, r.PublicKey = signed.Statement, signed.Signature, signed.PublicKey
	return nil
}
