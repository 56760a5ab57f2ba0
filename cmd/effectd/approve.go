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
	return c.allowed(events.RoleApprover, c.decide(e, policy.DecisionApprove, func(p wire.Pending) string { return p.Statement }, (*client.Client).Approve))
}

// signing is a decision about one effect, signed with the key of who decides. The
// key stays here: only the signature is sent.
type signing struct {
	target
	which
	Yes bool `short:"y" help:"Sign without asking."`
}

// decide shows what is to be signed, signs it and sends it.
func (c *signing) decide(e *env, decision string, statement func(wire.Pending) string,
	send func(*client.Client, context.Context, wire.ApprovalRequest) (wire.Effect, error)) error {
	who, err := c.identity(events.RoleApprover)
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
	list, err := l.Pending(e.ctx, wire.PendingRequest{EffectID: id})
	if err != nil {
		return err
	}
	if len(list.Pending) == 0 {
		return e.decided(l, id, decision)
	}
	p := list.Pending[0]
	s, err := policy.ParseStatement(statement(p))
	if err != nil || s.EffectID != id || s.Decision != decision || s.Approver != events.ActorOf(who.tenant, who.principal) {
		return fmt.Errorf("the ledger offers another statement than this decision of %s", events.ActorOf(who.tenant, who.principal))
	}
	if err := e.agreed(c.Yes, func(page *page) { statementPage(page, &s, &p, e.now()) }); err != nil {
		return err
	}
	signed, err := who.sign(s.Text())
	if err != nil {
		return err
	}
	x, err := send(l, e.ctx, wire.ApprovalRequest{EffectID: id, Statement: signed.Statement, Signature: signed.Signature, PublicKey: signed.PublicKey})
	return e.effect(&x, changed(err), false)
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
