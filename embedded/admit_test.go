package embedded_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
)

// Of any number of concurrent admissions of one effect exactly one wins (SPEC 7).
func TestConcurrentAdmits(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := running(t, s)
	p, err := r.as("producer").Prepare(t.Context(), charge("r", "c", 5))
	if err != nil {
		t.Fatal(err)
	}
	conns := make([]*client.Client, 8)
	for i := range conns {
		conns[i] = r.another("producer")
	}
	var won, repeats atomic.Int64
	var group sync.WaitGroup
	begin := make(chan struct{})
	for i := range 64 {
		group.Go(func() {
			<-begin
			e, err := conns[i%len(conns)].Admit(t.Context(), wire.AdmitRequest{EffectID: p.EffectID, BindingDigest: p.BindingDigest, SealedContext: sealed("r", "c")})
			switch {
			case err != nil:
				t.Error(err)
			case e.Receipt == nil || e.Receipt.EffectID != p.EffectID:
				t.Errorf("no receipt: %s", show(e))
			case e.Repeat:
				repeats.Add(1)
			default:
				won.Add(1)
			}
		})
	}
	close(begin)
	group.Wait()
	if won.Load() != 1 || repeats.Load() != 63 {
		t.Fatalf("%d won, %d repeats", won.Load(), repeats.Load())
	}
	settledAs(t, r.ended(p.EffectID), events.OutcomeSucceeded)
	s.served(t, 1)
	entries := readAll(t, r.log())
	for typ, want := range map[events.Type]int{events.TypeAdmitted: 1, events.TypeDispatched: 1, events.TypeSettled: 1} {
		if n := count(entries, typ, p.EffectID); n != want {
			t.Errorf("%d events %s", n, typ)
		}
	}
	r.account(0, 5, 0)
}

// The same request, submitted at once on several connections, is one effect.
func TestConcurrentSubmits(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := running(t, s)
	var created atomic.Int64
	ids := make([]events.EffectID, 32)
	var group sync.WaitGroup
	for i := range ids {
		p := r.another("producer")
		group.Go(func() {
			e, err := p.Submit(t.Context(), wire.SubmitRequest{PrepareRequest: charge("r", "c", 5), Wait: wire.WaitTerminal})
			if err != nil {
				t.Error(err)
				return
			}
			if ids[i] = e.EffectID; !e.Repeat {
				created.Add(1)
			}
		})
	}
	group.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatal("more than one effect: ", ids)
		}
	}
	if created.Load() != 1 {
		t.Fatalf("%d answers say that they created it", created.Load())
	}
	s.served(t, 1)
}

// Many effects at once share a budget that suffices for some of them: none beyond
// it is admitted, and the accounts say so (SPEC 10).
func TestConcurrentBudget(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := newRig(t, s)
	r.start()
	r.openTask("shop", 5*20)
	var admitted, refused atomic.Int64
	var group sync.WaitGroup
	p := r.as("producer")
	for i := range 64 {
		group.Go(func() {
			_, err := p.Submit(t.Context(), wire.SubmitRequest{PrepareRequest: charge("r", fmt.Sprint(i), 5), Wait: wire.WaitTerminal})
			switch {
			case err == nil:
				admitted.Add(1)
			case codeOf(err) == wire.BudgetExceeded:
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	group.Wait()
	if admitted.Load() != 20 || refused.Load() != 44 {
		t.Fatalf("%d admitted, %d refused", admitted.Load(), refused.Load())
	}
	s.served(t, 20)
	r.account(0, 100, 0)
	folded(t, readAll(t, r.log()))
}
