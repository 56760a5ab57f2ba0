package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
)

func queuedCharge(run string, n int) wire.SubmitRequest {
	return wire.SubmitRequest{PrepareRequest: charge(run, fmt.Sprint(n), 1+n%9)}
}

// queue puts a request into the intake.
func (r *rig) queue(who string, request wire.SubmitRequest) wire.Queued {
	r.Helper()
	q, err := r.as(who).Queue(r.Context(), request)
	if err != nil {
		r.Fatal(err)
	}
	return q
}

// put puts any text where a producer's requests go, and waits until it is kept.
func (r *rig) put(who, body string) {
	r.Helper()
	m, err := r.as(who).Conn().Request(wire.RequestsSubject("main", events.Principal(who)), []byte(body), patience)
	if err != nil || strings.Contains(string(m.Data), "error") {
		r.Fatalf("%s: %v", m.Data, err)
	}
}

// drained waits until no request waits any more.
func (r *rig) drained() {
	r.Helper()
	eventually(r, "the intake is empty", func() bool { return r.status().Intake.Waiting == 0 })
}

// endOf waits for the end of an effect that was asked for in the intake.
func (r *rig) endOf(run, causal string) (e wire.Effect) {
	r.Helper()
	eventually(r, "effect "+run+"/"+causal+" ends", func() bool {
		var err error
		e, err = r.as("operator").Get(r.Context(), wire.GetRequest{RunID: events.RunID(run), CausalID: events.CausalID(causal), Wait: wire.WaitTerminal})
		return err == nil
	})
	return e
}

func (r *rig) denials() []wire.Denial {
	r.Helper()
	page, err := r.as("operator").Denials(r.Context(), wire.DenialListRequest{Limit: 500})
	if err != nil {
		r.Fatal(err)
	}
	return page.Items
}

// prepared lists the causal ids of a run in the order of the log.
func prepared(entries []events.Stored, run string) (ids []string) {
	for _, entry := range entries {
		for i := range entry.Events {
			if ev := &entry.Events[i]; ev.Type == events.TypePrepared && string(ev.RunID) == run {
				ids = append(ids, string(ev.CausalID))
			}
		}
	}
	return ids
}

func numbers(n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprint(i))
	}
	return ids
}

// Requests of the intake are decided once each and in order, though every one is
// published twice and the node is killed again and again (I1, I2; SPEC 6).
func TestIntakeKilled(t *testing.T) {
	t.Parallel()
	const requests, kills = 200, 5
	s := newService(t)
	r := newRig(t, s, "reconcile:\n", "reconcile:\n  not_found_is_conclusive: true\n")
	r.start()
	r.openTask("shop", 1<<40)
	r.stop()

	l, queued := newLives(), make(chan struct{})
	go func() {
		defer close(queued)
		for n := range 2 * requests {
			for kept := false; !kept; {
				now := l.next()
				if now == nil {
					return
				}
				_, err := now.client.Queue(now, queuedCharge("run", n/2))
				if kept = err == nil; !kept && !errors.Is(err, client.ErrUnreachable) {
					t.Error(err)
					return
				}
			}
		}
	}()
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	for range kills {
		p := r.serve()
		ctx, cancel := context.WithCancel(t.Context())
		c := p.as(t, r, "producer")
		l.set(&life{ctx, c}, false)
		<-time.After(time.Duration(random.IntN(150)) * time.Millisecond)
		p.kill()
		l.set(nil, false)
		cancel()
		c.Close()
	}
	p := r.serve()
	l.set(&life{t.Context(), p.as(t, r, "producer")}, false)
	take(t, "everything is queued", queued)
	l.set(nil, true)

	o := p.as(t, r, "operator")
	eventually(t, "the intake is empty", func() bool {
		st, err := o.Status(t.Context())
		return err == nil && st.Intake.Serving && st.Intake.Waiting == 0
	})
	for _, id := range afterwards(t, o, s, &acknowledged{}, kills*32) {
		if e, err := o.Reconcile(t.Context(), wire.ReconcileRequest{EffectID: id}); err != nil || e.State != wire.StateSettled {
			t.Errorf("reconcile: %v %s", err, show(e))
		}
	}
	succeeded := 0
	for n := range requests {
		e, err := o.Get(t.Context(), wire.GetRequest{RunID: "run", CausalID: events.CausalID(fmt.Sprint(n)), MinPosition: fmt.Sprint(lastSeq(t, o))})
		if err != nil || e.State != wire.StateSettled {
			t.Fatalf("%d: %v %s", n, err, show(e))
		}
		if e.Outcome == events.OutcomeSucceeded {
			succeeded++
		}
	}
	s.served(t, succeeded)
	if denied, err := o.Denials(t.Context(), wire.DenialListRequest{}); err != nil || len(denied.Items) > 0 {
		t.Errorf("denials: %v %+v", err, denied.Items)
	}
	task, err := o.TaskGet(t.Context(), wire.TaskGetRequest{TaskID: "shop", MinPosition: fmt.Sprint(lastSeq(t, o))})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d were sent", succeeded, requests)
	p.terminate(t)
	r.books(s, task)
	if got := prepared(r.stored(), "run"); !slices.Equal(got, numbers(requests)) {
		t.Errorf("prepared in the order %v", got)
	}
}

// What cannot be accepted is denied with its code, tells no value, and holds up
// nothing behind it (I4, I5).
func TestIntakePoison(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := running(t, s)
	r.queue("producer", queuedCharge("first", 0))
	secret := "s3cr3t"
	want := []string{}
	poison := func(code wire.Code, body string) {
		t.Helper()
		r.put("producer", body)
		want = append([]string{string(code)}, want...)
	}
	poison(wire.InvalidPayload, `{"task_id": `+secret)
	poison(wire.InvalidPayload, `{"a":"`+secret+`","a":1}`)
	poison(wire.InvalidPayload, "\xff\xfe"+secret)
	poison(wire.InvalidRequest, `["`+secret+`"]`)
	poison(wire.InvalidRequest, ``)
	valid := func(change string, to string) string {
		text, err := json.Marshal(queuedCharge("bad", len(want)))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Replace(string(text), change, to, 1)
	}
	poison(wire.InvalidRequest, valid(`{`, `{"password":"`+secret+`",`))
	poison(wire.UnknownOperation, valid(`"charge"`, `"refund"`))
	poison(wire.UnknownTask, valid(`"shop"`, `"other"`))
	poison(wire.InputSchemaViolation, valid(`"a-1"`, `"a-1","`+secret+`":"`+secret+`"`))
	poison(wire.BudgetExceeded, valid(`"amount":`, `"amount":99999999`))
	poison(wire.BindingMismatch, strings.Replace(valid(`"causal_id":"10"`, `"causal_id":"0"`), `"bad"`, `"first"`, 1))
	r.queue("producer", queuedCharge("last", 0))
	settledAs(t, r.endOf("last", "0"), events.OutcomeSucceeded)
	settledAs(t, r.endOf("first", "0"), events.OutcomeSucceeded)
	r.drained()
	got := []string{}
	for i, d := range r.denials() {
		got = append(got, string(d.Code))
		if d.V != 1 || d.Tenant != "main" || d.Principal != "producer" || d.Verb != wire.EffectSubmit || d.Message == "" || d.Time == 0 ||
			d.RequestSeq != uint64(len(want)+1-i) {
			t.Errorf("%+v", d)
		}
		if text := string(events.CanonicalOf(d)); strings.Contains(text, secret) && d.Code != wire.InputSchemaViolation {
			t.Errorf("it tells a value: %s", text)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("denied with %v, want %v", got, want)
	}
	s.served(t, 2)
}

// A line that waits for room keeps its order, loses nothing, and holds up nobody
// else; a producer that floods fills its own part of the queue alone (I3, I4).
func TestIntakeWaits(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := newRig(t, s)
	r.write("effectd.yaml", "limits: {prepared_per_principal: 1}\n")
	r.addUser("second", events.RoleProducer)
	r.start()
	task := taskRequest("shop", 1_000_000)
	task.Holders = append(task.Holders, "main/second")
	if _, err := r.as("operator").TaskOpen(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	held, err := r.as("producer").Prepare(t.Context(), charge("held", "0", 5))
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for ; kept < 20; kept++ {
		r.queue("producer", queuedCharge("flood", kept))
	}
	for n := range 5 {
		r.queue("second", queuedCharge("second", n))
		settledAs(t, r.endOf("second", fmt.Sprint(n)), events.OutcomeSucceeded)
	}
	for ; ; kept++ {
		_, err := r.as("producer").Queue(t.Context(), queuedCharge("flood", kept))
		if codeOf(err) == wire.CapacityExhausted {
			break
		}
		if err != nil || kept > 2000 {
			t.Fatalf("the queue took %d requests of one producer: %v", kept, err)
		}
	}
	r.queue("second", queuedCharge("second", 5))
	settledAs(t, r.endOf("second", "5"), events.OutcomeSucceeded)
	if status := r.status(); status.Intake.Waiting != uint64(kept) || len(r.denials()) > 0 {
		t.Fatalf("%+v, want %d waiting; %d denials", status.Intake, kept, len(r.denials()))
	}
	s.served(t, 6)
	r.restart() // what waits is still there, and nothing of it was decided
	if _, err := r.as("producer").Withdraw(t.Context(), wire.EffectReasonRequest{EffectID: held.EffectID, Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	settledAs(t, r.endOf("flood", fmt.Sprint(kept-1)), events.OutcomeSucceeded)
	r.drained()
	if got := prepared(readAll(t, r.log()), "flood"); !slices.Equal(got, numbers(kept)) {
		t.Errorf("%d requests were decided in the order %v", kept, got)
	}
	s.served(t, 6+kept)
}

// An admission that is refused for its budget leaves the effect permitted; the
// intake does not try again by itself (SPEC 7).
func TestIntakeBudget(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := newRig(t, s)
	r.start()
	r.openTask("shop", 3)
	r.queue("producer", wire.SubmitRequest{PrepareRequest: charge("r", "big", 4)})
	r.queue("producer", wire.SubmitRequest{PrepareRequest: charge("r", "small", 3)})
	settledAs(t, r.endOf("r", "small"), events.OutcomeSucceeded)
	d := r.denials()
	if len(d) != 1 || d[0].Code != wire.BudgetExceeded || d[0].RunID != "r" || d[0].CausalID != "big" || d[0].EffectID == "" {
		t.Fatalf("%+v", d)
	}
	if e := r.get(d[0].EffectID); e.State != wire.StatePermitted {
		t.Fatal(show(e))
	}
	s.served(t, 1)
}

// Requests of a producer that is none any more are denied, and gone.
func TestIntakeOfRemovedUser(t *testing.T) {
	t.Parallel()
	r := newRig(t, newService(t))
	r.write("effectd.yaml", "limits: {prepared_per_principal: 1}\n")
	r.addUser("second", events.RoleProducer)
	r.start()
	task := taskRequest("shop", 100)
	task.Holders = append(task.Holders, "main/second")
	if _, err := r.as("operator").TaskOpen(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	if _, err := r.as("second").Prepare(t.Context(), charge("held", "0", 5)); err != nil {
		t.Fatal(err)
	}
	r.queue("second", queuedCharge("second", 0))
	r.queue("second", queuedCharge("second", 1))
	r.stop()
	if err := r.home().RemoveUser("main", "second"); err != nil {
		t.Fatal(err)
	}
	r.start()
	r.drained()
	if d := r.denials(); len(d) != 2 || d[0].Code != wire.Forbidden || d[1].Principal != "second" {
		t.Fatalf("%+v", d)
	}
}

// Denials of endpoints that leave nothing in the log are kept; those that the log
// tells of are not (SPEC 7, 12).
func TestDenialsOfEndpoints(t *testing.T) {
	t.Parallel()
	r := newRig(t, newService(t))
	_, seed, err := r.home().AddUser(home.NewUser{Tenant: "other", Principal: "auditor", Role: events.RoleAuditor})
	if err != nil {
		t.Fatal(err)
	}
	r.start()
	r.openTask("shop", 1000)
	r.submit("r", "c")
	e, err := r.as("producer").Prepare(t.Context(), charge("r", "held", 5))
	if err != nil {
		t.Fatal(err)
	}
	p := r.as("producer")
	_, err = p.Withdraw(t.Context(), wire.EffectReasonRequest{EffectID: "01NONE", Reason: "x"})
	refusedWith(t, err, wire.UnknownEffect)
	_, err = p.Submit(t.Context(), wire.SubmitRequest{PrepareRequest: charge("r", "c", 6)})
	refusedWith(t, err, wire.BindingMismatch)
	_, err = p.Admit(t.Context(), wire.AdmitRequest{EffectID: e.EffectID, BindingDigest: e.BindingDigest, SealedContext: sealed("r", "other")})
	refusedWith(t, err, wire.EffectContextMismatch) // the log has it as refused
	_, err = p.Submit(t.Context(), wire.SubmitRequest{PrepareRequest: wire.PrepareRequest{TaskID: "none", Operation: "charge",
		Payload: events.Raw(`{}`), SealedContext: sealed("r", "d")}})
	refusedWith(t, err, wire.UnknownTask)
	eventually(t, "three denials are kept", func() bool { return len(r.denials()) >= 3 })
	got := []string{}
	for _, d := range r.denials() {
		got = append(got, strings.TrimSpace(string(d.Verb)+" "+string(d.Code)+" "+string(d.RunID)+" "+string(d.CausalID)))
	}
	slices.Sort(got)
	if want := []string{"effect.submit binding_mismatch r c", "effect.submit unknown_task r d", "effect.withdraw unknown_effect"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	// By pages, and by the consumers that effectd made.
	page, err := r.as("auditor").Denials(t.Context(), wire.DenialListRequest{Limit: 2})
	if err != nil || len(page.Items) != 2 || page.Cursor == "" {
		t.Fatalf("%v %+v", err, page)
	}
	rest, err := r.as("auditor").Denials(t.Context(), wire.DenialListRequest{Limit: 2, Cursor: page.Cursor})
	if err != nil || len(rest.Items) != 1 || rest.Cursor != "" || rest.Items[0].Code != wire.UnknownEffect {
		t.Fatalf("%v %+v", err, rest)
	}
	for _, who := range []string{"operator", "auditor"} {
		if n := waiting(t, r.as(who), "denials-main-"+who); n != 3 {
			t.Errorf("%s reads %d denials", who, n)
		}
	}
	other, err := client.Dial(r.node.Ready().NATSURL, seed, "other", "auditor")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if page, err := other.Denials(t.Context(), wire.DenialListRequest{}); err != nil || len(page.Items) > 0 {
		t.Errorf("another tenant reads %v %+v", err, page)
	}
	if n := waiting(t, other, "denials-other-auditor"); n != 0 {
		t.Errorf("another tenant reads %d denials", n)
	}
}

// waiting reads what a consumer of denials has at once.
func waiting(t testing.TB, c *client.Client, consumer string) (n int) {
	t.Helper()
	js, err := jetstream.New(c.Conn())
	if err != nil {
		t.Fatal(err)
	}
	from, err := js.Consumer(t.Context(), wire.DenialStream, consumer)
	if err != nil {
		t.Fatal(err)
	}
	batch, err := from.FetchNoWait(100)
	if err != nil {
		t.Fatal(err)
	}
	for m := range batch.Messages() {
		n++
		if err := m.Ack(); err != nil {
			t.Error(err)
		}
	}
	if batch.Error() != nil {
		t.Error(batch.Error())
	}
	return n
}

// Nobody puts requests where another's go, not by a reply subject either, and
// nobody reads them or makes a consumer (I6; SPEC 12).
func TestIntakeIsOnesOwn(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := newRig(t, s)
	r.addUser("second", events.RoleProducer)
	r.start()
	r.openTask("shop", 1000)
	body, err := json.Marshal(queuedCharge("forged", 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, who := range []string{"second", "operator", "auditor", "approver", "executor"} {
		conn, forbidden := r.hostile(who)
		for _, subject := range []string{"effects.requests.main.producer", "effects.requests.other.second", "effects.denied.main.forbidden",
			"$JS.API.CONSUMER.CREATE.EFFECT_REQUESTS.x", "$JS.API.CONSUMER.CREATE.EFFECT_DENIALS.x.effects.denied.>", "$JS.API.CONSUMER.DURABLE.CREATE.EFFECT_REQUESTS.x",
			"$JS.API.CONSUMER.MSG.NEXT.EFFECT_REQUESTS.intake-main-producer", "$JS.API.CONSUMER.DELETE.EFFECT_REQUESTS.intake-main-producer",
			"$JS.API.STREAM.PURGE.EFFECT_REQUESTS", "$JS.API.STREAM.DELETE.EFFECT_DENIALS", "$JS.API.STREAM.MSG.GET.EFFECT_DENIALS",
			"$JS.ACK.EFFECT_REQUESTS.intake-main-producer.1.1.1.1.0"} {
			if err := conn.Publish(subject, body); err != nil {
				t.Fatal(err)
			}
			if err := take(t, who+" is forbidden to publish on "+subject, forbidden); !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("%s on %s: %v", who, subject, err)
			}
		}
		for _, subject := range []string{"effects.requests.>", "effects.requests.main.producer", "effects.denied.>", "effects.denied.main.*"} {
			if _, err := conn.SubscribeSync(subject); err != nil {
				t.Fatal(err)
			}
			if err := take(t, who+" is forbidden to subscribe "+subject, forbidden); !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("%s on %s: %v", who, subject, err)
			}
		}
		// An answer is no request of whom its subject names.
		question := "effects.api.main." + who + ".ledger.status"
		if err := conn.PublishRequest(question, "effects.requests.main.producer", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Request(question, nil, patience); err != nil {
			t.Fatal(err)
		}
	}
	conn, _ := r.hostile("second")
	for _, reply := range []string{"effects.requests.main.producer", "effects.denied.main.x", "effects.log"} {
		if err := conn.PublishRequest("effects.requests.main.second", reply, []byte("poison")); err != nil {
			t.Fatal(err)
		}
	}
	r.put("second", "poison")
	eventually(t, "what it may do is done", func() bool { return len(r.denials()) >= 4 })
	r.drained()
	for _, d := range r.denials() {
		if d.Principal != "second" {
			t.Errorf("%+v", d)
		}
	}
	if got := prepared(readAll(t, r.log()), "forged"); len(got) > 0 {
		t.Error("a forged request was decided")
	}
	s.served(t, 0)
}

// A ledger that has no queue, made by an earlier program, is served without, and
// says so.
func TestLedgerWithoutIntake(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := newRig(t, s)
	r.store(func(js jetstream.JetStream) {
		for _, name := range []string{wire.RequestStream, wire.DenialStream} {
			if err := js.DeleteStream(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
	})
	p := r.serve()
	o := p.as(t, r, "operator")
	if _, err := o.TaskOpen(t.Context(), taskRequest("shop", 1000)); err != nil {
		t.Fatal(err)
	}
	st, err := o.Status(t.Context())
	if err != nil || !st.Trusted || st.Intake.Serving || !strings.Contains(st.Intake.Reason, "EFFECT_REQUESTS") && !strings.Contains(st.Intake.Reason, "EFFECT_DENIALS") {
		t.Fatalf("%v %+v", err, st.Intake)
	}
	c := p.as(t, r, "producer")
	if _, err := c.Queue(t.Context(), queuedCharge("r", 0)); !errors.Is(err, client.ErrNoIntake) {
		t.Error(err)
	}
	if out, code := r.effectd("submit", "--data", r.dir, "--queue", "--task", "shop", "--operation", "charge", `{}`); code != 4 || !strings.Contains(out, "effectd doctor") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if out, _ := r.effectd("doctor", "--data", r.dir); !strings.Contains(out, "is missing: only init makes it") {
		t.Error(out)
	}
	if out, code := r.effectd("denials", "--data", r.dir); code != 1 || !strings.Contains(out, "unsupported") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	e, err := c.Submit(t.Context(), wire.SubmitRequest{PrepareRequest: charge("r", "c", 5), Wait: wire.WaitTerminal, TimeoutMS: patience.Milliseconds()})
	if err != nil {
		t.Fatal(err)
	}
	settledAs(t, e, events.OutcomeSucceeded)
	p.terminate(t)
	r.store(func(js jetstream.JetStream) {
		if _, err := js.Stream(t.Context(), wire.RequestStream); !errors.Is(err, jetstream.ErrStreamNotFound) {
			t.Errorf("serve made the stream: %v", err)
		}
	})
}
