package projector

import (
	"context"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/eventlog"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func open(tb fataler, dir string, files vfs.FS) *Projection {
	p, err := Open(dir, Options{FS: files})
	if err != nil {
		tb.Fatalf("open: %v", err)
	}
	return p
}

// fataler is what a test and a rapid test have in common.
type fataler interface {
	Fatal(...any)
	Fatalf(string, ...any)
}

// fresh is an open projection in memory that is closed with the test, and then
// nothing of it runs any more.
func fresh(tb testing.TB) *Projection {
	running := goleak.IgnoreCurrent()
	tb.Cleanup(func() { goleak.VerifyNone(tb, running) })
	p := open(tb, "p", vfs.NewMem())
	tb.Cleanup(func() { shut(tb, p) })
	return p
}

func shut(tb fataler, p *Projection) {
	if err := p.Close(); err != nil {
		tb.Fatal(err)
	}
}

func apply(tb fataler, p *Projection, entries ...events.Stored) {
	for _, e := range entries {
		if err := p.Apply(context.Background(), e); err != nil {
			tb.Fatal(err)
		}
	}
}

func digest(tb fataler, p *Projection) events.Digest {
	d, err := p.Digest()
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// rebuilt is the digest of the first n entries applied one by one to nothing.
func rebuilt(tb fataler, w *world, n uint64) events.Digest {
	p := open(tb, "p", vfs.NewMem())
	defer shut(tb, p)
	apply(tb, p, w.entries[:n]...)
	return digest(tb, p)
}

// P2: however entries are grouped and the projection restarted, it is the fold.
func TestProjectionIsTheFold(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		w.grow(rt, 40-rapid.IntRange(0, 39).Draw(rt, "fewer"))
		files := vfs.NewMem()
		p := open(rt, "p", files)
		for rest := w.entries; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(rt, "group")
			if err := p.ApplyMany(context.Background(), rest[:n]); err != nil {
				rt.Fatal(err)
			}
			rest = rest[n:]
			if rapid.Bool().Draw(rt, "flush") {
				if err := p.db.Flush(); err != nil {
					rt.Fatal(err)
				}
			}
			if rapid.Bool().Draw(rt, "restart") {
				shut(rt, p)
				p = open(rt, "p", files)
			}
			if got, want := p.State().Digest(), w.fold(p.State().Seq()).Digest(); got != want {
				rt.Fatalf("at entry %d the state is not the fold", p.State().Seq())
			}
		}
		got := digest(rt, p)
		shut(rt, p)
		if want := rebuilt(rt, w, uint64(len(w.entries))); got != want {
			rt.Fatal("the rows are not those of a rebuilt projection")
		}
	})
}

// The random world reaches what the tests are about.
func TestWorldReaches(t *testing.T) {
	seen := map[events.Type]bool{}
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		w.grow(rt, 60)
		for _, e := range w.entries {
			for _, ev := range e.Events {
				seen[ev.Type] = true
			}
		}
		if faults := w.state.Check(); len(faults) > 0 {
			rt.Fatal(faults)
		}
	})
	for _, want := range []events.Type{events.TypePrepared, events.TypePermitted, events.TypeRefused, events.TypeAdmitted, events.TypeDispatched,
		events.TypeSettled, events.TypeUnknown, events.TypeReconcileStarted, events.TypeReconcileEnded, events.TypeAcknowledged, events.TypeContradicted,
		events.TypeCollected, events.TypeTaskClosed, events.TypeRunCancelled, events.TypeRunFinished} {
		if !seen[want] {
			t.Errorf("no %s", want)
		}
	}
}

// P5: nothing that does not follow is applied.
func TestApplyRefusesWhatDoesNotFollow(t *testing.T) {
	w := newWorld(t)
	w.settled()
	p := fresh(t)
	apply(t, p, w.entries[:2]...)
	before := digest(t, p)
	for name, e := range map[string]events.Stored{"again": w.entries[1], "gap": w.entries[3], "other chain": other(w.entries[2])} {
		var d *eventlog.Distrust
		if err := p.Apply(context.Background(), e); !errors.As(err, &d) || d.Seq != e.Seq {
			t.Errorf("%s: %v", name, err)
		}
	}
	if p.State().Seq() != 2 || digest(t, p) != before {
		t.Error("something was applied")
	}
	// In a group, those before it are.
	if err := p.ApplyMany(context.Background(), []events.Stored{w.entries[2], other(w.entries[3])}); !errors.Is(err, eventlog.ErrUntrusted) {
		t.Error(err)
	}
	if p.State().Seq() != 3 || digest(t, p) != rebuilt(t, w, 3) {
		t.Errorf("entry %d", p.State().Seq())
	}
}

// other is an entry at the same sequence that does not chain.
func other(e events.Stored) events.Stored {
	entry := e.Entry
	entry.Prev = events.DigestBytes([]byte("other"))
	return events.Seal(entry)
}

// One directory has one projection.
func TestOpenInUse(t *testing.T) {
	dir := t.TempDir()
	p := open(t, dir, nil)
	defer shut(t, p)
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrInUse) {
		t.Error(err)
	}
	if err := Reset(dir, Options{}); !errors.Is(err, ErrInUse) {
		t.Error(err)
	}
	if p.State().Seq() != 0 {
		t.Error("not empty")
	}
}

func TestClose(t *testing.T) {
	w := newWorld(t)
	p := fresh(t)
	apply(t, p, w.entries...)
	waited := make(chan error)
	go func() {
		waited <- p.AwaitPosition(context.Background(), events.Position{Seq: 1000})
	}()
	shut(t, p)
	if err := <-waited; !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := p.Apply(context.Background(), other(w.entries[0])); err == nil {
		t.Error("applied")
	}
	w.admitted()
	if err := p.Apply(context.Background(), w.entries[len(w.entries)-1]); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if _, err := p.Digest(); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	shut(t, p)
}
