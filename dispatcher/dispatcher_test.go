package dispatcher

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/ledger"
	"github.com/effectd/effectd/aggregate/rehearsal"
	"github.com/effectd/effectd/dispatcher/spool"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// warnings tells the messages that are logged.
type warnings chan string

func (w warnings) logger() *slog.Logger { return slog.New(w) }

func (w warnings) Enabled(context.Context, slog.Level) bool { return true }
func (w warnings) WithAttrs([]slog.Attr) slog.Handler       { return w }
func (w warnings) WithGroup(string) slog.Handler            { return w }
func (w warnings) Handle(_ context.Context, r slog.Record) error {
	select {
	case w <- r.Message:
	default: // nobody waits for so many
	}
	return nil
}

// appends gives an entry to the log as another writer does.
func (b *bench) appends(e events.Stored) {
	b.Helper()
	if err := b.log.Append(b.Context(), e); err != nil {
		b.Fatal(err)
	}
}

// catchesUp has the writer read what others wrote.
func (b *bench) catchesUp() { b.does(events.SystemActor, aggregate.Orphaned{}) }

// rewritesPrepared changes the prepared event of the world's last entry, as a forger
// or another version of the program would; its digest follows.
func (b *bench) rewritesPrepared(f func(*events.Prepared)) {
	w := b.world
	last := &w.Entries[len(w.Entries)-1]
	entry := last.Entry
	p := entry.Events[0].Data.(events.Prepared)
	f(&p)
	p.BindingDigest = events.DigestOf(p.Binding)
	entry.Events[0].Data = p
	*last = events.Seal(entry)
	w.State = aggregate.New()
	for i := range w.Entries {
		w.State.Apply(&w.Entries[i])
	}
}

// A send that stands still holds up neither another of its operation nor another
// operation (D6).
func TestSlowOperation(t *testing.T) {
	b := newBench(t)
	arrived := make(chan struct{}, 2)
	closed, let := b.gate()
	b.fire = func(_ context.Context, s Send, _ time.Time) aggregate.Result {
		if s.Binding.Operation == "charge" {
			arrived <- struct{}{}
			<-closed
		}
		return proven()
	}
	b.dispatches()
	slow := []events.EffectID{b.submits("charge", "1"), b.submits("charge", "2")}
	for range slow {
		take(t, "a slow send", arrived)
	}
	b.settles(b.submits("note", "3"))
	let()
	for _, id := range slow {
		b.settles(id)
	}
}

// The contract says how many sends of an operation run at a time (D6).
func TestConcurrency(t *testing.T) {
	single := strings.Replace(rehearsal.Charge(2).Text, "timeout: 2s", "timeout: 2s\nconcurrency: 1", 1)
	b := newBench(t, single)
	running := make(chan struct{}, 1)
	b.fire = func(context.Context, Send, time.Time) aggregate.Result {
		select {
		case running <- struct{}{}:
		default:
			t.Error("two sends at a time")
		}
		<-running
		return proven()
	}
	for _, causal := range []events.CausalID{"1", "2", "3", "4", "5", "6", "7", "8"} {
		b.submits("charge", causal)
	}
	b.dispatches()
	b.ledger.State().EachEffect(func(e *aggregate.Effect) bool { b.settles(e.ID); return true })
}

// On a stop nothing new is claimed; what runs is given its time and settles (D7).
// What was admitted is claimed by the next dispatcher.
func TestStopClaimsNothing(t *testing.T) {
	single := strings.Replace(rehearsal.Charge(2).Text, "timeout: 2s", "timeout: 2s\nconcurrency: 1", 1)
	b := newBench(t, single)
	arrived := make(chan context.Context, 1)
	closed, let := b.gate()
	b.fire = func(ctx context.Context, _ Send, _ time.Time) aggregate.Result {
		arrived <- ctx
		<-closed
		return proven()
	}
	d, stop := b.dispatches()
	first := b.submits("charge", "1")
	ctx := take(t, "the first send", arrived)
	second := b.submits("charge", "2")
	b.eventually("it is taken up", func() bool { return b.taken.Load() == b.effect(second).Admission.Position.Seq })
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	b.eventually("no slots are given", d.work.isHeld)
	if err := ctx.Err(); err != nil {
		t.Fatal("what runs was not given its time: ", err)
	}
	let()
	if err := take(t, "the dispatcher ends", stopped); err != nil {
		t.Fatal(err)
	}
	b.said("fired charge")
	if b.settles(first).Outcome != events.OutcomeSucceeded || b.effect(second).State != wire.StateAdmitted {
		t.Fatal(b.effect(second).State)
	}
	b.dispatches() // its entry is acknowledged, and does not come again
	b.settles(second)
}

func (w *work) isHeld() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held
}

// What waits to be tried again is not claimed after a stop either (D7).
func TestStopEndsRetries(t *testing.T) {
	b := newBench(t)
	fill := b.fillsSpool()
	b.cfg.Retry = 100 * time.Millisecond
	warned := make(warnings, 64)
	b.cfg.Logger = warned.logger()
	d, stop := b.dispatches()
	id := b.submits("charge", "1")
	for !strings.Contains(take(t, "a warning", warned), "no room") {
		continue
	}
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	b.eventually("no slots are given", d.work.isHeld)
	fill[0].Release()
	if err := take(t, "the dispatcher ends", stopped); err != nil {
		t.Fatal(err)
	}
	if b.effect(id).Claim != nil {
		t.Fatal("it was claimed")
	}
	b.said()
}

// fillsSpool takes all room for results.
func (b *bench) fillsSpool() (slots []*spool.Slot) {
	for {
		slot, err := b.spool.Reserve()
		if err != nil {
			return slots
		}
		slots = append(slots, slot)
	}
}

// What has had its time at a stop is told why it ends (D7).
func TestStopEndsSends(t *testing.T) {
	b := newBench(t)
	b.cfg.ShutdownBudget = time.Millisecond
	arrived, causes := make(chan struct{}, 1), make(chan error, 1)
	b.fire = func(ctx context.Context, _ Send, _ time.Time) aggregate.Result {
		arrived <- struct{}{}
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return aggregate.Result{Reason: events.ReasonShutdown}
	}
	_, stop := b.dispatches()
	id := b.submits("charge", "1")
	take(t, "the send", arrived)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if err := take(t, "the cause", causes); !errors.Is(err, ErrShutdown) {
		t.Fatal(err)
	}
	if e := b.effect(id); e.State != wire.StateUnknown || e.Unknown.Reason != events.ReasonShutdown {
		t.Fatal(e.State)
	}
}

// asking is the writer, and tells when the dispatcher has it confirm the end of the
// log.
type asking struct {
	*ledger.Ledger
	asked chan struct{}
}

func (a asking) Do(ctx context.Context, who events.Actor, c aggregate.Command) (ledger.Outcome, error) {
	if _, ok := c.(aggregate.Orphaned); ok {
		select {
		case a.asked <- struct{}{}:
		default: // it was told already, and asks again for every entry that comes early
		}
	}
	return a.Ledger.Do(ctx, who, c)
}

// An entry that the log delivers before the writer has its ack is acknowledged only
// once the writer has it and its effects are in the work set: until then it comes
// again.
func TestDeliveryBeforeAck(t *testing.T) {
	b := newBench(t)
	closed, let := b.gate()
	b.log.After = func(e events.Stored) error {
		if e.Events[0].Type == events.TypePrepared {
			<-closed
		}
		return nil
	}
	b.decider = asking{b.ledger, make(chan struct{}, 1)}
	_, stop := b.dispatches()
	submitted := make(chan events.EffectID, 1)
	go func() { submitted <- b.submits("charge", "1") }()
	take(t, "the dispatcher waits for the writer", b.decider.(asking).asked)
	if seq := b.redelivered(); seq != b.ledger.State().Seq()+1 {
		t.Fatalf("entry %d comes again, the writer is at %d", seq, b.ledger.State().Seq())
	}
	let()
	b.settles(take(t, "it is admitted", submitted))
	b.said("fired charge")
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

// redelivered is the entry that the dispatch consumer, opened anew, gives first.
func (b *bench) redelivered() uint64 {
	b.Helper()
	d, err := b.log.Deliveries(b.Context(), "dispatch", 1)
	if err != nil {
		b.Fatal(err)
	}
	defer d.Stop()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	entry, err := d.Next(ctx)
	if err != nil {
		b.Fatal("nothing comes: ", err)
	}
	return entry.Seq
}

// What was taken up is acknowledged: it does not come again.
func TestDeliveriesAreAcknowledged(t *testing.T) {
	b := newBench(t)
	_, stop := b.dispatches()
	var last uint64
	for _, causal := range []events.CausalID{"1", "2", "3"} {
		b.settles(b.submits("charge", causal))
		last = b.ledger.State().Seq()
	}
	b.eventually("the last entry is taken up", func() bool { return b.taken.Load() == last })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	b.submits("charge", "new")
	if seq := b.redelivered(); seq != last+1 {
		t.Fatalf("entry %d comes again", seq)
	}
}

// An entry that is none ends all trust.
func TestForeignDelivery(t *testing.T) {
	b := newBench(t)
	_, stop := b.dispatches()
	b.log.Put([]byte(`{"forged":true}`))
	b.eventually("trust ends", func() bool { return b.ledger.Distrusted() != "" })
	_ = stop()
}
