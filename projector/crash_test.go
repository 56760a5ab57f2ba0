package projector

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"pgregory.net/rapid"
)

// story applies the log, with flushes and restarts in between. Whatever becomes of
// the files, an open projection goes on; the error says that it could not be
// opened or closed.
func story(t *testing.T, w *world, files vfs.FS) error {
	t.Helper()
	p, err := Open("p", Options{FS: files})
	if err != nil {
		return err
	}
	for i, e := range w.entries {
		apply(t, p, e)
		if i%7 == 3 && p.flush() != nil && p.Fault() == nil {
			t.Fatal("a flush failed and nothing is said about it")
		}
		if i%11 == 5 && p.Fault() == nil {
			if err := p.Close(); err != nil {
				return err
			}
			if p, err = Open("p", Options{FS: files}); err != nil {
				return err
			}
			if p.State().Seq() != e.Seq {
				t.Fatalf("closed at entry %d, opened at %d", e.Seq, p.State().Seq())
			}
		}
	}
	if got, want := p.State().Digest(), w.state.Digest(); got != want {
		t.Fatal("the state is not the fold")
	}
	return p.Close()
}

// survives checks what a crash left: the fold of a prefix, from which catching up
// leads to what a rebuild leads to (P1, P2).
func survives(t *testing.T, w *world, files vfs.FS) uint64 {
	t.Helper()
	p := open(t, "p", files)
	defer shut(t, p)
	at := p.State().Seq()
	if got, want := p.State().Digest(), w.fold(at).Digest(); got != want {
		t.Fatalf("at entry %d the state is not the fold", at)
	}
	if got, want := digest(t, p), rebuilt(t, w, at); got != want {
		t.Fatalf("at entry %d the rows are not those of a rebuilt projection", at)
	}
	if err := p.CatchUp(context.Background(), w.log, nil); err != nil {
		t.Fatal(err)
	}
	if got, want := digest(t, p), rebuilt(t, w, uint64(len(w.entries))); got != want {
		t.Fatal("after catching up the rows are not those of a rebuilt projection")
	}
	return at
}

// reset removes a projection that says that it must be rebuilt.
func reset(t *testing.T, files vfs.FS) {
	t.Helper()
	p, err := Open("p", Options{FS: files})
	switch {
	case err == nil:
		shut(t, p)
	case !errors.Is(err, ErrRebuild):
		t.Fatal(err)
	default:
		if err := Reset("p", Options{FS: files}); err != nil {
			t.Fatal(err)
		}
	}
}

// crossing calls f at the k-th operation that changes files.
func crossing(files vfs.FS, k int64, f func() error) (vfs.FS, *atomic.Int64) {
	var n atomic.Int64
	return errorfs.Wrap(files, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if changes(op) && n.Add(1) == k {
			return f()
		}
		return nil
	})), &n
}

func storyWorld(t *testing.T) *world {
	w := newWorld(t)
	rapid.Check(t, func(rt *rapid.T) {
		if len(w.entries) < 25 {
			w.grow(rt, 5)
		}
	})
	w.entries = w.entries[:25]
	w.state = w.fold(25)
	w.log.Truncate(25)
	return w
}

// P1: power loss at every change of a file, with nothing, some and all of what
// was not synced.
func TestCrashAnywhere(t *testing.T) {
	w := storyWorld(t)
	seen := map[uint64]bool{}
	for k, reached := int64(1), true; reached; k += step {
		disk := vfs.NewCrashableMem()
		var left [3]*vfs.MemFS
		files, _ := crossing(disk, k, func() error {
			for i, percent := range []int{0, 50, 100} {
				left[i] = disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(uint64(k), uint64(i)))})
			}
			return nil
		})
		if err := story(t, w, files); err != nil {
			t.Fatal(err)
		}
		if reached = left[0] != nil; reached {
			for i, files := range left {
				if i == 1 { // names survived that the store made in another order
					reset(t, files)
				}
				seen[survives(t, w, files)] = true
			}
		}
	}
	if len(seen) < 5 {
		t.Errorf("the crashes left only %d different positions", len(seen))
	}
}

// changes reports whether an operation changes files. A directory that cannot be
// synced is left out: Pebble ends the process then, knowing nothing any more.
func changes(op errorfs.Op) bool {
	return op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Path != "p"
}

// step thins out the crossings: a prime, so that repeated patterns are met at
// different places.
const step = 3

// P6: a file operation that fails, once or from then on, is reported; the process
// goes on, and what is stored is the fold of a prefix.
func TestFilesFail(t *testing.T) {
	w := storyWorld(t)
	for _, lasting := range []bool{false, true} {
		for k, reached := int64(1), true; reached; k += step {
			disk := vfs.NewCrashableMem()
			var on errorfs.Toggle
			on.Injector = errorfs.ErrInjected
			files, n := crossing(disk, k, func() error {
				if lasting {
					on.On()
				}
				return errorfs.ErrInjected
			})
			_ = story(t, w, errorfs.Wrap(files, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if changes(op) {
					return on.MaybeError(op)
				}
				return nil
			})))
			reached = n.Load() >= k
			for _, percent := range []int{0, 100} {
				left := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(1, 1))})
				reset(t, left)
				survives(t, w, left)
			}
		}
	}
}
