package projector

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// story applies the log, with flushes and restarts in between. Whatever becomes of
// the files while it is open, a projection goes on; the error is of closing it.
func story(t *testing.T, w *world, files vfs.FS, opening func(bool)) error {
	t.Helper()
	opened := func() *Projection {
		opening(true)
		defer opening(false)
		return open(t, "p", files)
	}
	p := opened()
	for i, e := range w.entries {
		apply(t, p, e)
		if i%7 == 3 && p.flush() != nil && p.Fault() == nil {
			t.Fatal("a flush failed and nothing is said about it")
		}
		if i%11 == 5 && p.Fault() == nil {
			if err := p.Close(); err != nil {
				return err
			}
			if p = opened(); p.State().Seq() != e.Seq {
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

// crossing calls f at the k-th operation that changes files and every one behind
// it; nothing counts while a projection is being opened.
type crossing struct {
	k       int64
	f       func(n int64) error
	n       atomic.Int64
	opening atomic.Bool
}

func (c *crossing) wrap(files vfs.FS) vfs.FS { return errorfs.Wrap(files, c) }

func (c *crossing) String() string { return "" }

// MaybeError implements [errorfs.Injector]. A directory that cannot be synced is
// left out: Pebble ends the process then, knowing nothing any more.
func (c *crossing) MaybeError(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || op.Path == "p" || c.opening.Load() {
		return nil
	}
	if n := c.n.Add(1); n >= c.k {
		return c.f(n)
	}
	return nil
}

// P1: power loss at every change of a file, with nothing, some and all of what
// was not synced.
func TestCrashAnywhere(t *testing.T) {
	w := newWorld(t).grown(25, 1)
	seen := map[uint64]bool{}
	for k, reached := int64(1), true; reached; k += step {
		disk := vfs.NewCrashableMem()
		var left [3]*vfs.MemFS
		c := &crossing{k: k, f: func(n int64) error {
			for i := range left {
				if n == k {
					left[i] = crashed(disk, 50*i, uint64(k))
				}
			}
			return nil
		}}
		if err := story(t, w, c.wrap(disk), func(bool) {}); err != nil {
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

func crashed(disk *vfs.MemFS, unsynced int, seed uint64) *vfs.MemFS {
	return disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced, RNG: rand.New(rand.NewPCG(seed, uint64(unsynced)))})
}

// step thins out the crossings: a prime, so that repeated patterns are met at
// different places.
const step = 5

// P6: a file operation that fails, once or from then on, is reported; the
// projection goes on, and what is stored is the fold of a prefix.
func TestFilesFail(t *testing.T) {
	w := newWorld(t).grown(25, 1)
	for _, lasting := range []bool{false, true} {
		for k, reached := int64(1), true; reached; k += step {
			disk := vfs.NewCrashableMem()
			c := &crossing{k: k, f: func(n int64) error {
				if lasting || n == k {
					return errorfs.ErrInjected
				}
				return nil
			}}
			_ = story(t, w, c.wrap(disk), c.opening.Store)
			reached = c.n.Load() >= k
			for _, unsynced := range []int{0, 100} {
				survives(t, w, crashed(disk, unsynced, 1))
			}
		}
	}
}
