package projector

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events/wire"
)

// A record that changed many times is written once, and nothing is written before
// somebody reads rows.
func TestStoredOnce(t *testing.T) {
	w := newWorld(t).grown(60, 3)
	p := fresh(t)
	apply(t, p, w.entries...)
	if p.stored.Seq() != 0 {
		t.Fatalf("stored up to entry %d", p.stored.Seq())
	}
	if digest(t, p); p.stored.Seq() != uint64(len(w.entries)) {
		t.Fatalf("read at entry %d", p.stored.Seq())
	}
	written := map[string]int{}
	positions := 0
	for r := p.batch.Reader(); ; {
		_, key, _, ok, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		if written[string(key)]++; written[string(key)] > 1 {
			t.Errorf("key %q is written %d times", key, written[string(key)])
		}
		if key[0] == tablePosition {
			positions++
		}
	}
	want := 0
	for _, e := range w.entries {
		for i := range e.Events {
			want += len(effectsOf(&e.Events[i]))
		}
	}
	if positions != want || want == 0 {
		t.Errorf("the batch has %d of %d positions", positions, want)
	}
}

// P8: who waits for an effect is answered when it is folded: no row is written or
// read for that.
func TestAnswersBeforeStored(t *testing.T) {
	w := newWorld(t)
	p := fresh(t)
	apply(t, p, w.entries...)
	before := len(w.entries)
	id := w.settled()
	p.storing.Lock()
	defer p.storing.Unlock()
	got := awaited(context.Background(), p, seenAt(id, before+1), terminal)
	for waits := false; !waits; runtime.Gosched() {
		p.waiting.mu.Lock()
		waits = len(p.waiting.effects) > 0
		p.waiting.mu.Unlock()
	}
	for _, e := range w.entries[before:] {
		apply(t, p, e)
	}
	if v := <-got; v.State != wire.StateSettled {
		t.Errorf("%+v", v)
	}
}

// P4: a state and its rows are of one position, whatever is applied meanwhile.
func TestStateAndRowsAgree(t *testing.T) {
	w := newWorld(t)
	opened := len(w.entries)
	w.grown(300, 4)
	p := fresh(t)
	apply(t, p, w.entries[:opened]...)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, e := range w.entries[opened:] {
			if err := p.Apply(context.Background(), e); err != nil {
				t.Error(err)
			}
		}
	}()
	read := func(compare func(snapshot) error) {
		for last := uint64(0); last < uint64(len(w.entries)) && !t.Failed(); {
			shown := p.State().Seq()
			if err := p.snapshot(func(s snapshot) error {
				if at := s.state.Seq(); at < last || at < shown {
					t.Errorf("entry %d is read after entry %d, when %d was shown", at, last, shown)
				}
				last = s.state.Seq()
				return compare(s)
			}); err != nil {
				t.Error(err)
			}
		}
	}
	var reading sync.WaitGroup
	reading.Go(func() { read(snapshot.agrees) })
	read(func(s snapshot) error { return s.agree(recordName{Kind: aggregate.KindHead}) })
	reading.Wait()
	<-done
}

// agree compares a record of the state with its row.
func (s snapshot) agree(k recordName) error {
	want, _ := s.state.Record(k)
	got, err := get(s.rows, recordKey(k))
	if err == nil && string(got) != string(want) {
		err = fmt.Errorf("record %c%s is another one in the rows", k.Kind, k.ID)
	}
	return err
}

// agrees compares every record of the state with the rows, and these with the
// list rows.
func (s snapshot) agrees() error {
	var faults []error
	records := 0
	s.state.EachRecord(func(k recordName, _ []byte) {
		records++
		faults = append(faults, s.agree(k))
	})
	for _, kind := range aggregate.Kinds() {
		faults = append(faults, scan(s.rows, []byte{byte(kind)}, func(_, _ []byte) error { records--; return nil }))
	}
	if records != 0 {
		faults = append(faults, fmt.Errorf("the rows lack %d records", records))
	}
	return errors.Join(append(faults, check(s.rows, s.state))...)
}

// P1: what was folded and not stored is gone after a crash, all of it.
func TestCrashBeforeStored(t *testing.T) {
	w := newWorld(t).grown(30, 5)
	for n := 0; n < len(w.entries); n += 7 {
		for _, unsynced := range []int{0, 100} {
			disk := vfs.NewCrashableMem()
			p := open(t, "p", disk)
			apply(t, p, w.entries[:n]...)
			if err := p.flush(); err != nil {
				t.Fatal(err)
			}
			apply(t, p, w.entries[n:]...)
			if at := survives(t, w, crashed(disk, unsynced, 1)); at != uint64(n) {
				t.Errorf("stored at entry %d, after the crash at %d", n, at)
			}
			// So it is with what is stored, but not durable yet.
			digest(t, p)
			if at := survives(t, w, crashed(disk, unsynced, 1)); at != uint64(n) {
				t.Errorf("durable at entry %d, after the crash at %d", n, at)
			}
			shut(t, p)
		}
	}
}

// P9: what is not stored stays bounded, with nobody to store it in time, and with
// no store at all.
func TestBacklogIsBounded(t *testing.T) {
	w := newWorld(t)
	w.fill(190, 33)
	p := open(t, "p", vfs.NewMem())
	defer func() { _ = p.Close() }()
	most := 0
	bounded := func() {
		t.Helper()
		for _, e := range w.entries[p.State().Seq():][:90] {
			apply(t, p, e)
			if most = max(most, p.backlog.events); p.backlog.full() || len(p.backlog.entries) == 0 && len(p.base.Touched()) > 0 {
				t.Fatalf("%d events are not stored", p.backlog.events)
			}
		}
	}
	bounded()
	if p.stored.Seq() == 0 || !(most >= storeEvents) {
		t.Errorf("stored at entry %d, with a backlog of %d events at most", p.stored.Seq(), most)
	}
	p.fault.set(errors.New("no more"))
	bounded()
	if p.State().Seq() < 180 {
		t.Errorf("stopped at entry %d", p.State().Seq())
	}
}

// While it runs, what is due is stored though nobody asks and nothing is full.
func TestRunStoresWhatIsDue(t *testing.T) {
	w := newWorld(t)
	w.fill(60, 33)
	p := fresh(t)
	stop := runs(p, w.log)
	for stored := false; !stored; runtime.Gosched() {
		p.storing.Lock()
		stored = p.stored.Seq() > 0
		p.storing.Unlock()
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
