package embedded_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/ledger"
	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/events/wire"
)

// gated is a log whose appends wait to be let, one by one.
type gated struct {
	*eventlog.Memory
	offered chan events.Stored
	let     chan struct{}
}

func newGated() *gated {
	g := &gated{eventlog.NewMemory("", time.Now()), make(chan events.Stored), make(chan struct{})}
	return g
}

// shut makes every append from now on wait; at the end of the test none does any
// more, so that a failure does not hang.
func (g *gated) shut(t testing.TB) {
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	g.Memory.Before = func(e events.Stored) error {
		select {
		case g.offered <- e:
		case <-over:
			return nil
		}
		select {
		case <-g.let:
		case <-over:
		}
		return nil
	}
}

// actors lists who is behind the first event of each decision in an entry.
func actors(e events.Stored) (out []events.Actor) {
	for i := range e.Events {
		if e.Events[i].Type == events.TypePrepared {
			out = append(out, e.Events[i].Actor)
		}
	}
	return out
}

// However many requests a principal has waiting, another's is in the next entry
// (SPEC 12).
func TestFloodStarvesNobody(t *testing.T) {
	t.Parallel()
	log := newGated()
	l := write(t, ledger.Config{Read: newHands().read, CommitTimeout: patience}, log)
	found(t, l, "producer", "flood")
	flood := aggregate.Caller{Tenant: "main", Principal: "flood"}
	log.shut(t)
	var waiting, answered sync.WaitGroup
	ask := func(c aggregate.Caller, n int) {
		command := prepare(t, c, charge(string(c.Principal), fmt.Sprint(n), 5), false)
		ctx := newQueued(t.Context(), &waiting)
		answered.Go(func() {
			if o, err := l.Do(ctx, c.Actor(), command); err != nil || o.Refusal != nil {
				t.Error(err, o.Refusal)
			}
		})
	}
	ask(flood, 0)
	take(t, "the first entry is offered", log.offered) // and the writer is busy with it
	for n := range 500 {
		ask(flood, n+1)
	}
	waiting.Wait()
	ask(producer, 0)
	waiting.Wait()
	log.let <- struct{}{}
	entry := take(t, "the next entry is offered", log.offered)
	if who := actors(entry); !slices.Contains(who, producer.Actor()) {
		t.Errorf("the next turn is of %d commands, and none of them the other's", len(who))
	}
	log.Memory.Before = nil
	log.let <- struct{}{}
	answered.Wait()
	if s := folded(t, readAll(t, log)); s.EffectCount() != 502 {
		t.Fatal(s.EffectCount())
	}
}

// A command whose caller stopped waiting before it was taken up is never decided.
func TestAbandonedCommand(t *testing.T) {
	t.Parallel()
	log := newGated()
	l := write(t, ledger.Config{Read: newHands().read, CommitTimeout: patience}, log)
	found(t, l, "producer")
	log.shut(t)
	var waiting, answered sync.WaitGroup
	ask := func(ctx context.Context, causal string, want wire.Code) {
		command := prepare(t, producer, charge("r", causal, 5), false)
		answered.Go(func() {
			if _, err := l.Do(ctx, producer.Actor(), command); codeOf(err) != want {
				t.Errorf("%s: %v, want %q", causal, err, want)
			}
		})
	}
	busy, leave := context.WithCancel(t.Context())
	ask(newQueued(busy, &waiting), "taken", wire.CommitUnknown)
	take(t, "the first entry is offered", log.offered)
	gone, forget := context.WithCancel(t.Context())
	ask(newQueued(gone, &waiting), "gone", wire.LedgerUnavailable)
	waiting.Wait()
	forget()
	leave()
	answered.Wait()
	log.Memory.Before = nil
	log.let <- struct{}{}
	ask(t.Context(), "taken", "")
	answered.Wait()
	s := folded(t, readAll(t, log))
	if s.Causal("main", "r", "taken") == nil || s.Causal("main", "r", "gone") != nil {
		t.Fatal("what was taken must be decided, what was left must not")
	}
}

// A principal at its maximum of requests in flight is refused; another is not.
func TestRequestsInFlight(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := newRig(t, s, "timeout: 10s", "timeout: 60s")
	r.write("effectd.yaml", "limits: {requests_in_flight: 4}\n")
	r.addUser("second", events.RoleProducer)
	r.start()
	r.openTask("shop", 1000)
	arrived, let := s.holds()
	p := r.as("producer")
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			e, err := p.Submit(t.Context(), wire.SubmitRequest{PrepareRequest: charge("r", fmt.Sprint(i), 5), Wait: wire.WaitTerminal, TimeoutMS: patience.Milliseconds()})
			if err != nil || e.State != wire.StateSettled {
				t.Error(err, e.State)
			}
		})
	}
	for range 4 {
		take(t, "a send arrives", arrived)
	}
	_, err := p.Submit(t.Context(), wire.SubmitRequest{PrepareRequest: charge("r", "more", 5)})
	refusedWith(t, err, wire.QuotaExceeded)
	_, err = p.Get(t.Context(), wire.GetRequest{RunID: "r", CausalID: "0", Wait: wire.WaitTerminal})
	refusedWith(t, err, wire.QuotaExceeded) // who waits for a read takes room too
	_, err = r.as("second").Prepare(t.Context(), charge("other", "c", 5))
	refusedWith(t, err, wire.UnknownTask) // heard, and not a holder
	close(let)
	group.Wait()
	settledAs(t, r.submit("r", "more"), events.OutcomeSucceeded)
	s.served(t, 5)
}

func (r *rig) addUser(name events.Principal, role events.Role) {
	r.Helper()
	if _, _, err := r.home().AddUser(home.NewUser{Principal: name, Role: role}); err != nil {
		r.Fatal(err)
	}
}

// A principal at its maximum of prepared effects is refused until one of them
// ends; at the maximum of records everybody is.
func TestPreparedQuota(t *testing.T) {
	t.Parallel()
	r := newRig(t, newService(t))
	r.write("effectd.yaml", "limits: {prepared_per_principal: 3, effect_records: 5}\n")
	r.start()
	r.openTask("shop", 1000)
	p := r.as("producer")
	var first wire.Effect
	prepare := func(causal string) error {
		e, err := p.Prepare(t.Context(), charge("r", causal, 5))
		if first.EffectID == "" {
			first = e
		}
		return err
	}
	for i := range 3 {
		if err := prepare(fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	refusedWith(t, prepare("more"), wire.QuotaExceeded)
	if err := prepare("0"); err != nil { // a repeat needs no room
		t.Fatal(err)
	}
	if _, err := p.Withdraw(t.Context(), wire.EffectReasonRequest{EffectID: first.EffectID, Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	if err := prepare("more"); err != nil {
		t.Fatal(err)
	}
	settledAs(t, r.submit("r", "2"), events.OutcomeSucceeded)
	if err := prepare("last"); err != nil {
		t.Fatal(err)
	}
	settledAs(t, r.submit("r", "1"), events.OutcomeSucceeded)
	refusedWith(t, prepare("too many"), wire.CapacityExhausted)
	settledAs(t, r.submit("r", "last"), events.OutcomeSucceeded) // what is bound can always be settled
}
