package embedded_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
)

const (
	producers   = 8 // requests at a time
	concurrency = 6 // sends at a time
)

// lives hands the present life of the node to the producers.
type lives struct {
	mu      sync.Mutex
	changed *sync.Cond
	present *life
	over    bool
}

// life is a node that serves until it is killed.
type life struct {
	context.Context
	client *client.Client
}

func newLives() *lives {
	l := &lives{}
	l.changed = sync.NewCond(&l.mu)
	return l
}

func (l *lives) set(present *life, over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.present, l.over = present, over
	l.changed.Broadcast()
}

// next waits for a life; nil when it is over.
func (l *lives) next() *life {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.present == nil && !l.over {
		l.changed.Wait()
	}
	if l.over {
		return nil
	}
	return l.present
}

// acknowledged are the effects that a producer was told of.
type acknowledged struct {
	mu      sync.Mutex
	effects map[events.EffectID]bool // admitted, as told
}

func (a *acknowledged) add(e *wire.Effect) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.effects[e.EffectID] = a.effects[e.EffectID] || e.Receipt != nil
}

// produce submits effects one after the other, each until it is answered for,
// whatever becomes of the node meanwhile.
func produce(t *testing.T, l *lives, known *acknowledged, run string, random *rand.Rand) {
	for n := 0; ; n++ {
		request := wire.SubmitRequest{PrepareRequest: charge(run, strconv.Itoa(n), 1+random.IntN(9)), TimeoutMS: 5000}
		if random.IntN(2) == 0 {
			request.Wait = wire.WaitTerminal
		}
		for answered := false; !answered; {
			now := l.next()
			if now == nil {
				return
			}
			e, err := now.client.Submit(now, request)
			switch codeOf(err) {
			case "":
				if answered = err == nil; answered {
					known.add(&e)
				} // else it was not answered
			case wire.LedgerUnavailable, wire.CommitUnknown, wire.WaitTimeout:
			default:
				t.Errorf("%s/%d: %v", run, n, err)
				return
			}
		}
	}
}

// A node that is killed again and again, under load, sends nothing twice, loses
// nothing that it acknowledged, leaks no budget, and knows what it does not know
// (SPEC 18).
func TestKilled(t *testing.T) {
	t.Parallel()
	kills := 50
	if testing.Short() {
		kills = 10
	}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("EFFECTD_TEST_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("EFFECTD_TEST_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))

	s := newService(t)
	s.answers(func(w http.ResponseWriter, r *http.Request) {
		select { // a service has its time
		case <-time.After(time.Duration(rand.IntN(4000)) * time.Microsecond):
			s.done(w, r)
		case <-r.Context().Done():
		}
	})
	r := newRig(t, s, "concurrency: 32", fmt.Sprintf("concurrency: %d", concurrency), "timeout: 10s", "timeout: 2s",
		"reconcile:\n", "reconcile:\n  not_found_is_conclusive: true\n")
	r.write("effectd.yaml", "limits: {effect_records: 1000000, live_bytes: 4GiB}\n")
	r.start()
	r.openTask("shop", 1<<40)
	r.stop()

	l, known := newLives(), &acknowledged{effects: map[events.EffectID]bool{}}
	var group sync.WaitGroup
	for i := range producers {
		own := rand.New(rand.NewPCG(seed, uint64(i)+1))
		group.Go(func() { produce(t, l, known, fmt.Sprint("run-", i), own) })
	}
	for range kills {
		r.oneLife(l, random)
	}
	p := r.serve()
	last := &life{t.Context(), p.as(t, r, "producer")}
	l.set(last, false)
	eventually(t, "the last life works", func() bool { n, _ := s.total(); return n > 0 })
	l.set(nil, true)
	group.Wait()

	o := p.as(t, r, "operator")
	unknown := afterwards(t, o, s, known, kills)
	t.Logf("%d effects acknowledged, %d unknown after %d kills", len(known.effects), len(unknown), kills)
	for _, id := range unknown {
		e, err := o.Reconcile(t.Context(), wire.ReconcileRequest{EffectID: id})
		if err != nil || e.State != wire.StateSettled {
			t.Errorf("reconcile: %v %s", err, show(e))
		}
	}
	task, err := o.TaskGet(t.Context(), wire.TaskGetRequest{TaskID: "shop", MinPosition: fmt.Sprint(lastSeq(t, o))})
	if err != nil {
		t.Fatal(err)
	}
	p.terminate(t)
	r.books(s, task)
	if out, code := r.effectd("verify", "--data", r.dir); code != 0 {
		t.Errorf("verify: exit code %d\n%s", code, out)
	}
}

// oneLife is one life of the node, ended by SIGKILL: while it starts, or at a
// random moment under load.
func (r *rig) oneLife(l *lives, random *rand.Rand) {
	r.Helper()
	moment := time.Duration(random.IntN(200)) * time.Millisecond
	if random.IntN(6) == 0 {
		p := r.launch()
		<-time.After(moment)
		p.kill()
		return
	}
	p := r.serve()
	if !p.ready.Trusted {
		r.Fatal(p.ready.Reason)
	}
	ctx, cancel := context.WithCancel(r.Context())
	c := p.as(r, r, "producer")
	l.set(&life{ctx, c}, false)
	<-time.After(moment)
	p.kill()
	l.set(nil, false)
	cancel()
	c.Close()
}

func lastSeq(t testing.TB, o *client.Client) uint64 {
	t.Helper()
	s, err := o.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s.Seq
}

// afterwards waits until nothing moves any more, and compares what the ledger says
// of each effect with what the service saw. It returns the unknown effects.
func afterwards(t *testing.T, o *client.Client, s *service, known *acknowledged, kills int) (unknown []events.EffectID) {
	t.Helper()
	eventually(t, "nothing is on its way", func() bool {
		st, err := o.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return st.Effects[wire.StateAdmitted] == 0 && st.Effects[wire.StateDispatched] == 0
	})
	_, twice := s.total()
	if len(twice) > 0 {
		t.Fatalf("sent twice: %v", twice)
	}
	served := maps.Clone(s.requests)
	for id, admitted := range known.effects {
		e, err := o.Get(t.Context(), wire.GetRequest{EffectID: id})
		if err != nil {
			t.Fatalf("an acknowledged effect is lost: %v", err)
		}
		if admitted && e.State != wire.StateSettled && e.State != wire.StateUnknown {
			t.Errorf("an admitted effect is %s", e.State)
		}
	}
	list := wire.ListRequest{Limit: 500}
	for {
		page, err := o.List(t.Context(), list)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Items {
			n := served[string(e.IdempotencyKey)]
			delete(served, string(e.IdempotencyKey))
			switch {
			case e.State == wire.StateUnknown:
				unknown = append(unknown, e.EffectID)
			case e.Outcome == events.OutcomeSucceeded && n != 1, e.Outcome == events.OutcomeNoEffect && n != 0, e.State != wire.StateSettled && n != 0:
				t.Errorf("sent %d times: %s", n, show(e))
			}
		}
		if list.Cursor = page.Cursor; page.Cursor == "" {
			break
		}
	}
	if len(served) > 0 {
		t.Errorf("the service saw what the ledger does not know: %v", served)
	}
	if len(unknown) > kills*concurrency {
		t.Errorf("%d unknown after %d kills", len(unknown), kills)
	}
	return unknown
}

// books compares log, projection, accounts and service of a stopped node.
func (r *rig) books(s *service, task wire.Task) {
	r.Helper()
	entries := r.stored()
	state := folded(r, entries)
	for unit, a := range state.Task("main", "shop").Accounts {
		b := task.Budgets[unit]
		if a.Max != b.Max || a.Reserved != b.Reserved || a.Spent != b.Spent || a.Unknown != b.Unknown || a.Overrun != 0 {
			r.Errorf("%s: task.get says %+v, a fresh fold %+v", unit, b, a)
		}
		if a.Reserved != 0 {
			r.Errorf("%s: %+v is held though all is settled", unit, a)
		}
	}
	if spent := task.Budgets["usd_cents"].Spent; spent != s.sum() {
		r.Errorf("spent %d, the service charged %d", spent, s.sum())
	}
	r.unique(entries)
	sameProjection(r, r)
	state.EachEffect(func(e *aggregate.Effect) bool {
		if !e.State.Terminal() && e.State != wire.StatePermitted {
			r.Errorf("effect %s is %s", e.ID, e.State)
		}
		return true
	})
}

// unique checks that nothing that may happen once to an effect happened twice.
func (r *rig) unique(entries []events.Stored) {
	r.Helper()
	type fact struct {
		id  events.EffectID
		typ events.Type
	}
	seen := map[fact]events.Position{}
	causes := map[string]events.EffectID{}
	for _, entry := range entries {
		for i := range entry.Events {
			ev := &entry.Events[i]
			switch ev.Type {
			case events.TypePrepared:
				cause := string(ev.Tenant) + "\x00" + string(ev.RunID) + "\x00" + string(ev.CausalID)
				if other, ok := causes[cause]; ok {
					r.Errorf("effects %s and %s are of one cause", other, ev.EffectID)
				}
				causes[cause] = ev.EffectID
				fallthrough
			case events.TypePermitted, events.TypeAdmitted, events.TypeDispatched, events.TypeSettled, events.TypeRefused:
				at := events.Position{Seq: entry.Seq, Index: i}
				if before, ok := seen[fact{ev.EffectID, ev.Type}]; ok {
					r.Errorf("effect %s is %s at %s and at %s", ev.EffectID, ev.Type, before, at)
				}
				seen[fact{ev.EffectID, ev.Type}] = at
			}
		}
	}
}
