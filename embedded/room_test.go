package embedded_test

import (
	"testing"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// Below the disk reserve no new effect is taken; what was prepared goes on.
func TestDiskReserve(t *testing.T) {
	t.Parallel()
	r := newRig(t, newService(t))
	r.start()
	r.openTask("shop", 1000)
	p := r.as("producer")
	held, err := p.Prepare(t.Context(), charge("r", "held", 5))
	if err != nil {
		t.Fatal(err)
	}
	r.stop()
	r.write("effectd.yaml", "disk_reserve: 1048576GiB\n")
	r.start()
	p = r.as("producer")
	_, err = p.Submit(t.Context(), wire.SubmitRequest{PrepareRequest: charge("r", "new", 5)})
	refusedWith(t, err, wire.CapacityExhausted)
	again, err := p.Submit(t.Context(), wire.SubmitRequest{PrepareRequest: charge("r", "held", 5), Wait: wire.WaitTerminal})
	if err != nil || again.EffectID != held.EffectID {
		t.Fatalf("%v %v", again, err)
	}
	settledAs(t, again, events.OutcomeSucceeded)
}

// A repeat with another context advances nothing, and does not wait for what
// will not come.
func TestRepeatWithAnotherContext(t *testing.T) {
	t.Parallel()
	r := running(t, newService(t))
	p := r.as("producer")
	request := charge("r", "c", 5)
	request.Service = ptr("billing")
	held, err := p.Prepare(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	for _, service := range []*string{nil, ptr("other")} {
		request.Service = service
		again, err := p.Submit(t.Context(), wire.SubmitRequest{PrepareRequest: request, Wait: wire.WaitTerminal, TimeoutMS: 600_000})
		if err != nil || again.EffectID != held.EffectID || again.State != wire.StatePermitted || !again.Repeat {
			t.Fatalf("%s %v", show(again), err)
		}
	}
}
