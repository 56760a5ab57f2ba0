package embedded_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// A log at its maximum refuses what is new, however fast it came; what was
// admitted can be settled, and the node can be started again (SPEC 14).
func TestFullLog(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := newRig(t, s)
	r.write("effectd.yaml", "limits: {log_bytes: 4MiB}\n")
	r.weaken(func(c *jetstream.StreamConfig) { c.MaxBytes = 4 << 20 })
	r.start()
	r.openTask("shop", 1_000_000)
	_, let := s.holds()
	p := r.as("producer")
	var mu sync.Mutex
	var admitted []events.EffectID
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for n := 0; ; n++ {
				big := charge(fmt.Sprint("run-", i), fmt.Sprint(n), 5)
				big.Payload = events.Raw(`{"account":"a","amount":5,"note":"` + strings.Repeat("n", 10<<10) + `"}`)
				e, err := p.Submit(t.Context(), wire.SubmitRequest{PrepareRequest: big})
				if codeOf(err) == wire.CapacityExhausted {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				admitted = append(admitted, e.EffectID)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	close(let)
	s.answers(nil)
	for _, id := range admitted {
		settledAs(t, r.ended(id), events.OutcomeSucceeded)
	}
	t.Logf("%d effects", len(admitted))
	s.served(t, len(admitted))
	r.restart()
	p = r.as("producer")
	for n := 0; ; n++ { // what was kept for them is free again, for some more
		e, err := p.Submit(t.Context(), wire.SubmitRequest{PrepareRequest: charge("r", fmt.Sprint(n), 5), Wait: wire.WaitTerminal})
		if codeOf(err) == wire.CapacityExhausted {
			t.Logf("%d more", n)
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		settledAs(t, e, events.OutcomeSucceeded)
	}
	for n := 0; ; n++ { // tasks do not fill it up either
		_, err := r.as("operator").TaskOpen(t.Context(), taskRequest(events.TaskID(fmt.Sprint("more-", n)), 1))
		if codeOf(err) == wire.CapacityExhausted {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if again := r.submit("r", "0"); !again.Repeat { // a repeat needs no room
		t.Fatal(show(again))
	}
	r.restart()
	settledAs(t, r.get(admitted[0]), events.OutcomeSucceeded)
	folded(t, readAll(t, r.log()))
}

// An approval that would admit needs the room of an admission: without it nothing
// is recorded and the effect waits on; what was admitted can be settled.
func TestFullLogOfPending(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := newRig(t, s)
	r.write("policy.cedar", largePolicy)
	r.write("effectd.yaml", "limits: {log_bytes: 4MiB}\n")
	r.weaken(func(c *jetstream.StreamConfig) { c.MaxBytes = 4 << 20 })
	r.start()
	r.openTask("shop", 10_000_000)
	p := r.as("producer")
	for n := 0; ; n++ {
		big := charge("r", fmt.Sprint(n), 2000)
		big.Payload = events.Raw(`{"account":"a","amount":2000,"note":"` + strings.Repeat("n", 10<<10) + `"}`)
		_, err := p.Submit(t.Context(), wire.SubmitRequest{PrepareRequest: big, Wait: wire.WaitNone})
		if codeOf(err) == wire.CapacityExhausted {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	_, let := s.holds()
	var admitted, waiting []events.EffectID
	for _, x := range r.pending("approver") {
		e, err := r.approve(x)
		switch {
		case err == nil && e.State != wire.StatePrepared && e.AdmitError == nil:
			admitted = append(admitted, e.EffectID)
		case codeOf(err) == wire.CapacityExhausted:
			waiting = append(waiting, x.EffectID)
		default:
			t.Fatal(err, show(e))
		}
	}
	t.Logf("%d admitted, %d wait", len(admitted), len(waiting))
	if len(waiting) == 0 {
		t.Fatal("there is room for every approval")
	}
	close(let)
	for _, id := range admitted {
		settledAs(t, r.ended(id), events.OutcomeSucceeded)
	}
	for _, id := range waiting {
		if e := r.get(id); e.State != wire.StatePrepared || e.Permit.State != wire.PermitPendingState {
			t.Fatal(show(e))
		}
	}
	if len(r.pending("approver")) != len(waiting) {
		t.Error("not all of them are shown")
	}
	s.served(t, len(admitted))
}
