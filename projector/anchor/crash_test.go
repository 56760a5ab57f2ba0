package anchor

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// life creates an anchor and moves it on, reopening in between; it returns the
// largest seq for which an Ensure, or Create, returned nil (0: none).
func life(t *testing.T, fs vfs.FS) (promised uint64) {
	if err := fs.MkdirAll("anchor", 0o755); err != nil {
		return 0
	}
	if err := Create(fs, "anchor", at(1)); err != nil {
		return 0
	}
	promised = 1
	for seq := uint64(2); seq < 12; {
		a, err := Open(fs, "anchor")
		if err != nil {
			return promised
		}
		for range 3 {
			if err := a.Ensure(t.Context(), at(seq)); err == nil {
				promised = seq
			}
			seq++
		}
		_ = a.Close()
	}
	return promised
}

// found is what is in the anchor after a crash.
func found(fs vfs.FS) (uint64, error) {
	a, err := Open(fs, "anchor")
	if err != nil {
		return 0, err
	}
	defer func() { _ = a.Close() }()
	return a.Load().Seq, nil
}

func holds(fs vfs.FS, promised uint64) error {
	got, err := found(fs)
	switch {
	case promised == 0 && (err == nil || errors.Is(err, ErrMissing)):
		return nil
	case err != nil:
		return err
	case got < promised:
		return errors.New("the mark went back")
	}
	return nil
}

// crashable is a memory file system whose root survives.
func crashable(t *testing.T) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewCrashableMem()
	if err := fs.MkdirAll("anchor", 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := fs.OpenDir("")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(root.Sync(), root.Close()); err != nil {
		t.Fatal(err)
	}
	return fs
}

// K1, K2: power fails before the k-th operation; of what was not synced, any part
// is on the disk.
func TestCrashBeforeEveryOperation(t *testing.T) {
	for k := 0; ; k++ {
		var clones []*vfs.MemFS
		mem, n := crashable(t), 0
		fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(errorfs.Op) error {
			if n == k {
				for seed := range uint64(20) {
					clones = append(clones, mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: int(seed * 5), RNG: rand.New(rand.NewPCG(seed, uint64(k)))}))
				}
			}
			if n++; n > k {
				return errorfs.ErrInjected // nothing works any more
			}
			return nil
		}))
		promised := life(t, fs)
		for seed, clone := range clones {
			if err := holds(clone, promised); err != nil {
				t.Errorf("crash before operation %d, seed %d: promised %d: %v", k, seed, promised, err)
			}
		}
		if n <= k {
			return // k is not reached any more
		}
	}
}

// K1, K2: the k-th operation alone fails, and power fails at the end.
func TestEveryOperationFailsOnce(t *testing.T) {
	for k := 0; ; k++ {
		mem, n := crashable(t), 0
		fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(errorfs.Op) error {
			if n++; n == k+1 {
				return errorfs.ErrInjected
			}
			return nil
		}))
		promised := life(t, fs)
		for seed := range uint64(5) {
			clone := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: int(seed * 25), RNG: rand.New(rand.NewPCG(seed, uint64(k)))})
			if err := holds(clone, promised); err != nil {
				t.Errorf("operation %d fails, seed %d: promised %d: %v", k, seed, promised, err)
			}
		}
		if n <= k {
			return
		}
	}
}

// lostSync is a disk whose sync number lose fails and drops what was written,
// while the file goes on showing it: what Linux does after an error of writeback.
type lostSync struct {
	vfs.FS
	state *lostState
}

type lostState struct {
	disk  [2 * slotSize]byte // what is on the disk
	dirty map[int64][]byte
	syncs int
	lose  int
}

type lostFile struct {
	vfs.File
	state *lostState
}

func (l lostSync) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := l.FS.OpenReadWrite(name, c, opts...)
	return lostFile{f, l.state}, err
}

func (f lostFile) WriteAt(p []byte, off int64) (int, error) {
	f.state.dirty[off] = append([]byte(nil), p...)
	return f.File.WriteAt(p, off)
}

func (f lostFile) SyncData() error {
	f.state.syncs++
	dirty := f.state.dirty
	f.state.dirty = map[int64][]byte{}
	if f.state.syncs == f.state.lose {
		return errors.New("input/output error")
	}
	for off, p := range dirty {
		copy(f.state.disk[off:], p)
	}
	return nil
}

// K2 after a failed sync: within the process and over a restart, the write that
// follows is torn, and what was durable is still there.
func TestFailedSyncThenTornWrite(t *testing.T) {
	for _, restart := range []bool{false, true} {
		for lose := 1; lose < 8; lose++ {
			for torn := 1; torn < 12; torn++ {
				mem := vfs.NewMem()
				if err := Create(mem, "anchor", at(1)); err != nil {
					t.Fatal(err)
				}
				st := &lostState{dirty: map[int64][]byte{}, lose: lose}
				if err := readInto(mem, st.disk[:]); err != nil {
					t.Fatal(err)
				}
				fs, promised := lostSync{mem, st}, uint64(1)
				a, err := Open(fs, "anchor")
				for seq := uint64(2); seq < 10 && st.syncs < torn; seq++ {
					if err != nil || restart {
						if a != nil {
							_ = a.Close()
						}
						if a, err = Open(fs, "anchor"); err != nil {
							continue
						}
					}
					if a.Ensure(t.Context(), at(seq)) == nil {
						promised = seq
					}
				}
				if restart && a != nil {
					_ = a.Close()
					a, _ = Open(fs, "anchor")
				}
				if a == nil {
					continue
				}
				// The write that follows reaches the disk in part.
				tear(t, a, st)
				disk := vfs.NewMem()
				if err := writeFrom(disk, st.disk[:]); err != nil {
					t.Fatal(err)
				}
				if err := holds(disk, promised); err != nil {
					t.Errorf("restart %v, sync %d lost, write after %d torn: promised %d: %v", restart, lose, torn, promised, err)
				}
			}
		}
	}
}

// tear lets the next write of a end in the middle of its slot.
func tear(t *testing.T, a *Anchor, st *lostState) {
	a.mu.Lock()
	seq := a.durable.Seq + 1
	a.mu.Unlock()
	st.lose = st.syncs + 1
	before := st.disk
	_ = a.Ensure(t.Context(), at(seq))
	st.disk = before
	for i := range slotSize / 2 {
		st.disk[(1-a.slot)*slotSize+i] ^= 0x55
	}
	_ = a.Close()
}

func readInto(fs vfs.FS, p []byte) error {
	f, err := fs.Open("anchor/anchor")
	if err != nil {
		return err
	}
	_, err = f.ReadAt(p, 0)
	return errors.Join(err, f.Close())
}

func writeFrom(fs vfs.FS, p []byte) error {
	return replaceFile(fs, "anchor", "anchor/anchor", append([]byte(nil), p...))
}

// K1 with many at once: whoever returned nil before the crash is held.
func TestCrashUnderConcurrency(t *testing.T) {
	for k := range 30 {
		mem := crashable(t)
		a, err := created(mem, 1)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var promised, atCrash uint64
		var clone *vfs.MemFS
		var all sync.WaitGroup
		for w := range uint64(8) {
			all.Go(func() {
				for i := range uint64(20) {
					seq := 2 + i*8 + w
					if a.Ensure(t.Context(), at(seq)) != nil {
						t.Error("Ensure fails")
						return
					}
					mu.Lock()
					promised = max(promised, seq)
					if clone == nil && promised > uint64(k*5) {
						atCrash = promised
						clone = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(uint64(k), seq))})
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		_ = a.Close()
		if clone == nil {
			t.Fatal("no crash")
		}
		if err := holds(clone, atCrash); err != nil {
			t.Errorf("crash %d: promised %d: %v", k, atCrash, err)
		}
	}
}
