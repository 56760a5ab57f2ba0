package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
)

// approveCmd signs that an effect may be sent.
type approveCmd struct{ signing }

// Run implements the command.
func (c *approveCmd) Run(e *env) error {
	return c.decide(e, policy.DecisionApprove, func(p wire.Pending) string { return p.Statement }, (*client.Client).Approve)
}

// signing is a decision about one effect, signed with the key of who decides. The
// key stays here: only the signature is sent.
type signing struct {
	target
	which
	Yes bool `short:"y" help:"Sign without asking."`
}

// sender sends a signed decision.
type sender func(*client.Client, context.Context, wire.ApprovalRequest) (wire.Effect, error)

// decide shows what is to be signed, signs it and sends it.
func (c *signing) decide(e *env, decision string, offered func(wire.Pending) string, send sender) error {
	return c.callAs(e, events.RoleApprover, func(who identity, l *client.Client) error {
		id, err := c.id(e.ctx, l)
		if err != nil {
			return err
		}
		list, err := l.Pending(e.ctx, wire.PendingRequest{EffectID: id})
		if err != nil {
			return err
		}
		if len(list.Pending) == 0 || list.Pending[0].EffectID != id {
			return e.decided(l, id, decision)
		}
		request, err := c.signs(e, who, decision, &list.Pending[0], offered)
		if err != nil {
			return err
		}
		x, err := send(l, e.ctx, request)
		return e.effect(&x, changed(err), false)
	})
}

// signs checks the statement that the ledger offers, shows it and signs it.
func (c *signing) signs(e *env, who identity, decision string, p *wire.Pending, offered func(wire.Pending) string) (wire.ApprovalRequest, error) {
	approver := events.ActorOf(who.tenant, who.principal)
	s, err := policy.ParseStatement(offered(*p))
	if err != nil || s.EffectID != p.EffectID || s.Decision != decision || s.Approver != approver {
		return wire.ApprovalRequest{}, fmt.Errorf("the ledger offers another statement than this decision of %s", approver)
	}
	if err := e.agreed(c.Yes, func(page *page) { statementPage(page, &s, p, e.now()) }); err != nil {
		return wire.ApprovalRequest{}, err
	}
	signed, err := who.sign(s.Text())
	return wire.ApprovalRequest{EffectID: p.EffectID, Statement: signed.Statement, Signature: signed.Signature, PublicKey: signed.PublicKey}, err
}

// sign signs a text with the key that the identity connects with.
func (i identity) sign(text string) (policy.Signed, error) {
	key, err := home.LoadKey(i.seedFile)
	if err != nil {
		return policy.Signed{}, err
	}
	defer key.Wipe() // also what Seed returns
	seed, err := key.Seed()
	if err != nil {
		return policy.Signed{}, fmt.Errorf("sign: %w", err)
	}
	return policy.Sign(seed, text)
}

// agreed shows what is to be signed, beside the answer (M3), and asks for a yes
// unless it is given already.
func (e *env) agreed(yes bool, show func(*page)) error {
	if yes && e.json {
		return nil
	}
	p := newPage(e.err)
	show(p)
	p.flush()
	if yes {
		return nil
	}
	_, _ = fmt.Fprint(e.err, "Sign this? [y/N] ")
	answer, _ := bufio.NewReader(e.in).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return hint(errors.New("nothing was signed"), "answer yes, or give --yes")
}

// statementPage says what a signature will mean: the statement, and what the
// ledger tells about the effect.
func statementPage(p *page, s *policy.Statement, x *wire.Pending, now time.Time) {
	p.field(s.Decision, string(s.Operation)+" "+s.Resource)
	p.field("asked", fieldWords(x.Exposed))
	p.field("why asked", x.Reason)
	p.field("at most", amountsText(s.MaxCost))
	if s.Decision == policy.DecisionApprove { // a denial costs nothing
		p.field("budget", budgetWords(x.Budget))
	}
	p.field("until", when(s.ExpiresAt, now))
	p.field("effect", string(s.EffectID))
	p.field("binding", string(s.BindingDigest))
	p.field("ledger", string(s.LedgerID))
	p.field("signed by", string(s.Approver))
}

// decided answers for an effect that does not wait: the same decision again is
// done; any other cannot be made any more.
func (e *env) decided(l *client.Client, id events.EffectID, decision string) error {
	x, err := l.Get(e.ctx, wire.GetRequest{EffectID: id})
	if err != nil {
		return err
	}
	denied := x.State == wire.StateRefused && x.Reason == events.ReasonApprovalDenied
	approved := x.State != wire.StateRefused && x.Permit != nil && x.Permit.Kind == events.AuthorizationApproval
	if decision == policy.DecisionDeny && denied || decision == policy.DecisionApprove && approved {
		x.Repeat = true
		return e.effect(&x, nil, false)
	}
	refusal := wire.Errorf(wire.IllegalTransition, "the effect does not wait for approval")
	if x.State == wire.StateRefused {
		refusal = aggregate.RefusalError(x.Reason)
	}
	refusal.Effect = &x
	return refusal
}
