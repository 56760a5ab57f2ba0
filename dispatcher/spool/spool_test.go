package spool

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/effectd/effectd/events"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const dir = "/data/spool"

// disk is a memory disk with the directory of the spool's parent on it.
func disk(t testing.TB) *vfs.MemFS {
	t.Helper()
	mem := vfs.NewCrashableMem()
	err := mem.MkdirAll("/data", 0o700)
	root, openErr := mem.OpenDir("/")
	if err := errors.Join(err, openErr, root.Sync(), root.Close()); err != nil {
		t.Fatal(err)
	}
	return mem
}

func mustOpen(t testing.TB, fs vfs.FS, max int64) *Spool {
	t.Helper()
	s, err := Open(fs, dir, max)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// record is the n-th record; the claims run against the order of the names.
func record(n int) Record {
	return Record{
		EffectID:     events.EffectID(fmt.Sprintf("01J%023d", n)),
		IntentSHA256: events.DigestBytes([]byte{byte(n)}),
		Claim:        events.Position{Seq: uint64(1000 - n), Index: n % 3},
		Nonce:        fmt.Sprintf("nonce-%d", n),
		Result:       events.Raw(fmt.Sprintf(`{"outcome":"succeeded","n":%d}`, n)),
	}
}

func mustPut(t testing.TB, s *Spool, r Record) {
	t.Helper()
	if err := s.Put(r); err != nil {
		t.Fatal(err)
	}
}

func all(t testing.TB, s *Spool) ([]Record, []Damaged) {
	t.Helper()
	records, damaged, err := s.All()
	if err != nil {
		t.Fatal(err)
	}
	return records, damaged
}

// wantRecords compares as stored: sealed, in the order of the claims.
func wantRecords(t testing.TB, s *Spool, expected ...Record) {
	t.Helper()
	records, damaged := all(t, s)
	var sealed []Record
	for _, r := range expected {
		r, _, err := seal(r)
		if err != nil {
			t.Fatal(err)
		}
		sealed = append(sealed, r)
	}
	if diff := cmp.Diff(sealed, records); diff != "" || len(damaged) > 0 {
		t.Fatalf("damaged %v, records (-want +got)\n%s", damaged, diff)
	}
}

func reserve(t testing.TB, s *Spool) *Slot {
	t.Helper()
	slot, err := s.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	return slot
}

func TestPutAllRemove(t *testing.T) {
	mem := disk(t)
	s := mustOpen(t, mem, 1<<20)
	wantRecords(t, s)
	mustPut(t, s, record(1))
	mustPut(t, s, record(2))
	mustPut(t, s, record(1))                // again: nothing new
	wantRecords(t, s, record(2), record(1)) // S1: by claim
	s = mustOpen(t, mem, 1<<20)             // and after the process ended
	wantRecords(t, s, record(2), record(1)) //
	if err := s.Remove(record(2).EffectID); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(record(2).EffectID); err != nil {
		t.Fatal(err)
	}
	wantRecords(t, s, record(1))
	if s.Len() != 1 {
		t.Fatalf("%d files held", s.Len())
	}
	wantRecords(t, mustOpen(t, mem, 1<<20), record(1))
}

// S5
func TestAnotherResultIsRefused(t *testing.T) {
	mem := disk(t)
	s := mustOpen(t, mem, 1<<20)
	mustPut(t, s, record(1))
	other := record(1)
	other.Result = events.Raw(`{"outcome":"failed"}`)
	for range 2 {
		if err := s.Put(other); !errors.Is(err, ErrExists) {
			t.Fatal(err)
		}
		wantRecords(t, s, record(1))
		s = mustOpen(t, mem, 1<<20)
	}
}

func TestRecordsThatCannotBeKept(t *testing.T) {
	s := mustOpen(t, disk(t), 1<<20)
	for name, change := range map[string]func(*Record){
		"path":     func(r *Record) { r.EffectID = "../escape" },
		"empty":    func(r *Record) { r.EffectID = "" },
		"not JSON": func(r *Record) { r.Result = events.Raw(`{"n":"hush`) },
		"large":    func(r *Record) { r.Result = events.CanonicalOf(strings.Repeat("x", MaxRecord)) },
	} {
		r := record(1)
		change(&r)
		if err := s.Put(r); err == nil || strings.Contains(err.Error(), "hush") {
			t.Fatalf("%s: %v", name, err)
		}
	}
	wantRecords(t, s)
	if _, err := Open(disk(t), dir, MaxRecord-1); err == nil {
		t.Fatal("a spool without room for one record")
	}
}

// S4: slots and records share the bound; what is reserved can be put.
func TestReserveWithinTheBound(t *testing.T) {
	mem := disk(t)
	s := mustOpen(t, mem, 3*MaxRecord)
	slots := []*Slot{reserve(t, s), reserve(t, s), reserve(t, s)}
	if _, err := s.Reserve(); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	slots[0].Release()
	slots[0].Release() // counts once
	slots[0] = reserve(t, s)
	if _, err := s.Reserve(); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	for i, slot := range slots {
		large := record(i)
		large.Result = events.CanonicalOf(strings.Repeat("x", MaxRecord-512))
		mustPut(t, s, large)
		slot.Release()
	}
	for range 2 {
		if _, err := s.Reserve(); !errors.Is(err, ErrFull) {
			t.Fatal(err)
		}
		if err := s.Put(record(9)); !errors.Is(err, ErrFull) {
			t.Fatal(err)
		}
		s = mustOpen(t, mem, 3*MaxRecord) // the files count again
	}
	if err := s.Remove(record(0).EffectID); err != nil {
		t.Fatal(err)
	}
	reserve(t, s).Release()
}

func TestReserveIsConcurrent(t *testing.T) {
	s := mustOpen(t, disk(t), 8*MaxRecord)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				slot, err := s.Reserve()
				if err != nil {
					t.Error(err)
					return
				}
				slot.Release()
			}
		})
	}
	all.Wait()
	if s.slots != 0 {
		t.Fatalf("%d slots are held by nobody", s.slots)
	}
}

// S4: the room of the disk bounds the slots too, and is seen again in time.
func TestReserveSeesTheDisk(t *testing.T) {
	mem := disk(t)
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 2 * MaxRecord, TotalBytes: 1 << 30})
	s := mustOpen(t, mem, 1<<30)
	first, second := reserve(t, s), reserve(t, s)
	if _, err := s.Reserve(); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 3 * MaxRecord, TotalBytes: 1 << 30})
	third := reserve(t, s) // a refusal looks again
	for _, slot := range []*Slot{first, second, third} {
		slot.Release()
	}
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 100, TotalBytes: 1 << 30})
	for n := 0; ; n++ {
		slot, err := s.Reserve()
		if errors.Is(err, ErrFull) {
			break
		}
		if slot.Release(); n > lookEvery {
			t.Fatal("the full disk is not seen")
		}
	}
}

// S4: a disk that cannot be looked at has no room.
func TestReserveWithoutSight(t *testing.T) {
	s := mustOpen(t, errorfs.Wrap(disk(t), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpGetDiskUsage {
			return errorfs.ErrInjected
		}
		return nil
	})), 1<<20)
	if _, err := s.Reserve(); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
}

// S3: whatever bit flips, the record is not given, and its file is named and kept.
func TestDamage(t *testing.T) {
	_, body, err := seal(record(1))
	if err != nil {
		t.Fatal(err)
	}
	name := nameOf(record(1).EffectID)
	for i := range body {
		for bit := range 8 {
			flipped := append([]byte(nil), body...)
			flipped[i] ^= 1 << bit
			if r, err := unseal(name, flipped); err == nil {
				t.Fatalf("bit %d of byte %d: %+v", bit, i, r)
			}
		}
		if _, err := unseal(name, body[:i]); err == nil {
			t.Fatalf("%d bytes are a record", i)
		}
	}
	if _, err := unseal(nameOf(record(2).EffectID), body); err == nil {
		t.Fatal("the record of another name is given")
	}
	if _, err := unseal(name, append(body, '\n')); err == nil {
		t.Fatal("bytes after the record")
	}
}

// S3: damaged and foreign files are reported at every start, and never removed.
func TestDamagedFilesStay(t *testing.T) {
	mem := disk(t)
	s := mustOpen(t, mem, 1<<20)
	mustPut(t, s, record(1))
	damaged := nameOf(record(2).EffectID)
	files := map[string]string{damaged: "torn", "notes.txt": "hello"}
	for name, content := range files {
		f, err := mem.Create(mem.PathJoin(dir, name), vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Write([]byte(content))
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		s = mustOpen(t, mem, 1<<20)
		records, bad := all(t, s)
		if len(records) != 1 || len(bad) != 2 || bad[0].Name != damaged || bad[1].Name != "notes.txt" {
			t.Fatalf("%v, damaged %v", records, bad)
		}
		if err := s.Put(record(2)); !errors.Is(err, ErrExists) {
			t.Fatal(err)
		}
		var d Damaged
		if err := s.Remove(record(2).EffectID); !errors.As(err, &d) || d.Name != damaged {
			t.Fatal(err)
		}
	}
}

// S3: a file that could not be read at the start is a record once it can be.
func TestReadableLater(t *testing.T) {
	mem, failing := disk(t), true
	mustPut(t, mustOpen(t, mem, 1<<20), record(1))
	s := mustOpen(t, errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if failing && op.Kind == errorfs.OpOpen {
			return errorfs.ErrInjected
		}
		return nil
	})), 1<<20)
	if records, damaged := all(t, s); len(records) != 0 || len(damaged) != 1 {
		t.Fatalf("%v, damaged %v", records, damaged)
	}
	failing = false
	wantRecords(t, s, record(1))
	if err := s.Remove(record(1).EffectID); err != nil {
		t.Fatal(err)
	}
	wantRecords(t, s)
}

// The real file system, with real fsyncs.
func TestOnDisk(t *testing.T) {
	path := t.TempDir() + "/spool"
	s, err := Open(vfs.Default, path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	slot := reserve(t, s)
	mustPut(t, s, record(1))
	slot.Release()
	wantRecords(t, s, record(1))
	if mode, err := os.Stat(path); err != nil || mode.Mode().Perm() != 0o700 {
		t.Fatalf("%v, %v", mode.Mode(), err)
	}
	if err := s.Remove(record(1).EffectID); err != nil {
		t.Fatal(err)
	}
	wantRecords(t, s)
	mustPut(t, s, record(2)) // unlinked before, though the answer was an error
	if err := os.Remove(s.path(nameOf(record(2).EffectID))); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(record(2).EffectID); err != nil || s.Len() != 0 {
		t.Fatal(err)
	}
}

func BenchmarkReserve(b *testing.B) {
	s, err := Open(vfs.Default, b.TempDir()+"/spool", 64<<20)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		slot, err := s.Reserve()
		if err != nil {
			b.Fatal(err)
		}
		slot.Release()
	}
}
