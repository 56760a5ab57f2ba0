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
	Source    string `placeholder:"TEXT" help:"Where that is known from, such as the service's own books."`
	Reference string `placeholder:"TEXT" help:"What to look up there."`
	Who       string `placeholder:"TEXT" help:"Who looked (default: who runs this)."`
	Evidence  string `placeholder:"JSON" help:"Instead of these three: a document that has them, and whatever else is to be kept: JSON, @FILE, or - for standard input."`
	Sign      bool   `help:"Sign it though it frees nothing; that nothing happened is always signed."`
	Yes       bool   `short:"y" help:"Sign without asking."`
}

// Validate wants one way of giving the evidence; kong calls it.
func (c *settleCmd) Validate() error {
	if err := c.which.Validate(); err != nil {
		return err
	}
	parts := c.Source != "" && c.Reference != ""
	if none := c.Source == "" && c.Reference == "" && c.Who == ""; c.Evidence == "" && !parts || c.Evidence != "" && !none {
		return &usage{"say where the outcome is known from: --source and --reference, or --evidence", ""}
	}
	return nil
}

// Run implements the command.
func (c *settleCmd) Run(e *env) error {
	return c.callAs(e, events.RoleOperator, func(who identity, l *client.Client) error { return c.settle(e, who, l) })
}

// settle sends the statement. That nothing happened is signed with the key of who
// says so: it frees the reservation.
func (c *settleCmd) settle(e *env, who identity, l *client.Client) error {
	operator := events.ActorOf(who.tenant, who.principal)
	evidence := events.CanonicalOf(map[string]any{"who": or(c.Who, string(operator)), "source": c.Source, "reference": c.Reference})
	if c.Evidence != "" {
		var err error
		if evidence, err = document(e.in, "evidence", c.Evidence); err != nil {
			return err
		}
	}
	id, err := c.id(e.ctx, l)
	if err != nil {
		return err
	}
	request := wire.SettleRequest{EffectID: id, Outcome: events.Outcome(c.Outcome), Evidence: evidence}
	if c.Sign || request.Outcome == events.OutcomeNoEffect {
		if err := c.sign(e, l, who, &request); err != nil {
			return err
		}
	}
	x, err := l.Settle(e.ctx, request)
	return e.effect(&x, changed(err), false)
}

// sign shows the statement that is to be signed, and signs it.
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
	if err := e.agreed(c.Yes, func(p *page) { settlementPage(p, &s, &x, r.Evidence) }); err != nil {
		return err
	}
	signed, err := who.sign(s.Text())
	if err != nil {
		return err
	}
	r.Statement, r.Signature, r.PublicKey = signed.Statement, signed.Signature, signed.PublicKey
	return nil
}

// settlementPage says what a signature will mean: the statement, what it does to
// the budget, and every member of the evidence.
func settlementPage(p *page, s *policy.Settlement, x *wire.Effect, evidence events.Raw) {
	did := map[events.Outcome]string{events.OutcomeSucceeded: "succeeded", events.OutcomeFailed: "failed", events.OutcomePartial: "was done in part",
		events.OutcomeNoEffect: "had no effect"}
	p.field("state", "that "+string(x.Operation)+" "+x.Resource+" "+did[s.Outcome])
	if s.Outcome == events.OutcomeNoEffect {
		p.field("frees", amountsText(x.MaxCost))
	} else {
		p.field("charges", amountsText(x.MaxCost))
	}
	p.field("evidence", fieldWords(evidence))
	p.field("effect", string(s.EffectID))
	p.field("binding", string(s.BindingDigest))
	p.field("ledger", string(s.LedgerID))
	p.field("signed by", string(s.Operator))
}
