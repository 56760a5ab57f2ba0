package aggregate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/rehearsal"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// What every command leads to in every state: the events in order, then "=" if
// it is answered with what is known already, or "!" and the refusal. "." is
// neither.
//
//	P prepared   G permitted  R refused     A admitted    D dispatched  S settled   U unknown
//	a, e reconcile-started, -ended          K acknowledged               X contradicted
//	C run-cancelled   F run-finished   c collected
//
// "!ended" is the error of the reason for which the effect was refused.
const matrix = `
# producer
           prepare  prepare*   submit   admit     admit/ctx  admit/dig  withdraw  cancel  finish
none       PG       PG         PGA      !unknown  !unknown   !unknown   !unknown  !norun  !norun
waiting    =        !mismatch  =        !permit   R!context  !mismatch  R         C       !open
permitted  =        !mismatch  A        A         R!context  !mismatch  R         C       !open
admitted   =        !mismatch  =        =         =          !mismatch  S         C       !open
dispatched =        !mismatch  =        =         =          !mismatch  !late     C       !open
unknown    =        !mismatch  =        =         =          !mismatch  !late     C       !open
attempt    =        !mismatch  =        =         =          !mismatch  !late     C       !open
succeeded  =        !mismatch  =        =         =          !mismatch  !late     C       F
failed     =        !mismatch  =        =         =          !mismatch  !late     C       F
partial    =        !mismatch  =        =         =          !mismatch  !late     C       F
no_effect  =        !mismatch  =        =         =          !mismatch  !late     C       F
refused    =        !mismatch  !ended   !ended    !ended     !ended     =         C       F
collected  =        !mismatch  =        !unknown  !unknown   !unknown   !unknown  C       F

# approver and operator
           approve   deny      revoke    query     resubmit  settle+   settle-   acknowledge
none       !unknown  !unknown  !unknown  !unknown  !unknown  !unknown  !unknown  !unknown
waiting    G         R         R         !illegal  !illegal  !illegal  !illegal  !illegal
permitted  !illegal  !illegal  R         !illegal  !illegal  !illegal  !illegal  !illegal
admitted   !illegal  !illegal  S         !illegal  !illegal  !illegal  !illegal  !illegal
dispatched !illegal  !illegal  !late     !illegal  !illegal  !illegal  !illegal  !illegal
unknown    !illegal  !illegal  !late     a         a         S         S         K
attempt    !illegal  !illegal  !late     !running  !running  eS        eS        K
succeeded  !illegal  !illegal  !late     =         =         =         !illegal  !illegal
failed     !illegal  !illegal  !late     =         =         !illegal  !illegal  !illegal
partial    !illegal  !illegal  !late     =         =         !illegal  !illegal  !illegal
no_effect  !illegal  !illegal  !late     =         =         !illegal  =         !illegal
refused    !ended    !ended    !late     !illegal  !illegal  !illegal  !illegal  !illegal
collected  !unknown  !unknown  !unknown  !unknown  !unknown  !unknown  !unknown  !unknown

# dispatcher and reconciler
           claim     claim/dead    abandon   report+   report-   report?   forged      end+      end?      end/none
none       !unknown  !unknown      !unknown  !unknown  !unknown  !unknown  !unknown    !unknown  !unknown  !unknown
waiting    !unknown  !unknown      !unknown  !unknown  !unknown  !unknown  !unknown    =         =         =
permitted  !unknown  !unknown      !unknown  !unknown  !unknown  !unknown  !unknown    =         =         =
admitted   D         !elsewhere    S         !unknown  !unknown  !unknown  !unknown    =         =         =
dispatched =         =             =         S         S         U         !forbidden  =         =         =
unknown    =         =             =         S         S         =         !forbidden  S         =         =
attempt    =         =             =         eS        eS        =         !forbidden  eS        e         e
succeeded  =         =             =         =         X         =         !forbidden  =         =         =
failed     =         =             =         X         X         =         !forbidden  X         =         =
partial    =         =             =         X         X         =         !forbidden  X         =         =
no_effect  =         =             =         X         =         =         !forbidden  X         =         =
refused    !unknown  !unknown      !unknown  !unknown  !unknown  !unknown  !unknown    =         =         =
collected  !unknown  !unknown      !unknown  !unknown  !unknown  !unknown  !unknown    !unknown  !unknown  !unknown

# ledger
           sweep  overdue  denied  closed  orphaned  collect
none       .      .        .       .       =         .
waiting    .      R        R       R       =         .
permitted  .      R        R       R       =         .
admitted   .      S        S       S       =         .
dispatched .      U        .       .       U         .
unknown    .      .        .       .       =         .
attempt    .      e        .       .       e         .
succeeded  .      .        .       .       =         c
failed     .      .        .       .       =         c
partial    .      .        .       .       =         c
no_effect  .      .        .       .       =         c
refused    .      .        .       .       =         c
collected  .      .        .       .       =         .
`

var letters = map[events.Type]string{
	events.TypePrepared: "P", events.TypePermitted: "G", events.TypeRefused: "R", events.TypeAdmitted: "A", events.TypeDispatched: "D",
	events.TypeSettled: "S", events.TypeUnknown: "U", events.TypeReconcileStarted: "a", events.TypeReconcileEnded: "e",
	events.TypeAcknowledged: "K", events.TypeContradicted: "X", events.TypeRunCancelled: "C", events.TypeRunFinished: "F", events.TypeCollected: "c",
}

var words = map[wire.Code]string{
	wire.UnknownEffect: "unknown", wire.UnknownRun: "norun", wire.BindingMismatch: "mismatch", wire.PermitRequired: "permit",
	wire.EffectContextMismatch: "context", wire.TooLate: "late", wire.RunUnresolved: "open", wire.IllegalTransition: "illegal",
	wire.AttemptInProgress: "running", wire.Forbidden: "forbidden", wire.Revoked: "ended", wire.NotDispatching: "elsewhere",
}

func cell(d aggregate.Decision) string {
	var b strings.Builder
	for _, ev := range d.Events {
		b.WriteString(letters[ev.Type])
	}
	switch {
	case d.Refusal != nil:
		b.WriteString("!" + words[d.Refusal.Code])
	case len(d.Events) == 0 && d.Repeat:
		return "="
	case len(d.Events) == 0:
		return "."
	case d.Repeat:
		b.WriteString("=") // a defect: events and "created nothing"
	}
	return b.String()
}

// TestEveryCommandInEveryState is the matrix above, and wants it complete.
func TestEveryCommandInEveryState(t *testing.T) {
	states, commands := inState(), commandsOf()
	seen := map[string]bool{}
	for block := range strings.SplitSeq(strings.TrimSpace(matrix), "\n\n") {
		lines := strings.Split(block, "\n")
		names := strings.Fields(lines[1])
		for _, line := range lines[2:] {
			fields := strings.Fields(line)
			if len(fields) != len(names)+1 {
				t.Fatalf("row %q has %d cells, want %d", fields[0], len(fields)-1, len(names))
			}
			for i, name := range names {
				seen[fields[0]+" "+name] = true
				if got := decided(states[fields[0]], commands[name]); got != fields[i+1] {
					t.Errorf("%s in state %s: %s, want %s", name, fields[0], got, fields[i+1])
				}
			}
		}
	}
	for state := range states {
		for command := range commands {
			if !seen[state+" "+command] {
				t.Errorf("the matrix does not say what %s does in state %s", command, state)
			}
		}
	}
}

// standing is a world in which one effect stands in one state.
type standing struct {
	rehearsal.World
	id events.EffectID
}

func decided(from standing, command func(*standing) aggregate.Command) string {
	w := from // a copy: the state itself never changes
	return cell(w.Do(command(&w)))
}

const plain, other = `{"account":"a","amount":100}`, `{"account":"a","amount":101}`

// inState brings one effect into every state.
func inState() map[string]standing {
	none := standing{World: *rehearsal.New(), id: "01K000000000000000000NEVER"}
	after := func(from standing, command func(*standing) aggregate.Command) standing {
		w := from
		d := w.Do(command(&w))
		if d.Refusal != nil {
			panic(d.Refusal)
		}
		if w.id == none.id {
			w.id = d.EffectID
		}
		return w
	}
	c := commandsOf()
	settled := func(o events.Outcome, from standing) standing {
		return after(from, func(w *standing) aggregate.Command { return w.Report(w.id, o, nil) })
	}
	waiting := after(none, func(*standing) aggregate.Command {
		return rehearsal.Prepare(rehearsal.Producer, "wire", plain, "run", "step")
	})
	permitted := after(none, c["prepare"])
	admitted := after(permitted, c["admit"])
	dispatched := after(admitted, c["claim"])
	unknown := settled(events.OutcomeUnknown, dispatched)
	succeeded := settled(events.OutcomeSucceeded, dispatched)
	collected := succeeded
	collected.Tick(25 * time.Hour)
	return map[string]standing{
		"none": none, "waiting": waiting, "permitted": permitted, "admitted": admitted, "dispatched": dispatched, "unknown": unknown,
		"attempt": after(unknown, c["query"]), "succeeded": succeeded, "failed": settled(events.OutcomeFailed, dispatched),
		"partial": settled(events.OutcomePartial, dispatched), "no_effect": settled(events.OutcomeNoEffect, dispatched),
		"refused": after(permitted, c["withdraw"]), "collected": after(collected, c["collect"]),
	}
}

// operation is what the effect of a world is; "charge" where there is none yet.
func (w *standing) operation() events.OperationName {
	if e := w.State.Effect(w.id); e != nil {
		return e.Operation()
	}
	return "charge"
}

func commandsOf() map[string]func(*standing) aggregate.Command {
	producer, operator, approver := rehearsal.Producer, rehearsal.Operator, rehearsal.Approver
	unchanged := func(w *standing) aggregate.Command { return aggregate.Sweep{Limit: 10, Recheck: true} }
	return map[string]func(*standing) aggregate.Command{
		"prepare": func(w *standing) aggregate.Command {
			return rehearsal.Prepare(producer, w.operation(), plain, "run", "step")
		},
		"prepare*": func(w *standing) aggregate.Command {
			return rehearsal.Prepare(producer, w.operation(), other, "run", "step")
		},
		"submit": func(w *standing) aggregate.Command {
			return rehearsal.Submit(producer, w.operation(), plain, "run", "step")
		},
		"admit": func(w *standing) aggregate.Command { return w.Admit(producer, w.id) },
		"admit/ctx": func(w *standing) aggregate.Command {
			cmd, service := w.Admit(producer, w.id), "another"
			cmd.Request.Service = &service
			return cmd
		},
		"admit/dig": func(w *standing) aggregate.Command {
			cmd := w.Admit(producer, w.id)
			cmd.Request.BindingDigest = events.ZeroDigest
			return cmd
		},
		"withdraw": func(w *standing) aggregate.Command { return aggregate.Withdraw{Caller: producer, EffectID: w.id} },
		"cancel":   func(*standing) aggregate.Command { return aggregate.CancelRun{Caller: producer, RunID: "run"} },
		"finish": func(*standing) aggregate.Command {
			return aggregate.FinishRun{Caller: producer, RunID: "run", Outcome: events.RunSucceeded}
		},
		"approve":     func(w *standing) aggregate.Command { return w.Approve(approver, w.id) },
		"deny":        func(w *standing) aggregate.Command { return w.Deny(approver, w.id) },
		"revoke":      func(w *standing) aggregate.Command { return aggregate.Revoke{Caller: operator, EffectID: w.id} },
		"query":       func(w *standing) aggregate.Command { return w.Start(operator, w.id, events.MethodQuery) },
		"resubmit":    func(w *standing) aggregate.Command { return w.Start(operator, w.id, events.MethodResubmitSameKey) },
		"settle+":     func(w *standing) aggregate.Command { return w.Settle(operator, w.id, events.OutcomeSucceeded) },
		"settle-":     func(w *standing) aggregate.Command { return w.Settle(operator, w.id, events.OutcomeNoEffect) },
		"acknowledge": func(w *standing) aggregate.Command { return aggregate.Acknowledge{Caller: operator, EffectID: w.id} },
		"claim":       func(w *standing) aggregate.Command { return w.Claim(w.id) },
		"claim/dead": func(w *standing) aggregate.Command {
			cmd := w.Claim(w.id)
			w.Restart()
			return cmd
		},
		"abandon": func(w *standing) aggregate.Command { return w.Abandon(w.id) },
		"report+": func(w *standing) aggregate.Command { return w.Report(w.id, events.OutcomeSucceeded, nil) },
		"report-": func(w *standing) aggregate.Command { return w.Report(w.id, events.OutcomeNoEffect, nil) },
		"report?": func(w *standing) aggregate.Command { return w.Report(w.id, events.OutcomeUnknown, nil) },
		"forged": func(w *standing) aggregate.Command {
			cmd := w.Report(w.id, events.OutcomeSucceeded, nil)
			cmd.Nonce = "guessed"
			return cmd
		},
		"end+":     func(w *standing) aggregate.Command { return w.End(w.id, events.OutcomeSucceeded, false) },
		"end?":     func(w *standing) aggregate.Command { return w.End(w.id, events.OutcomeUnknown, false) },
		"end/none": func(w *standing) aggregate.Command { return w.End(w.id, events.OutcomeUnknown, true) },
		"sweep":    unchanged,
		"overdue": func(w *standing) aggregate.Command {
			w.Tick(2 * time.Hour)
			return aggregate.Sweep{Limit: 10}
		},
		"denied": func(w *standing) aggregate.Command {
			w.Do(aggregate.ChangePolicy{Text: rehearsal.DenyAll})
			return unchanged(w)
		},
		"closed": func(w *standing) aggregate.Command {
			w.Do(aggregate.CloseTask{Caller: operator, TaskID: "t"})
			return unchanged(w)
		},
		"orphaned": func(w *standing) aggregate.Command {
			w.Restart()
			return aggregate.Orphaned{EffectID: w.id}
		},
		"collect": func(w *standing) aggregate.Command {
			w.Tick(25 * time.Hour)
			return aggregate.Collect{Limit: 10}
		},
	}
}
