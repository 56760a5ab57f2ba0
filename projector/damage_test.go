package projector

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
)

// rebuilds says that the directory is refused, removes it and rebuilds it.
func rebuilds(t *testing.T, w *world, dir string) {
	t.Helper()
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrRebuild) {
		t.Errorf("opened: %v", err)
	}
	if err := Reset(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	p := open(t, dir, nil)
	defer shut(t, p)
	if err := p.CatchUp(context.Background(), w.log, nil); err != nil {
		t.Fatal(err)
	}
	if digest(t, p) != rebuilt(t, w, uint64(len(w.entries))) {
		t.Error("not the rows of a rebuilt projection")
	}
}

// P6: rows that are missing or do not agree are found when it is opened.
func TestOpenFindsMissingRows(t *testing.T) {
	w := newWorld(t)
	id := w.settled()
	waits := w.admitted()
	unknown := w.admitted()
	w.must(w.claim(unknown))
	w.must(w.report(unknown, events.OutcomeUnknown))
	older, _ := w.state.Record(recordName{Kind: 'e', ID: string(unknown)})
	w.must(aggregate.Acknowledge{Caller: operator, EffectID: unknown, Reason: "known"})
	e := w.state.Effect(id)
	head, _ := recordRow(t, w, 'h', "")
	for name, change := range map[string]func(b *pebble.Batch) error{
		"no format":    func(b *pebble.Batch) error { return b.Delete(formatKey(), nil) },
		"other format": func(b *pebble.Batch) error { return b.Set(formatKey(), []byte("0"), nil) },
		"no head":      func(b *pebble.Batch) error { return b.Delete(head, nil) },
		"no effect":    func(b *pebble.Batch) error { k, _ := recordRow(t, w, 'e', string(id)); return b.Delete(k, nil) },
		"older effect": func(b *pebble.Batch) error {
			k, _ := recordRow(t, w, 'e', string(unknown))
			return b.Set(k, older, nil)
		},
		"no run":         func(b *pebble.Batch) error { k, _ := recordRow(t, w, 'r', "main\x00r1"); return b.Delete(k, nil) },
		"no task":        func(b *pebble.Batch) error { k, _ := recordRow(t, w, 't', "main\x00root"); return b.Delete(k, nil) },
		"unknown member": func(b *pebble.Batch) error { return b.Set(head, []byte(`{"seq":1,"more":1}`), nil) },
		"not JSON": func(b *pebble.Batch) error {
			k, _ := recordRow(t, w, 'e', string(id))
			return b.Set(k, []byte("x"), nil)
		},
		"no list row":     func(b *pebble.Batch) error { return b.Delete(listRows(e)[2], nil) },
		"stale list row":  func(b *pebble.Batch) error { return b.Set(append(statePrefix("main", "unknown"), id...), nil, nil) },
		"broken list row": func(b *pebble.Batch) error { return b.Set([]byte{tableTask, 200}, nil, nil) },
		"list row moved": func(b *pebble.Batch) error {
			return errors.Join(b.Delete(listRows(w.state.Effect(waits))[1], nil), b.Set(append(statePrefix("main", "settled"), waits...), nil, nil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			p := open(t, dir, nil)
			apply(t, p, w.entries...)
			if err := p.flush(); err != nil {
				t.Fatal(err)
			}
			b := p.db.NewBatch()
			if err := errors.Join(change(b), b.Commit(pebble.NoSync), b.Close()); err != nil {
				t.Fatal(err)
			}
			shut(t, p)
			rebuilds(t, w, dir)
		})
	}
}

func recordRow(t *testing.T, w *world, kind byte, id string) (key []byte, ok bool) {
	t.Helper()
	w.state.EachRecord(func(k recordName, _ []byte) {
		ok = ok || byte(k.Kind) == kind && k.ID == id
	})
	if !ok {
		t.Fatalf("no record %c %q", kind, id)
	}
	return append([]byte{kind}, id...), ok
}

// P6: whatever byte of whatever file is flipped, and whatever file is lost, it is
// reported, or it makes no difference.
func TestDamagedFiles(t *testing.T) {
	w := newWorld(t).grown(40, 2)
	whole := t.TempDir()
	p := open(t, whole, nil)
	half := len(w.entries) / 2
	apply(t, p, w.entries[:half]...)
	if err := p.flush(); err != nil {
		t.Fatal(err)
	}
	apply(t, p, w.entries[half:]...)
	shut(t, p)
	files, err := os.ReadDir(whole)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, f := range files {
		info, err := f.Info()
		if err != nil || f.Name() == "LOCK" {
			continue
		}
		kind := filepath.Ext(f.Name())
		if kind == "" {
			kind, _, _ = strings.Cut(f.Name(), "-")
		}
		for _, at := range places(info.Size()) {
			if !harmless(t, w, damaged(t, whole, f.Name(), at)) {
				found[kind]++
			}
		}
	}
	if found[".sst"] == 0 || found["MANIFEST"] == 0 {
		t.Errorf("damage was found in %v only", found)
	}
}

// places are the bytes to flip, and -1 for the loss of the file.
func places(size int64) []int64 {
	out := []int64{-1}
	for at := int64(0); at < size; at += 1 + size/12 {
		out = append(out, at)
	}
	return out
}

// damaged is a copy of a directory with one byte flipped.
func damaged(t *testing.T, dir, name string, at int64) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(to, name)
	if at < 0 {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		return to
	}
	b, err := fs.ReadFile(os.DirFS(to), name)
	if err != nil {
		t.Fatal(err)
	}
	b[at] ^= 0x10
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

// harmless opens what was damaged: what opens is the fold of a prefix, and
// catches up to the rows of a rebuilt projection.
func harmless(t *testing.T, w *world, dir string) bool {
	t.Helper()
	p, err := Open(dir, Options{})
	if errors.Is(err, ErrRebuild) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, p)
	at := p.State().Seq()
	if p.State().Digest() != w.fold(at).Digest() {
		t.Fatalf("at entry %d the state is not the fold", at)
	}
	if err := p.CatchUp(context.Background(), w.log, nil); err != nil {
		t.Fatal(err)
	}
	if digest(t, p) != rebuilt(t, w, uint64(len(w.entries))) {
		t.Fatal("not the rows of a rebuilt projection")
	}
	return true
}

// P6: a block that is damaged while the store is open is not answered from.
func TestDamageWhileOpen(t *testing.T) {
	w := newWorld(t)
	id := w.settled()
	p := open(t, "p", vfs.NewMem())
	defer func() { _ = p.Close() }()
	apply(t, p, w.entries...)
	p.fault.corruption(pebble.DataCorruptionInfo{Details: errors.New("block")})
	if _, err := p.Positions(id, events.Position{}); err == nil {
		t.Error("positions of a damaged store")
	}
	if p.Fault() == nil {
		t.Error("nothing is said about it")
	}
}
