package projector

import (
	"fmt"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
	"pgregory.net/rapid"
)

// grow appends n entries of random commands, lawful and unlawful ones.
func (w *world) grow(t *rapid.T, n int) {
	for range n {
		w.at = w.at.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 0, 1, 1, 20, 20, 90_000, 7_200_000}).Draw(t, "pause")) * time.Millisecond)
		commands := make([]aggregate.Command, rapid.IntRange(1, 4).Draw(t, "commands"))
		for i := range commands {
			commands[i] = w.random(t)
		}
		w.do(commands...)
	}
}

// grown is a world with at least n entries, the same for the same seed.
func (w *world) grown(n, seed int) *world {
	rapid.Custom(func(t *rapid.T) int {
		for len(w.entries) < n {
			w.grow(t, 1)
		}
		return n
	}).Example(seed)
	return w
}

func (w *world) random(t *rapid.T) aggregate.Command {
	id := w.someEffect(t)
	task := w.someTask(t)
	run := rapid.SampledFrom([]events.RunID{"r1", "r2", "r3"}).Draw(t, "run")
	switch rapid.SampledFrom([]string{"prepare", "prepare", "prepare", "task", "withdraw", "claim", "claim", "report", "report", "report",
		"attempt", "attempted", "settle", "acknowledge", "revoke", "sweep", "collect", "collect", "close", "cancel", "finish", "law"}).Draw(t, "command") {
	case "prepare":
		c := rapid.SampledFrom([]aggregate.Caller{producer, producer, rival}).Draw(t, "who")
		op := rapid.SampledFrom([]events.OperationName{"charge", "charge", "pay"}).Draw(t, "operation")
		return w.prepare(c, op, task, run, rapid.Bool().Draw(t, "admit"))
	case "task":
		w.ids++
		return w.openTask(events.TaskID(fmt.Sprintf("t%d", w.ids)), rapid.SampledFrom([]time.Duration{time.Minute, 3 * time.Hour}).Draw(t, "life"))
	case "withdraw":
		return aggregate.Withdraw{Caller: producer, EffectID: id}
	case "revoke":
		return aggregate.Revoke{Caller: operator, EffectID: id}
	case "sweep":
		return aggregate.Sweep{Limit: 8, Recheck: rapid.Bool().Draw(t, "recheck")}
	case "collect":
		return aggregate.Collect{Limit: 4}
	case "close":
		return aggregate.CloseTask{Caller: operator, TaskID: w.otherThanRoot(task)}
	case "cancel":
		return aggregate.CancelRun{Caller: rival, RunID: run}
	case "finish":
		return aggregate.FinishRun{Caller: rival, RunID: run, Outcome: events.RunApplicationFailed}
	case "law":
		w.ids++
		return aggregate.ChangePolicy{Text: policyText + fmt.Sprintf("// %d\n", w.ids)}
	}
	return w.randomEnding(t, id)
}

// randomEnding drives an admitted effect on.
func (w *world) randomEnding(t *rapid.T, id events.EffectID) aggregate.Command {
	e := w.state.Effect(id)
	outcome := rapid.SampledFrom([]events.Outcome{events.OutcomeUnknown, events.OutcomeSucceeded, events.OutcomeNoEffect}).Draw(t, "outcome")
	switch {
	case e == nil || e.Admission == nil:
		return w.prepare(producer, "charge", "root", "r1", true)
	case e.State == wire.StateAdmitted:
		return w.claim(id)
	case e.State == wire.StateUnknown && e.Running() != nil:
		return aggregate.EndAttempt{EffectID: id, AttemptID: e.Running().AttemptID,
			Result: aggregate.Result{Outcome: outcome, Reason: events.ReasonReconciled, Evidence: events.Evidence{Source: "query"}}}
	case e.State == wire.StateUnknown && rapid.Bool().Draw(t, "acknowledge"):
		return aggregate.Acknowledge{Caller: operator, EffectID: id, Reason: "known"}
	case e.State == wire.StateUnknown:
		return aggregate.StartAttempt{Caller: operator, EffectID: id, Dispatcher: dispatcher}
	}
	return w.report(id, outcome)
}

// someEffect is any live effect; empty if there is none.
func (w *world) someEffect(t *rapid.T) events.EffectID {
	var ids []events.EffectID
	w.state.EachEffect(func(e *aggregate.Effect) bool {
		ids = append(ids, e.ID)
		return true
	})
	if len(ids) == 0 {
		return ""
	}
	return rapid.SampledFrom(ids).Draw(t, "effect")
}

// otherThanRoot spares the root, without which little happens any more.
func (w *world) otherThanRoot(id events.TaskID) events.TaskID {
	if id == "root" {
		return "none"
	}
	return id
}

// someTask is a task that is open, the root rather than another.
func (w *world) someTask(t *rapid.T) events.TaskID {
	ids := []events.TaskID{"root", "root"}
	w.state.EachTask(func(task *aggregate.Task) bool {
		if task.Tenant == producer.Tenant && task.Closed == nil && task.ExpiresAt > w.at {
			ids = append(ids, task.ID)
		}
		return true
	})
	return rapid.SampledFrom(ids).Draw(t, "task")
}
