package ledger

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/rehearsal"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
	"github.com/effectd/effectd/events/wire"
)

// logOf is a log that holds the entries of a world.
func logOf(t *testing.T, w *rehearsal.World) *eventlog.Memory {
	t.Helper()
	log := eventlog.NewMemory(rehearsal.LedgerID, rehearsal.Start.Time())
	for _, e := range w.Entries {
		if err := log.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	return log
}

// writerAt is a writer, not running yet, whose wall clock stands.
func writerAt(wall events.Instant, log *eventlog.Memory, state *aggregate.State) *Ledger {
	return New(Config{Writer: "W", Read: func() Reading { return Reading{Wall: wall} }, Entropy: rand.Reader, Shared: true}, log, state.Branch())
}

// run runs a writer until the test ends.
func run(t *testing.T, l *Ledger) *Ledger {
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- l.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-over })
	return l
}

func task(id events.TaskID) aggregate.OpenTask {
	return aggregate.OpenTask{Caller: rehearsal.Operator, ExpiresAt: rehearsal.Start.Add(time.Hour),
		Request: wire.TaskOpenRequest{TaskID: id, Budgets: events.Amounts{"calls": 1}}}
}

// A log that goes on from another entry than the one that the writer has is not this
// ledger's history: nothing is written on it (W3, W6).
func TestAnotherHistory(t *testing.T) {
	ours, theirs := rehearsal.New(), rehearsal.New()
	ours.Do(task("ours"))
	theirs.Do(task("theirs"))
	theirs.Do(task("more"))
	log := logOf(t, theirs)
	l := run(t, writerAt(rehearsal.Start.Add(time.Minute), log, ours.State))
	_, err := l.Do(t.Context(), rehearsal.Operator.Actor(), task("next"))
	var e *wire.Error
	if !errors.As(err, &e) || e.Code != wire.LedgerUntrusted || !strings.Contains(l.Distrusted(), "chain") {
		t.Fatalf("%v %q", err, l.Distrusted())
	}
	if last, err := log.Last(t.Context()); err != nil || last != theirs.State.Seq() {
		t.Fatalf("the log ends at %d: %v", last, err)
	}
	if l.State().Seq() != ours.State.Seq() {
		t.Fatal("another history was adopted")
	}
}

// Ledger time does not go back behind another writer's entry either (W5).
func TestTimeOfAnotherWriter(t *testing.T) {
	w := rehearsal.New()
	log := logOf(t, w)
	now := rehearsal.Start.Add(time.Minute)
	behind := run(t, writerAt(now, log, w.State))
	ahead := run(t, writerAt(now.Add(4*time.Second), log, w.State))
	for i, l := range []*Ledger{behind, ahead, behind, ahead, behind} {
		if o, err := l.Do(t.Context(), rehearsal.Operator.Actor(), task(events.TaskID(fmt.Sprint(i)))); err != nil || o.Refusal != nil {
			t.Fatal(err, o.Refusal)
		}
	}
	entries, err := log.Read(t.Context(), w.State.Seq(), 10)
	if err != nil || len(entries) != 6 {
		t.Fatal(len(entries), err)
	}
	for i := range entries[1:] {
		if entries[i+1].Time < entries[i].Time {
			t.Fatalf("entry %d is of %s, the one before of %s", entries[i+1].Seq, entries[i+1].Time, entries[i].Time)
		}
	}
}

// asked is a context that tells when who uses it begins to wait.
type asked struct {
	context.Context
	once *sync.Once
	told *sync.WaitGroup
}

func (a asked) Done() <-chan struct{} {
	a.once.Do(a.told.Done)
	return a.Context.Done()
}

// However much waits, an entry stays within its bounds.
func TestEntriesAreBounded(t *testing.T) {
	w := rehearsal.New()
	log := logOf(t, w)
	l := writerAt(rehearsal.Start.Add(time.Minute), log, w.State)
	var waiting, answered sync.WaitGroup
	for i := range 400 {
		size := 50_000
		if i%8 != 0 {
			size = 50
		}
		c := rehearsal.Submit(rehearsal.Producer, "note", `{"account":"`+strings.Repeat("x", size)+`"}`, "run", events.CausalID(fmt.Sprint(i)))
		waiting.Add(1)
		ctx := asked{t.Context(), new(sync.Once), &waiting}
		answered.Go(func() {
			if o, err := l.Do(ctx, c.Actor(), c); err != nil || o.Refusal != nil {
				t.Error(err, o.Refusal)
			}
		})
	}
	waiting.Wait()
	run(t, l)
	answered.Wait()
	var events int
	for seq := w.State.Seq() + 1; seq <= l.State().Seq(); seq++ {
		entries, err := log.Read(t.Context(), seq, 1)
		if err != nil {
			t.Fatal(err)
		}
		events += len(entries[0].Events)
		if n, size := len(entries[0].Events), len(entries[0].Body); n > l.cfg.MaxEvents || size > l.cfg.MaxBytes+1024 {
			t.Errorf("entry %d has %d events, %d bytes", seq, n, size)
		}
	}
	if events != 3*400 {
		t.Fatalf("%d events", events)
	}
}
