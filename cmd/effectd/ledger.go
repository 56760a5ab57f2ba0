package main

import (
	"context"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
)

// ledgerCmd are the commands about the ledger itself.
type ledgerCmd struct {
	Status       ledgerStatusCmd  `cmd:"" help:"Is it trusted, does it dispatch, how full is it."`
	ConfirmClock ledgerConfirmCmd `cmd:"" name:"confirm-clock" help:"Trust the wall clock as it stands, after a step."`
}

// ledgerStatusCmd shows the ledger. An untrusted one is exit code 4.
type ledgerStatusCmd struct{ target }

// Run implements the command.
func (c *ledgerStatusCmd) Run(e *env) error {
	return c.call(e, events.RoleOperator, func(ctx context.Context, l *client.Client) error {
		s, err := l.Status(ctx)
		if err != nil {
			return err
		}
		e.show(s, func(p *page) { statusPage(p, &s) })
		if !s.Trusted || !s.ClockTrusted {
			return exitUnreachable
		}
		return nil
	})
}

func statusPage(p *page, s *wire.Status) {
	p.field("ledger", string(s.LedgerID))
	trusted := "yes"
	if !s.Trusted {
		trusted = "NO: " + s.Reason
	}
	p.field("trusted", trusted)
	if !s.ClockTrusted {
		p.field("clock", "NOT TRUSTED: nothing is written until it is confirmed")
	}
	p.field("dispatching", yesNo(s.Dispatching))
	p.field("intake", intakeWords(&s.Intake))
	p.field("position", s.Position.String())
	p.field("ledger time", clockTime(s.Time))
	p.field("node", s.Node+", "+s.Program)
	p.field("policy", "revision "+number(s.PolicyRevision))
	p.field("records", number(s.Usage.EffectRecords)+" of "+number(s.Limits.EffectRecords))
	p.field("live state", size(s.Usage.LiveBytes)+" of "+size(s.Limits.LiveBytes))
	p.field("log", size(s.Usage.LogBytes)+" of "+size(s.Limits.LogBytes))
	for _, state := range wire.States() {
		if n := s.Effects[state]; n > 0 {
			p.field(string(state), number(n))
		}
	}
}

// intakeWords says how the queue of requests stands.
func intakeWords(i *wire.Intake) string {
	says := "off: " + i.Reason
	if i.Serving {
		says = number(int64(i.Waiting)) + " waiting"
	}
	if i.DenialsDropped > 0 {
		says += "; " + number(int64(i.DenialsDropped)) + " denials not kept"
	}
	return says
}

// ledgerConfirmCmd lets writes go on after the wall clock stepped.
type ledgerConfirmCmd struct{ target }

// Run implements the command.
func (c *ledgerConfirmCmd) Run(e *env) error {
	return c.call(e, events.RoleOperator, func(ctx context.Context, l *client.Client) error {
		r, err := client.Call[wire.EmptyRequest, wire.ClockReply](ctx, l, wire.LedgerConfirm, wire.EmptyRequest{})
		if err != nil {
			return changed(err)
		}
		e.show(r, func(p *page) {
			p.field("ledger time", clockTime(r.Time))
			p.field("clock", map[bool]string{true: "trusted", false: "NOT TRUSTED"}[r.ClockTrusted])
		})
		return nil
	})
}
