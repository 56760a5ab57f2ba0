package rehearsal

import (
	"fmt"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// Walker does random commands in a world, out of few names, so that they meet.
type Walker struct {
	*World
	Pick func(n int) int // uniform in 0 ≤ x < n
	// Calm leaves out what ends most of a world: denying policies, lost access,
	// closed roots. Longer lives are then seen more often.
	Calm bool

	asked []aggregate.Prepare // to be repeated
}

// Random makes a command that some caller might send, sensible or not.
func (w *Walker) Random() aggregate.Command {
	makers := []func() aggregate.Command{
		w.ask, w.ask, w.ask, w.ask, w.ask, w.ask, w.ask, w.admit, w.decideApproval, w.decideApproval, w.claim, w.claim, w.claim, w.claim,
		w.report, w.report, w.report, w.sweep, w.attempt, w.attempt, w.conclude, w.conclude, w.byOperator, w.takeBack, w.run, w.task, w.ledger,
	}
	return makers[w.Pick(len(makers))]()
}

// Step lets some time pass and does one to three random commands in one entry.
func (w *Walker) Step() (commands []aggregate.Command, decisions []aggregate.Decision) {
	w.pass()
	commands = append(commands, w.Random())
	for w.Pick(4) == 0 && len(commands) < 3 {
		commands = append(commands, w.Random())
	}
	return commands, w.Batch(commands...)
}

// pass lets time pass: often little, sometimes up to exactly what is due next.
func (w *Walker) pass() {
	switch w.Pick(40) {
	case 0, 1, 2:
		w.Tick(time.Duration(w.Pick(10)) * time.Second)
	case 3:
		w.Tick(time.Duration(w.Pick(10)) * time.Minute)
	case 4:
		if due := w.State.NextDue(); due > w.At && due < w.At.Add(time.Hour) {
			w.At = due - events.Instant(time.Millisecond) // the next command is decided at due
		}
	case 5:
		if !w.Calm && w.Pick(20) == 0 {
			w.Tick(24 * time.Hour)
		}
	}
}

// some is a live effect, preferably where a command can do something, or one
// that does not exist.
func (w *Walker) some(prefer ...wire.State) events.EffectID {
	var all, preferred []events.EffectID
	w.State.EachEffect(func(e *aggregate.Effect) bool {
		all = append(all, e.ID)
		for _, s := range prefer {
			if e.State == s {
				preferred = append(preferred, e.ID)
			}
		}
		return true
	})
	switch {
	case len(all) == 0 || w.Pick(60) == 0:
		return "01K000000000000000000NEVER"
	case len(preferred) > 0 && w.Pick(5) > 0:
		return preferred[w.Pick(len(preferred))]
	}
	return all[w.Pick(len(all))]
}

func (w *Walker) producer() aggregate.Caller {
	return []aggregate.Caller{Producer, Producer, Producer, Producer, Producer, Producer, Other, Stranger}[w.Pick(8)]
}

// overseer is an operator, rarely somebody who may not.
func (w *Walker) overseer() aggregate.Caller {
	if w.Pick(8) > 0 {
		return Operator
	}
	return []aggregate.Caller{Foreman, Auditor, Producer}[w.Pick(3)]
}

// owner is whose effect it is, rarely somebody else.
func (w *Walker) owner(id events.EffectID) aggregate.Caller {
	if e := w.State.Effect(id); e != nil && w.Pick(10) > 0 {
		return aggregate.Caller{Tenant: e.Tenant, Principal: e.Principal}
	}
	return w.producer()
}

func (w *Walker) taskID() events.TaskID {
	return []events.TaskID{"t", "t", "t", "t", "t", "t", "t", "t", "child", "child", "grandchild", "side"}[w.Pick(12)]
}

// runID is one of four runs that new ones slowly replace: runs end.
func (w *Walker) runID() events.RunID {
	return events.RunID(fmt.Sprintf("run-%d", w.Pick(4)+len(w.Entries)/16))
}

func (w *Walker) amount() int64 {
	return []int64{0, 1, 5, 5, 5, 5, 100, 100, 700, 5000, -1, events.MaxAmount}[w.Pick(12)]
}

// ask prepares or submits, sometimes again and sometimes with something changed.
func (w *Walker) ask() aggregate.Command {
	if len(w.asked) > 0 && w.Pick(4) == 0 {
		again := w.asked[w.Pick(len(w.asked))]
		again.Admit = w.Pick(2) == 0
		return again
	}
	o := []events.OperationName{"charge", "charge", "charge", "wire", "wire", "note", "none"}[min(w.Pick(14)/2, w.Pick(14))]
	payload := fmt.Sprintf(`{"account":%q,"amount":%d}`, []string{"a", "b", "a", "b", "a", "forbidden"}[w.Pick(6)], w.amount())
	if w.Pick(20) == 0 {
		payload = `{"nothing":1}`
	}
	causal := events.CausalID(fmt.Sprintf("step-%d", w.Pick(40)))
	r := wire.PrepareRequest{TaskID: w.taskID(), Operation: o, Payload: events.Raw(payload), SealedContext: Sealed(w.runID(), causal)}
	if w.Pick(10) == 0 {
		text := "service-1"
		r.Service = &text
	}
	if w.Pick(20) == 0 {
		r.MaxCost = events.Amounts{"usd_cents": w.amount() & events.MaxAmount}
	}
	if w.Pick(20) == 0 {
		r.ExpiresAt = w.At.Add(time.Duration(w.Pick(60)) * time.Second).String()
	}
	if w.Pick(30) == 0 {
		r.Version = int64(w.Pick(3))
	}
	if w.Pick(30) == 0 {
		r.Precondition = events.Raw(`{"etag":"e"}`)
	}
	cmd := PrepareAs(w.producer(), r)
	cmd.Admit = w.Pick(3) > 0
	w.asked = append(w.asked, cmd)
	return cmd
}

func (w *Walker) admit() aggregate.Command {
	id := w.some(wire.StatePermitted, wire.StatePrepared)
	cmd := w.Admit(w.owner(id), id)
	switch w.Pick(12) {
	case 0:
		cmd.Request.BindingDigest = events.ZeroDigest
	case 1:
		text := "elsewhere"
		cmd.Request.Process = &text
	}
	return cmd
}

func (w *Walker) decideApproval() aggregate.Command {
	id, who := w.some(wire.StatePrepared), Approver
	if w.Pick(10) == 0 {
		who = w.overseer()
	}
	if w.Pick(4) == 0 {
		return w.Deny(who, id)
	}
	cmd := w.Approve(who, id)
	if w.Pick(10) == 0 {
		cmd.Signed = w.Signed(who, id, "approve", func(s map[string]any) { s["max_cost"] = events.Amounts{} })
	}
	return cmd
}

func (w *Walker) claim() aggregate.Command {
	id := w.some(wire.StateAdmitted)
	if w.Pick(12) == 0 {
		return w.Abandon(id)
	}
	return w.Claim(id)
}

func (w *Walker) outcome() events.Outcome {
	return []events.Outcome{events.OutcomeUnknown, events.OutcomeSucceeded, events.OutcomeSucceeded, events.OutcomeFailed,
		events.OutcomePartial, events.OutcomeNoEffect}[w.Pick(6)]
}

// measured is a cost that a service may state: none, less, more, elsewhere.
func (w *Walker) measured() events.Amounts {
	unit := []events.Unit{"usd_cents", "usd_cents", "bytes", "effects"}[w.Pick(4)]
	if w.Pick(3) == 0 {
		return nil
	}
	return events.Amounts{unit: w.amount()}
}

func (w *Walker) report() aggregate.Command {
	id := w.some(wire.StateDispatched, wire.StateDispatched, wire.StateUnknown)
	cmd := w.Report(id, w.outcome(), w.measured())
	cmd.AuditIncomplete = w.Pick(10) == 0
	if w.Pick(15) == 0 {
		cmd.Nonce = "guessed"
	}
	return cmd
}

func (w *Walker) sweep() aggregate.Command {
	return aggregate.Sweep{Limit: 1 + w.Pick(20), Recheck: w.Pick(2) == 0}
}

func (w *Walker) attempt() aggregate.Command {
	method := []events.Method{"", events.MethodQuery, events.MethodResubmitSameKey}[w.Pick(3)]
	return w.Start(w.overseer(), w.some(wire.StateUnknown), method)
}

func (w *Walker) conclude() aggregate.Command {
	cmd := w.End(w.some(wire.StateUnknown), w.outcome(), false)
	cmd.NotFound = cmd.Result.Outcome == "" && w.Pick(2) == 0
	cmd.Result.Cost = w.measured()
	return cmd
}

func (w *Walker) byOperator() aggregate.Command {
	id, who := w.some(wire.StateUnknown), w.overseer()
	if w.Pick(2) == 0 {
		return aggregate.Acknowledge{Caller: who, EffectID: id, Reason: "accepted"}
	}
	return w.Settle(who, id, w.outcome())
}

func (w *Walker) takeBack() aggregate.Command {
	id := w.some(wire.StatePrepared, wire.StatePermitted, wire.StateAdmitted)
	if w.Pick(2) == 0 {
		return aggregate.Withdraw{Caller: w.owner(id), EffectID: id, Reason: "changed my mind"}
	}
	return aggregate.Revoke{Caller: w.overseer(), EffectID: id, Reason: "no longer"}
}

func (w *Walker) run() aggregate.Command {
	who, id := w.producer(), w.runID()
	if w.Pick(4) == 0 {
		return aggregate.CancelRun{Caller: who, RunID: id, Reason: "stop"}
	}
	outcomes := []events.RunOutcome{events.RunSucceeded, events.RunSucceeded, events.RunSucceeded, events.RunRejected, events.RunOutcomeCancelled}
	return aggregate.FinishRun{Caller: who, RunID: id, Outcome: outcomes[w.Pick(len(outcomes))]}
}

func (w *Walker) task() aggregate.Command {
	units := events.Amounts{"usd_cents": []int64{500, 5000, 10_000, 20_000}[w.Pick(4)], "wires": int64(w.Pick(5))}
	if w.Pick(3) == 0 {
		units["effects"] = int64(1 + w.Pick(5))
	}
	switch w.Pick(6) {
	case 0, 1:
		cmd := w.OpenTask([]aggregate.Caller{Producer, Operator}[w.Pick(2)], "child", "t", units, Producer)
		cmd.Request.Exposure = events.Amounts{"usd_cents": w.amount() & events.MaxAmount}
		return cmd
	case 2, 3:
		return w.OpenTask(Producer, "grandchild", "child", units)
	case 4:
		return w.OpenTask(Foreman, "side", "", units, Stranger)
	}
	closing := []events.TaskID{"child", "grandchild", "side", "t"}
	if w.Calm {
		closing = closing[:2]
	}
	return aggregate.CloseTask{Caller: w.overseer(), TaskID: closing[w.Pick(len(closing))], Reason: "enough"}
}

// ledger does what the ledger and its owner do.
func (w *Walker) ledger() aggregate.Command {
	switch w.Pick(8) {
	case 0:
		if w.Pick(3) == 0 {
			return w.open(w.State.Head().Limits)
		}
	case 1, 2:
		if orphans := w.State.Orphans(); len(orphans) > 0 {
			return aggregate.Orphaned{EffectID: orphans[w.Pick(len(orphans))]}
		}
	case 3:
		return aggregate.Collect{Limit: 1 + w.Pick(5)}
	case 4:
		texts := []string{Policy, Policy, Policy, Policy + "\n", ApproveAll, DenyAll}
		if w.Calm {
			texts = texts[:3]
		}
		return aggregate.ChangePolicy{Text: texts[w.Pick(len(texts))]}
	case 5:
		users := Users()
		if !w.Calm && w.Pick(4) == 0 {
			users = users[:4] // producer loses access
		}
		return aggregate.ChangeAccess{Users: users}
	case 6:
		return aggregate.RegisterOperation{Contract: Charge(int64(1 + w.Pick(2)))}
	case 7:
		if !w.Calm {
			return aggregate.RetireOperation{Name: "charge", Version: int64(1 + w.Pick(2))}
		}
	}
	return w.sweep()
}
