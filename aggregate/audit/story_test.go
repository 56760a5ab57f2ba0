package audit_test

import (
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/rehearsal"
	"github.com/effectd/effectd/events"
)

// story is a log in which everything happens once, and the names of its effects.
type story struct {
	*rehearsal.World
	early, sent, wired, denied, lost, byHand, closed, open events.EffectID
}

const pay = `{"account":"a","amount":100}`

func tell() *story {
	s := &story{World: rehearsal.New()}
	do := func(c aggregate.Command) events.EffectID {
		d := s.Do(c)
		if d.Refusal != nil {
			panic(d.Refusal)
		}
		return d.EffectID
	}
	p, op, ap := rehearsal.Producer, rehearsal.Operator, rehearsal.Approver

	do(s.OpenTask(p, "child", "t", events.Amounts{"usd_cents": 1000, "wires": 5}, p))
	// One that is over, collected after a day.
	brief := s.OpenTask(op, "brief", "", events.Amounts{"usd_cents": 500}, p)
	brief.ExpiresAt = rehearsal.Start.Add(time.Hour)
	do(brief)
	s.early = do(inTask("brief", rehearsal.Submit(p, "note", `{"account":"a"}`, "early", "1")))
	do(s.Claim(s.early))
	do(s.Report(s.early, events.OutcomeSucceeded, nil))
	do(aggregate.FinishRun{Caller: p, RunID: "early", Outcome: events.RunSucceeded})
	s.Tick(2 * time.Hour)
	do(aggregate.Collect{Limit: 10})

	s.sent = do(inChild(rehearsal.Submit(p, "charge", pay, "run", "sent")))
	do(s.Claim(s.sent))
	do(s.Report(s.sent, events.OutcomeSucceeded, events.Amounts{"usd_cents": 150}))
	do(s.Report(s.sent, events.OutcomeFailed, events.Amounts{"usd_cents": 170}))
	s.wired = do(inChild(rehearsal.Prepare(p, "wire", pay, "run", "wired")))
	do(s.Approve(ap, s.wired))
	do(s.Admit(p, s.wired))
	do(s.Claim(s.wired))
	do(s.Report(s.wired, events.OutcomeNoEffect, nil))
	s.denied = do(rehearsal.Prepare(p, "wire", pay, "run", "denied"))
	do(s.Deny(ap, s.denied))
	s.lost = do(rehearsal.Submit(p, "charge", pay, "run", "lost"))
	do(s.Claim(s.lost))
	do(s.Report(s.lost, events.OutcomeUnknown, nil))
	do(aggregate.Acknowledge{Caller: op, EffectID: s.lost, Reason: "accepted"})
	do(s.Start(op, s.lost, events.MethodQuery))
	do(s.End(s.lost, events.OutcomeSucceeded, false))
	s.byHand = do(rehearsal.Submit(p, "charge", pay, "run", "by-hand"))
	do(s.Claim(s.byHand))
	do(s.Report(s.byHand, events.OutcomeUnknown, nil))
	do(s.Settle(op, s.byHand, events.OutcomeNoEffect))
	s.closed = do(inChild(rehearsal.Submit(p, "charge", pay, "run", "closed")))
	do(aggregate.CloseTask{Caller: op, TaskID: "child", Reason: "enough"})
	do(aggregate.Sweep{Limit: 10, Recheck: true})
	s.open = do(rehearsal.Submit(p, "charge", pay, "last", "open"))
	do(s.Claim(s.open))
	do(aggregate.CancelRun{Caller: p, RunID: "last", Reason: "stop"})
	do(aggregate.RegisterOperation{Contract: rehearsal.Charge(2)})
	do(aggregate.RetireOperation{Name: "charge", Version: 1})
	do(aggregate.ChangePolicy{Text: rehearsal.ApproveAll})
	return s
}

func inChild(c aggregate.Prepare) aggregate.Prepare {
	return inTask("child", c)
}

func inTask(id events.TaskID, c aggregate.Prepare) aggregate.Prepare {
	r := c.Request
	r.TaskID = id
	moved := rehearsal.PrepareAs(c.Caller, r)
	moved.Admit = c.Admit
	return moved
}
