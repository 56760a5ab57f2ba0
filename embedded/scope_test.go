package embedded_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
)

// What is another's is the same as what does not exist, for every verb that names
// an effect, a run or a task; nothing is written, and nothing of it changes (SPEC 12).
func TestWhatIsAnothers(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := newRig(t, s)
	r.addUser("second", events.RoleProducer)
	seeds := map[events.Principal]string{}
	for name, role := range map[events.Principal]events.Role{"producer": events.RoleProducer, "operator": events.RoleOperator, "auditor": events.RoleAuditor} {
		_, seed, err := r.home().AddUser(home.NewUser{Tenant: "other", Principal: name, Role: role})
		if err != nil {
			t.Fatal(err)
		}
		seeds[name] = seed
	}
	r.start()
	r.openTask("shop", 1000)
	foreign := func(who events.Principal) *client.Client {
		c, err := client.Dial(r.node.Ready().NATSURL, seeds[who], "other", who)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	held, err := r.as("producer").Prepare(t.Context(), charge("r", "held", 5))
	if err != nil {
		t.Fatal(err)
	}
	s.answers(lose)
	lost := r.submit("r", "lost")
	s.answers(nil)
	unknownFor(t, lost, events.ReasonResponseLost)

	ctx, before := t.Context(), r.last()
	none := wire.Effect{EffectID: "01ARZ3NDEKTSV4RRFFQ69G5FAV", BindingDigest: held.BindingDigest}
	for verb, ask := range map[string]func(c *client.Client, e wire.Effect, run events.RunID, task events.TaskID) (any, error){
		"prepare in a task": func(c *client.Client, _ wire.Effect, _ events.RunID, task events.TaskID) (any, error) {
			request := charge("mine", "c", 5)
			request.TaskID = task
			return c.Prepare(ctx, request)
		},
		"admit": func(c *client.Client, e wire.Effect, _ events.RunID, _ events.TaskID) (any, error) {
			return c.Admit(ctx, wire.AdmitRequest{EffectID: e.EffectID, BindingDigest: e.BindingDigest, SealedContext: sealed("r", "held")})
		},
		"withdraw": func(c *client.Client, e wire.Effect, _ events.RunID, _ events.TaskID) (any, error) {
			return c.Withdraw(ctx, wire.EffectReasonRequest{EffectID: e.EffectID})
		},
		"get": func(c *client.Client, e wire.Effect, _ events.RunID, _ events.TaskID) (any, error) {
			return c.Get(ctx, wire.GetRequest{EffectID: e.EffectID})
		},
		"get by names": func(c *client.Client, _ wire.Effect, run events.RunID, _ events.TaskID) (any, error) {
			return c.Get(ctx, wire.GetRequest{RunID: run, CausalID: "held"})
		},
		"get run": func(c *client.Client, _ wire.Effect, run events.RunID, _ events.TaskID) (any, error) {
			return c.RunGet(ctx, wire.RunRequest{RunID: run})
		},
		"cancel run": func(c *client.Client, _ wire.Effect, run events.RunID, _ events.TaskID) (any, error) {
			return c.RunCancel(ctx, wire.RunRequest{RunID: run})
		},
		"finish run": func(c *client.Client, _ wire.Effect, run events.RunID, _ events.TaskID) (any, error) {
			return c.RunFinish(ctx, wire.RunRequest{RunID: run, Outcome: events.RunRejected})
		},
		"get task": func(c *client.Client, _ wire.Effect, _ events.RunID, task events.TaskID) (any, error) {
			return c.TaskGet(ctx, wire.TaskGetRequest{TaskID: task})
		},
		"list tasks": func(c *client.Client, _ wire.Effect, _ events.RunID, task events.TaskID) (any, error) {
			return c.TaskList(ctx, wire.TaskListRequest{Under: task})
		},
		"close task": func(c *client.Client, _ wire.Effect, _ events.RunID, task events.TaskID) (any, error) {
			return c.TaskClose(ctx, wire.TaskCloseRequest{TaskID: task})
		},
		"open below a task": func(c *client.Client, _ wire.Effect, _ events.RunID, task events.TaskID) (any, error) {
			request := taskRequest("below", 5)
			request.Parent, request.Holders = task, nil
			return c.TaskOpen(ctx, request)
		},
	} {
		for who, c := range map[string]*client.Client{"another producer": r.as("second"), "another tenant's": foreign("producer")} {
			alike(t, who+": "+verb, func(e wire.Effect, run events.RunID, task events.TaskID) error {
				_, err := ask(c, e, run, task)
				return err
			}, held, none)
		}
	}
	for verb, ask := range map[string]func(c *client.Client, e wire.Effect) (any, error){
		"revoke": func(c *client.Client, e wire.Effect) (any, error) {
			return c.Revoke(ctx, wire.EffectReasonRequest{EffectID: e.EffectID})
		},
		"reconcile": func(c *client.Client, e wire.Effect) (any, error) {
			return c.Reconcile(ctx, wire.ReconcileRequest{EffectID: e.EffectID})
		},
		"settle": func(c *client.Client, e wire.Effect) (any, error) {
			return c.Settle(ctx, wire.SettleRequest{EffectID: e.EffectID, Outcome: events.OutcomeFailed, Evidence: evidence})
		},
		"acknowledge": func(c *client.Client, e wire.Effect) (any, error) {
			return c.Acknowledge(ctx, wire.EffectReasonRequest{EffectID: e.EffectID, Reason: "theirs"})
		},
		"get": func(c *client.Client, e wire.Effect) (any, error) {
			return c.Get(ctx, wire.GetRequest{EffectID: e.EffectID})
		},
	} {
		o := foreign("operator")
		for _, e := range []wire.Effect{held, lost} {
			alike(t, "another tenant's operator: "+verb, func(e wire.Effect, _ events.RunID, _ events.TaskID) error { _, err := ask(o, e); return err }, e, none)
		}
	}
	for _, causal := range []string{"held", "mine"} { // a run has one principal, also for equal requests
		_, err := r.as("second").Submit(ctx, wire.SubmitRequest{PrepareRequest: charge("r", causal, 5)})
		refusedWith(t, err, wire.UnknownRun)
	}
	for who, c := range map[string]*client.Client{"second": r.as("second"), "foreign": foreign("auditor")} {
		if page, err := c.List(ctx, wire.ListRequest{}); err != nil || len(page.Items) != 0 {
			t.Errorf("%s is shown %d effects: %v", who, len(page.Items), err)
		}
	}

	if last := r.last(); last != before {
		t.Fatalf("%d entries of refused requests", last-before)
	}
	r.account(5, 0, 5)
	if e, err := r.as("producer").Admit(ctx, wire.AdmitRequest{EffectID: held.EffectID, BindingDigest: held.BindingDigest, SealedContext: sealed("r", "held")}); err != nil || e.Repeat {
		t.Fatal(err, show(e))
	}
	settledAs(t, r.ended(held.EffectID), events.OutcomeSucceeded)
	settledAs(t, r.reconcile(lost.EffectID), events.OutcomeSucceeded)
	s.served(t, 2)
}

// alike checks that a request about what is another's is refused exactly as one
// about what does not exist.
func alike(t testing.TB, what string, ask func(wire.Effect, events.RunID, events.TaskID) error, theirs, none wire.Effect) {
	t.Helper()
	var got, want *wire.Error
	if !errors.As(ask(theirs, "r", "shop"), &got) || !errors.As(ask(none, "none", "none"), &want) {
		t.Errorf("%s: %v, and of none %v", what, got, want)
		return
	}
	switch want.Code {
	case wire.UnknownEffect, wire.UnknownRun, wire.UnknownTask:
	default:
		t.Errorf("%s: %v", what, want)
	}
	if *got != *want {
		t.Errorf("%s: %v, of none %v", what, got, want)
	}
}

// Who prepares ten thousand effects holds its thousand and takes nothing from the
// others.
func TestTenThousandHeld(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := newRig(t, s)
	r.addUser("second", events.RoleProducer)
	r.start()
	r.openTask("shop", 1_000_000)
	task := taskRequest("flood", 1_000_000)
	task.Holders = []events.Actor{"main/second"}
	if _, err := r.as("operator").TaskOpen(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	var held, refused, during atomic.Int64
	r.many(10_000, func(i int) error {
		if i%1000 == 999 { // the other one works on
			during.Add(1)
			e, err := r.as("producer").Submit(t.Context(), wire.SubmitRequest{PrepareRequest: charge("r", fmt.Sprint(i), 5), Wait: wire.WaitTerminal,
				TimeoutMS: patience.Milliseconds()})
			if err == nil && e.State != wire.StateSettled {
				err = fmt.Errorf("it is %s", e.State)
			}
			return err
		}
		request := charge("flood", fmt.Sprint(i), 5)
		request.TaskID = "flood"
		_, err := r.as("second").Prepare(t.Context(), request)
		switch {
		case err == nil:
			held.Add(1)
		case codeOf(err) == wire.QuotaExceeded:
			refused.Add(1)
		default:
			return err
		}
		return nil
	})
	if held.Load() != 1000 || held.Load()+refused.Load()+during.Load() != 10_000 {
		t.Fatalf("%d held, %d refused", held.Load(), refused.Load())
	}
	if _, err := r.as("producer").Prepare(t.Context(), charge("r", "one more", 5)); err != nil {
		t.Fatal(err)
	}
	r.account(0, 5*during.Load(), 0)
	s.served(t, int(during.Load()))
	if n := count(readAll(t, r.log()), events.TypePrepared, ""); n != 1000+int(during.Load())+1 {
		t.Errorf("%d effects in the log", n)
	}
}
