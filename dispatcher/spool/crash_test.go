package spool

import (
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/effectd/effectd/events"
)

// phase is what a caller knows about one record.
type phase int

const (
	absent   phase = iota // never put, or its Remove returned nil
	either                // a call runs or failed
	retained              // its Put returned nil, its Remove was not called
)

// story is a life of a spool and what must hold of it at any moment.
type story struct{ phases map[int]phase }

// run lives until the end, past every error, and reports whether all went well.
func (y *story) run(fs vfs.FS) (well bool) {
	y.phases = map[int]phase{}
	s, err := Open(fs, dir, 1<<20)
	if err != nil {
		return false
	}
	well = true
	put := func(n int) {
		if y.phases[n] == absent {
			y.phases[n] = either
		}
		if err := s.Put(record(n)); err != nil {
			well = false
			return
		}
		y.phases[n] = retained
	}
	remove := func(n int) {
		y.phases[n] = either
		if err := s.Remove(record(n).EffectID); err != nil {
			well = false
			return
		}
		y.phases[n] = absent
	}
	put(1)
	put(2)
	remove(1)
	put(3)
	put(2)
	remove(3)
	put(4)
	return well
}

// check opens what a crash left and holds it against the phases (S1, S2, S3).
func (y *story) check(t *testing.T, fs vfs.FS, k int) {
	t.Helper()
	s, err := Open(fs, dir, 1<<20)
	if err != nil {
		t.Fatalf("crossing %d: %v", k, err)
	}
	records, damaged := all(t, s)
	if len(damaged) > 0 {
		t.Fatalf("crossing %d: damaged %v", k, damaged)
	}
	given := map[events.EffectID]Record{}
	for _, r := range records {
		given[r.EffectID] = r
	}
	for n := 1; n <= 4; n++ {
		expected, _, _ := seal(record(n))
		got, found := given[expected.EffectID]
		switch {
		case found && got.Checksum != expected.Checksum:
			t.Fatalf("crossing %d: record %d is another", k, n)
		case y.phases[n] == retained && !found:
			t.Fatalf("crossing %d: record %d is lost", k, n)
		case y.phases[n] == absent && found:
			t.Fatalf("crossing %d: record %d is there", k, n)
		}
	}
	// And it goes on: what is there or not can be put again.
	for n := 1; n <= 4; n++ {
		mustPut(t, s, record(n))
	}
	wantRecords(t, s, record(4), record(3), record(2), record(1))
}

// every runs a story with act at the k-th operation of the disk, k = 1, 2, …
// until k is not reached any more.
func every(t *testing.T, run func(k int, mem *vfs.MemFS, at func(act func() error) vfs.FS)) {
	t.Helper()
	for k := 1; ; k++ {
		mem, n := disk(t), 0
		run(k, mem, func(act func() error) vfs.FS {
			return errorfs.Wrap(mem, errorfs.InjectorFunc(func(errorfs.Op) error {
				if n++; n == k {
					return act()
				}
				return nil
			}))
		})
		if n < k {
			if k < 30 {
				t.Fatalf("the story has only %d operations", n)
			}
			return
		}
	}
}

// S1, S2: power loss before the k-th operation, with none, some and all of what
// was not synced.
func TestCrashAtEveryOperation(t *testing.T) {
	for _, percent := range []int{0, 50, 100} {
		for seed := range uint64(5) {
			every(t, func(k int, mem *vfs.MemFS, at func(func() error) vfs.FS) {
				var crashed *vfs.MemFS
				var known, y story
				y.run(at(func() error {
					crashed = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(seed, uint64(k)))})
					known.phases = map[int]phase{}
					for n, p := range y.phases {
						known.phases[n] = p
					}
					return nil
				}))
				if crashed != nil {
					known.check(t, crashed, k)
				}
			})
		}
	}
}

// S1, S2: the k-th operation fails, the life goes on, and the power is lost at
// its end.
func TestErrorAtEveryOperation(t *testing.T) {
	every(t, func(k int, mem *vfs.MemFS, at func(func() error) vfs.FS) {
		var y story
		y.run(at(func() error { return errorfs.ErrInjected }))
		y.check(t, mem.CrashClone(vfs.CrashCloneCfg{}), k)
	})
}

// S1: after the k-th operation failed, the same Put can be repeated.
func TestPutAgainAfterAnError(t *testing.T) {
	for k := 1; ; k++ {
		mem, n, armed := disk(t), 0, false
		s := mustOpen(t, errorfs.Wrap(mem, errorfs.InjectorFunc(func(errorfs.Op) error {
			if armed {
				if n++; n == k {
					return errorfs.ErrInjected
				}
			}
			return nil
		})), 1<<20)
		armed = true
		if err := s.Put(record(1)); err != nil {
			mustPut(t, s, record(1))
		}
		armed = false
		wantRecords(t, s, record(1))
		if s.used != onDisk(1) {
			t.Fatalf("operation %d: %d bytes are accounted for", k, s.used)
		}
		wantRecords(t, mustOpen(t, mem.CrashClone(vfs.CrashCloneCfg{}), 1<<20), record(1))
		if n < k {
			return
		}
	}
}

// S2: after the k-th operation failed, the same Remove can be repeated.
func TestRemoveAgainAfterAnError(t *testing.T) {
	for k := 1; ; k++ {
		mem, n, armed := disk(t), 0, false
		s := mustOpen(t, errorfs.Wrap(mem, errorfs.InjectorFunc(func(errorfs.Op) error {
			if armed {
				if n++; n == k {
					return errorfs.ErrInjected
				}
			}
			return nil
		})), 1<<20)
		mustPut(t, s, record(1))
		armed = true
		if err := s.Remove(record(1).EffectID); err != nil {
			if err := s.Remove(record(1).EffectID); err != nil {
				t.Fatalf("operation %d: %v", k, err)
			}
		}
		armed = false
		wantRecords(t, s)
		wantRecords(t, mustOpen(t, mem.CrashClone(vfs.CrashCloneCfg{}), 1<<20))
		if n < k {
			return
		}
	}
}

// S1: a record that was not durable when its process died is durable once the
// next process says so.
func TestPutInTheNextLife(t *testing.T) {
	mem, failing := disk(t), false
	s := mustOpen(t, errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if failing && op.Kind == errorfs.OpOpenDir {
			return errorfs.ErrInjected
		}
		return nil
	})), 1<<20)
	failing = true
	if err := s.Put(record(1)); err == nil {
		t.Fatal("durable without an fsync of the directory")
	}
	s = mustOpen(t, mem, 1<<20)
	wantRecords(t, s, record(1))
	mustPut(t, s, record(1))
	wantRecords(t, mustOpen(t, mem.CrashClone(vfs.CrashCloneCfg{}), 1<<20), record(1))
}
