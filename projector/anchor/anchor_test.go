package anchor

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

func TestCreateAndOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "on", "another", "disk")
	if _, err := Open(vfs.Default, dir); !errors.Is(err, ErrMissing) {
		t.Errorf("nothing there: %v", err)
	}
	if _, err := Read(vfs.Default, dir); !errors.Is(err, ErrMissing) {
		t.Errorf("nothing there: %v", err)
	}
	if err := Create(vfs.Default, dir, at(3)); err != nil {
		t.Fatal(err)
	}
	if err := Create(vfs.Default, dir, at(1)); !errors.Is(err, ErrExists) {
		t.Errorf("again: %v", err)
	}
	for seq := uint64(3); seq < 8; seq++ {
		a, err := Open(vfs.Default, dir)
		if err != nil {
			t.Fatal(err)
		}
		if a.Load() != at(seq) {
			t.Errorf("found %+v, want %d", a.Load(), seq)
		}
		if err := a.Ensure(t.Context(), at(seq+1)); err != nil {
			t.Fatal(err)
		}
		if m, err := Read(vfs.Default, dir); err != nil || m != at(seq+1) {
			t.Errorf("read %+v %v", m, err)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(filepath.Join(dir, fileName))
	if err != nil || info.Size() != 2*slotSize {
		t.Errorf("size %d %v", info.Size(), err)
	}
}

// K2: damage of one slot leaves the other, damage of both is named; never a
// wrong mark.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, fileName)
	a, err := createdAt(dir, 1, 2, 3) // slots: 3, 2
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	later := 0
	if r, ok := decode(good[slotSize:]); ok && r.Seq == 3 {
		later = 1
	}
	for name, c := range map[string]struct {
		damage func(b []byte) []byte
		want   uint64 // 0: damaged
	}{
		"bit of the later":   {func(b []byte) []byte { b[later*slotSize+100] ^= 1; return b }, 2},
		"bit of the earlier": {func(b []byte) []byte { b[(1-later)*slotSize+100] ^= 1; return b }, 3},
		"padding":            {func(b []byte) []byte { b[later*slotSize+slotSize-1] ^= 1; return b }, 2},
		"bits of both":       {func(b []byte) []byte { b[40] ^= 1; b[slotSize+40] ^= 1; return b }, 0},
		"empty":              {func([]byte) []byte { return nil }, 0},
		"zeros":              {func(b []byte) []byte { return make([]byte, len(b)) }, 0},
		"half":               {func(b []byte) []byte { return b[:slotSize] }, map[bool]uint64{true: 3, false: 2}[later == 0]},
		"less than a slot":   {func(b []byte) []byte { return b[:slotSize-1] }, 0},
		"future version": {func(b []byte) []byte {
			for i := range 2 {
				copy(b[i*slotSize:], foreign(`{"v":2}`))
			}
			return b
		}, 0},
		"unknown member": {func(b []byte) []byte {
			for i := range 2 {
				copy(b[i*slotSize:], foreign(`{"v":1,"x":2}`))
			}
			return b
		}, 0},
	} {
		if err := os.WriteFile(file, c.damage(append([]byte(nil), good...)), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := Read(vfs.Default, dir)
		if c.want == 0 && !errors.Is(err, ErrDamaged) || c.want != 0 && (err != nil || m != at(c.want)) {
			t.Errorf("%s: %+v %v, want %d", name, m, err, c.want)
		}
		a, err := Open(vfs.Default, dir)
		if c.want == 0 {
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("%s: opened, %v", name, err)
			}
			if err := Create(vfs.Default, dir, at(1)); !errors.Is(err, ErrExists) {
				t.Errorf("%s: made anew: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		// It goes on from there, and heals the damaged slot.
		for seq := uint64(4); seq < 6; seq++ {
			if err := a.Ensure(t.Context(), at(seq)); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		healed, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			if _, ok := decode(healed[i*slotSize : (i+1)*slotSize]); !ok {
				t.Errorf("%s: slot %d is still damaged", name, i)
			}
		}
	}
}

// foreign is an intact slot with any text.
func foreign(text string) []byte {
	slot := make([]byte, slotSize)
	for i := range slot {
		slot[i] = ' '
	}
	copy(slot[sumSize:], text)
	sum := sha256.Sum256(slot[sumSize:])
	copy(slot, sum[:])
	return slot
}

// An error of the disk is no damage: nothing may be concluded from it.
func TestReadErrorIsNotDamage(t *testing.T) {
	mem := vfs.NewMem()
	if err := Create(mem, "anchor", at(1)); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []errorfs.OpKind{errorfs.OpFileReadAt, errorfs.OpOpen} {
		fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == kind {
				return errorfs.ErrInjected
			}
			return nil
		}))
		if _, err := Read(fs, "anchor"); err == nil || errors.Is(err, ErrDamaged) || errors.Is(err, ErrMissing) {
			t.Errorf("read: %v", err)
		}
		if kind == errorfs.OpFileReadAt {
			if _, err := Open(fs, "anchor"); err == nil || errors.Is(err, ErrDamaged) || errors.Is(err, ErrMissing) {
				t.Errorf("open: %v", err)
			}
		}
	}
}

// A mark that does not fit is refused before anything is written.
func TestMarkTooLarge(t *testing.T) {
	m := at(2)
	for range 8 {
		m.LedgerID += m.LedgerID
	}
	if err := Create(vfs.NewMem(), "anchor", m); err == nil {
		t.Error("created")
	}
}

func createdAt(dir string, seqs ...uint64) (*Anchor, error) {
	if err := Create(vfs.Default, dir, at(seqs[0])); err != nil {
		return nil, err
	}
	a, err := Open(vfs.Default, dir)
	if err != nil {
		return nil, err
	}
	for _, seq := range seqs[1:] {
		if err := a.Ensure(context.Background(), at(seq)); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func BenchmarkEnsure(b *testing.B) {
	for _, width := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("in-flight=%d", width), func(b *testing.B) {
			a, err := createdAt(b.TempDir(), 1)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = a.Close() }()
			var seq atomic.Uint64
			seq.Store(1)
			b.SetParallelism(width)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := a.Ensure(context.Background(), at(seq.Add(1))); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
