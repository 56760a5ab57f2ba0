package projector

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/events/wire"
	"github.com/effectd/effectd/events/wire/endpoint"
)

// standing is a node that has acknowledged an entry, and else never changes.
type standing uint64

func (standing) Distrust(string) {}

func (s standing) Acknowledged() uint64 { return uint64(s) }

func (standing) Standing() Standing {
	return Standing{Trusted: true, ClockTrusted: true, Dispatching: true, Node: "n1", Program: "test", LogBytes: 7}
}

func queries(p *Projection, w *world) *Queries { return NewQueries(p, w.log, standing(0)) }

func call(q *Queries, c aggregate.Caller, v wire.Verb, body string) (any, *wire.Error) {
	return q.Serve()[v](context.Background(), endpoint.Request{Caller: endpoint.Caller{Tenant: c.Tenant, Principal: c.Principal}, Verb: v, Body: []byte(body)})
}

func ask[T any](t fataler, q *Queries, c aggregate.Caller, v wire.Verb, body string) T {
	reply, refusal := call(q, c, v, body)
	if refusal != nil {
		t.Fatalf("%s %s: %v", v, body, refusal)
	}
	return reply.(T)
}

func refused(t fataler, q *Queries, c aggregate.Caller, v wire.Verb, body string) *wire.Error {
	reply, refusal := call(q, c, v, body)
	if refusal == nil {
		t.Fatalf("%s %s: %+v", v, body, reply)
	}
	return refusal
}

// shown is a projection with queries at the end of a world's log.
func shown(t *testing.T, w *world) (*Projection, *Queries) {
	p := fresh(t)
	p.opts.Now = func() events.Instant { return w.at }
	apply(t, p, w.entries...)
	return p, queries(p, w)
}

func byID(id events.EffectID) string { return fmt.Sprintf(`{"effect_id":%q}`, id) }

// P7: what one may not see answers exactly like what does not exist.
func TestScope(t *testing.T) {
	w := newWorld(t)
	charge, pay := w.settled(), w.must(w.prepare(producer, "pay", "root", "r1", false))[0].EffectID
	gone := w.settled()
	w.must(w.openTask("later", 1000*time.Hour))
	w.at = w.at.Add(30 * time.Minute)
	_, q := shown(t, w)

	sealed := w.state.Effect(charge).Prepared.Context
	everyone := []aggregate.Caller{producer, rival, operator, auditor, executor, stranger, foreign, overseer}
	none := map[wire.Verb]string{wire.EffectGet: byID("01NONE"), wire.EffectHistory: byID("01NONE"), wire.TaskGet: `{"task_id":"none"}`, wire.RunGet: `{"run_id":"none"}`}
	for _, c := range []struct {
		verb wire.Verb
		body string
		may  []aggregate.Caller
	}{
		{wire.EffectGet, byID(charge), []aggregate.Caller{producer, operator, auditor}},
		{wire.EffectGet, fmt.Sprintf(`{"run_id":%q,"causal_id":%q}`, sealed.RunID, sealed.CausalID), []aggregate.Caller{producer, operator, auditor}},
		{wire.EffectHistory, byID(charge), []aggregate.Caller{producer, operator, auditor}},
		{wire.EffectGet, byID(pay), []aggregate.Caller{producer, operator}},
		{wire.EffectHistory, byID(pay), []aggregate.Caller{producer, operator}},
		{wire.EffectGet, byID(gone), []aggregate.Caller{producer, operator, auditor}},
		{wire.TaskGet, `{"task_id":"later"}`, []aggregate.Caller{producer, rival, operator, auditor}},
		{wire.RunGet, `{"run_id":"r1"}`, []aggregate.Caller{producer}},
	} {
		for _, who := range everyone {
			reply, refusal := call(q, who, c.verb, c.body)
			may := false
			for _, m := range c.may {
				may = may || m == who
			}
			if may != (refusal == nil) {
				t.Errorf("%s: %s %s: %v", who.Actor(), c.verb, c.body, refusal)
			}
			if _, missing := call(q, who, c.verb, none[c.verb]); refusal != nil && !reflect.DeepEqual(refusal, missing) {
				t.Errorf("%s: %s %s: %v, but what is not there is %v", who.Actor(), c.verb, c.body, refusal, missing)
			}
			if refusal != nil && reply != nil {
				t.Error("a reply with a refusal")
			}
		}
	}
	for who, want := range map[aggregate.Caller]int{producer: 3, rival: 0, operator: 3, auditor: 2, executor: 0, foreign: 0, overseer: 0} {
		if got := ask[*wire.List[*wire.Effect]](t, q, who, wire.EffectList, ``); len(got.Items) != want {
			t.Errorf("%s lists %d, not %d", who.Actor(), len(got.Items), want)
		}
	}
	for _, v := range []wire.Verb{wire.EffectList, wire.OperationList, wire.LedgerStatus} {
		if refusal := refused(t, q, stranger, v, ``); refusal.Code != wire.Forbidden {
			t.Errorf("%s: %v", v, refusal)
		}
	}
}

// After collection the same principals see what remains; the history is the log's.
func TestCollectedScope(t *testing.T) {
	w := newWorld(t)
	id := w.settled()
	name := w.state.Effect(id).Prepared.Context
	w.at = w.at.Add(200 * time.Hour)
	w.must(aggregate.Collect{Limit: 10})
	p, q := shown(t, w)
	if p.State().Effect(id) != nil {
		t.Fatal("not collected")
	}
	named := fmt.Sprintf(`{"run_id":%q,"causal_id":%q}`, name.RunID, name.CausalID)
	for _, body := range []string{byID(id), named} {
		for _, who := range []aggregate.Caller{producer, operator, auditor} {
			v := ask[*wire.Effect](t, q, who, wire.EffectGet, body)
			if v.EffectID != id || v.State != wire.StateSettled || v.Outcome != events.OutcomeSucceeded {
				t.Errorf("%+v", v)
			}
		}
		for _, who := range []aggregate.Caller{rival, executor, stranger, foreign, overseer} {
			if refusal := refused(t, q, who, wire.EffectGet, body); refusal.Code != wire.UnknownEffect {
				t.Errorf("%s: %v", who.Actor(), refusal)
			}
		}
	}
	h := ask[*wire.History](t, q, auditor, wire.EffectHistory, byID(id))
	if n := len(h.Items); n != 6 || h.Items[n-1].Position != p.State().Head().Last { // prepared, permitted, admitted, dispatched, settled, collected
		t.Errorf("%d events", n)
	}
	if list := ask[*wire.List[*wire.Effect]](t, q, producer, wire.EffectList, `{}`); len(list.Items) != 0 {
		t.Errorf("%+v", list)
	}
}

// The history is every event of the effect as stored, in pages.
func TestHistory(t *testing.T) {
	w := newWorld(t)
	id := w.settled()
	w.settled()
	p, q := shown(t, w)
	var want []string
	for _, e := range w.entries {
		for i := range e.Events {
			if e.Events[i].EffectID == id {
				want = append(want, events.Position{Seq: e.Seq, Index: i}.String()+string(events.CanonicalOf(&e.Events[i])))
			}
		}
	}
	h := ask[*wire.History](t, q, producer, wire.EffectHistory, byID(id))
	var got []string
	for _, item := range h.Items {
		got = append(got, item.Position.String()+string(item.Event))
	}
	if !reflect.DeepEqual(got, want) || h.Position != p.State().Head().Last || h.Cursor != "" {
		t.Errorf("got %s\nwant %s", got, want)
	}
	rest := ask[*wire.History](t, q, producer, wire.EffectHistory, fmt.Sprintf(`{"effect_id":%q,"cursor":%q}`, id, h.Items[1].Position))
	if !reflect.DeepEqual(rest.Items, h.Items[2:]) {
		t.Errorf("%+v", rest)
	}
}

// Waiting reads: for a position, for a state, and what a wait in vain says.
func TestGetWaits(t *testing.T) {
	w := newWorld(t)
	id := w.admitted()
	p, q := shown(t, w)
	next := len(w.entries)
	w.must(w.claim(id))
	w.must(w.report(id, events.OutcomeUnknown))
	got := make(chan any, 2)
	for _, body := range []string{`{"effect_id":%q,"wait":"terminal","timeout_ms":60000}`, `{"effect_id":%q,"min_position":"` + w.state.Head().Last.String() + `","timeout_ms":60000}`} {
		go func() {
			reply, refusal := call(q, producer, wire.EffectGet, fmt.Sprintf(body, id))
			if refusal != nil {
				got <- refusal
				return
			}
			got <- reply
		}()
	}
	apply(t, p, w.entries[next:]...)
	for range 2 {
		if v, ok := (<-got).(*wire.Effect); !ok || v.State != wire.StateUnknown {
			t.Errorf("%+v", v)
		}
	}
	refusal := refused(t, q, producer, wire.EffectGet, `{"effect_id":"`+string(w.admittedShown(p))+`","wait":"terminal","timeout_ms":1}`)
	if refusal.Code != wire.WaitTimeout || refusal.Effect == nil || refusal.Effect.State != wire.StateAdmitted {
		t.Errorf("%+v", refusal)
	}
	if refusal := refused(t, q, producer, wire.EffectGet, `{"effect_id":"`+string(id)+`","min_position":"1000.0","timeout_ms":1}`); refusal.Code != wire.WaitTimeout {
		t.Errorf("%+v", refusal)
	}
	if refusal := refused(t, q, producer, wire.EffectGet, `{"effect_id":"01NONE","wait":"terminal"}`); refusal.Code != wire.UnknownEffect {
		t.Errorf("%+v", refusal)
	}
}

// Who got a reply reads its own write, even before it is applied; nothing is
// waited for when nothing more is applied.
func TestReadsOwnWrites(t *testing.T) {
	w := newWorld(t)
	p := fresh(t)
	apply(t, p, w.entries...)
	id := w.admitted()
	q := NewQueries(p, w.log, standing(len(w.entries)))
	got := make(chan *wire.Effect, 1)
	go func() { got <- ask[*wire.Effect](t, q, producer, wire.EffectGet, byID(id)) }()
	for waits := false; !waits; runtime.Gosched() {
		p.waiting.mu.Lock()
		waits = len(p.waiting.positions) > 0
		p.waiting.mu.Unlock()
		if len(got) > 0 {
			t.Fatal("answered from before the write")
		}
	}
	apply(t, p, w.entries[len(w.entries)-1])
	if v := <-got; v.EffectID != id || v.State != wire.StateAdmitted {
		t.Errorf("%+v", v)
	}
	w.log.Put([]byte("corrupt"))
	if err := p.Run(context.Background(), w.log); !errors.Is(err, eventlog.ErrUntrusted) {
		t.Fatal(err)
	}
	ask[*wire.Effect](t, NewQueries(p, w.log, unasked{t}), producer, wire.EffectGet, byID(id))
}

// A read that is ended while it waits for what was acknowledged is not answered from
// before that.
func TestStoppedRead(t *testing.T) {
	w := newWorld(t)
	id := w.admitted()
	p, _ := shown(t, w)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	q := NewQueries(p, w.log, standing(len(w.entries)+1))
	request := endpoint.Request{Caller: endpoint.Caller{Tenant: producer.Tenant, Principal: producer.Principal}, Body: []byte(byID(id))}
	if v, refusal := q.Serve()[wire.EffectGet](ctx, request); refusal == nil || refusal.Code != wire.LedgerUnavailable {
		t.Fatalf("%+v %v", v, refusal)
	}
}

// unasked is a node that must not be asked what to wait for.
type unasked struct{ t *testing.T }

func (unasked) Standing() Standing { return Standing{} }

func (unasked) Distrust(string) {}

func (u unasked) Acknowledged() uint64 {
	u.t.Error("it would wait")
	return 0
}

// admittedShown is an admitted effect that a projection shows.
func (w *world) admittedShown(p *Projection) events.EffectID {
	id := w.admitted()
	apply(w.tb, p, w.entries[len(w.entries)-1])
	return id
}

func TestTaskRunAndStatus(t *testing.T) {
	w := newWorld(t)
	w.settled()
	w.admitted()
	p, q := shown(t, w)
	last := p.State().Head().Last
	task := ask[*wire.Task](t, q, rival, wire.TaskGet, `{"task_id":"root","min_position":"1.0"}`)
	if task.Budgets["usd_cents"] != (wire.Budget{Max: 100_000, Reserved: 5, Spent: 5, Available: 99_990}) || task.Position != last {
		t.Errorf("%+v", task)
	}
	run := ask[*wire.Run](t, q, producer, wire.RunGet, `{"run_id":"r1"}`)
	if run.Effects[wire.StateSettled] != 1 || run.Effects[wire.StateAdmitted] != 1 || run.Position != last {
		t.Errorf("%+v", run)
	}
	ops := ask[*wire.List[wire.Operation]](t, q, executor, wire.OperationList, `{}`)
	if len(ops.Items) != 2 || ops.Items[0].Name != "charge" || ops.Items[0].Adapter != "http" || !ops.Items[0].Supports["query"] || ops.Position != last {
		t.Errorf("%+v", ops)
	}
	s := ask[*wire.Status](t, q, auditor, wire.LedgerStatus, `{}`)
	if !s.Trusted || s.Seq != p.State().Seq() || s.Position != last || s.Usage.EffectRecords != 2 || s.Usage.LogBytes != 7 || s.PolicyRevision != 1 ||
		s.Effects[wire.StateSettled] != 1 || s.Effects[wire.StateAdmitted] != 1 || s.Time != w.at || s.LedgerID != "01LEDGER" {
		t.Errorf("%+v", s)
	}
	if foreigners := ask[*wire.Status](t, q, foreign, wire.LedgerStatus, `{}`); len(foreigners.Effects) != 0 {
		t.Errorf("%+v", foreigners.Effects)
	}
}

// Every verb reads its request strictly.
func TestStrictRequests(t *testing.T) {
	_, q := shown(t, newWorld(t))
	for verb := range q.Serve() {
		if refusal := refused(t, q, producer, verb, `{"more":1}`); refusal.Code != wire.InvalidRequest {
			t.Errorf("%s: %v", verb, refusal)
		}
	}
	for _, body := range []string{`{"limit":501}`, `{"limit":-1}`, `{"cursor":"x"}`, `{"cursor":"AAAA"}`, `{"since":"yesterday"}`, `{"state":"lost"}`} {
		if refusal := refused(t, q, producer, wire.EffectList, body); refusal.Code != wire.InvalidRequest {
			t.Errorf("%s: %v", body, refusal)
		}
	}
}
