package anchor

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/effectd/effectd/events"
)

// gated is a file system whose data syncs wait for a token.
type gated struct {
	vfs.FS
	gate  chan struct{}
	syncs *int
	open  *bool // the gate stands open
}

type gatedFile struct {
	vfs.File
	fs gated
}

func (g gated) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := g.FS.OpenReadWrite(name, c, opts...)
	return gatedFile{File: f, fs: g}, err
}

func (f gatedFile) SyncData() error {
	if !*f.fs.open {
		<-f.fs.gate
		*f.fs.syncs++
	}
	return f.File.SyncData()
}

func openGated(t *testing.T) (*Anchor, gated) {
	t.Helper()
	g := gated{FS: vfs.NewMem(), gate: make(chan struct{}), syncs: new(int), open: new(true)}
	if err := Create(g.FS, "anchor", at(1)); err != nil {
		t.Fatal(err)
	}
	a, err := Open(g, "anchor")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	*g.open = false
	return a, g
}

// Everybody who comes while a write runs is served by the one that follows.
func TestOneSyncServesAllWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, g := openGated(t)
		done := make(chan error, 200)
		go func() { done <- a.Ensure(t.Context(), at(2)) }()
		synctest.Wait() // the first write waits for its sync
		for i := range 100 {
			go func() { done <- a.Ensure(t.Context(), at(uint64(3+i))) }()
		}
		synctest.Wait()
		for range 2 {
			g.gate <- struct{}{}
			synctest.Wait()
		}
		if len(done) != 101 || *g.syncs != 2 {
			t.Errorf("%d of 101 returned after %d syncs", len(done), *g.syncs)
		}
		for range len(done) {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if got := a.Load(); got != at(102) {
			t.Errorf("mark %d", got.Seq)
		}
	})
}

// Whoever gives up leaves the others a writer, also the one whose turn it was.
func TestGivingUpStopsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, g := openGated(t)
		first, second, third := make(chan error, 1), make(chan error, 1), make(chan error, 1)
		go func() { first <- a.Ensure(t.Context(), at(2)) }()
		synctest.Wait()
		impatient, giveUp := context.WithCancelCause(t.Context())
		why := errors.New("deadline of the send")
		go func() { second <- a.Ensure(impatient, at(3)) }()
		synctest.Wait()
		giveUp(why)
		if err := <-second; !errors.Is(err, why) {
			t.Errorf("gave up with %v", err)
		}
		g.gate <- struct{}{}
		if err := <-first; err != nil {
			t.Error(err)
		}
		go func() { third <- a.Ensure(t.Context(), at(4)) }()
		synctest.Wait()
		g.gate <- struct{}{}
		if err := <-third; err != nil {
			t.Error(err)
		}
		if got := a.Load(); got.Seq != 4 || *g.syncs != 2 {
			t.Errorf("mark %d after %d syncs", got.Seq, *g.syncs)
		}
	})
}

// K3: the mark never goes back and never becomes another log's.
func TestNeverBackNorElsewhere(t *testing.T) {
	a, err := created(vfs.NewMem(), 5)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	if err := a.Ensure(t.Context(), at(9)); err != nil {
		t.Fatal(err)
	}
	if err := a.Ensure(t.Context(), at(7)); err != nil {
		t.Errorf("an earlier mark is held by the later: %v", err)
	}
	other, made, fork := at(10), at(10), at(9)
	other.LedgerID, made.Fingerprint, fork.SHA256 = "other", events.ZeroDigest, events.ZeroDigest
	for _, m := range []Mark{other, made, fork} {
		if err := a.Ensure(t.Context(), m); !errors.Is(err, ErrOther) {
			t.Errorf("%+v: %v", m, err)
		}
	}
	if a.Load() != at(9) {
		t.Errorf("mark %+v", a.Load())
	}
}

// Two marks of one entry that differ do not wait together.
func TestForkWithinARound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, g := openGated(t)
		done := make(chan error, 2)
		for seq := range uint64(2) {
			go func() { done <- a.Ensure(t.Context(), at(seq+2)) }()
			synctest.Wait()
		}
		fork := at(3)
		fork.SHA256 = events.ZeroDigest
		if err := a.Ensure(t.Context(), fork); !errors.Is(err, ErrOther) {
			t.Error(err)
		}
		for range 2 {
			g.gate <- struct{}{}
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// After a recovery the mark is the operator's, and who waits for the old log is
// not answered by it.
func TestReplace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, g := openGated(t)
		recovered := at(2)
		recovered.Fingerprint = events.ZeroDigest
		writing, waiting, replaced, late := make(chan error, 1), make(chan error, 1), make(chan error, 1), make(chan error, 1)
		go func() { writing <- a.Ensure(t.Context(), at(5)) }()
		synctest.Wait()
		go func() { replaced <- a.Replace(t.Context(), recovered) }()
		synctest.Wait()
		g.gate <- struct{}{} // the write of 5
		if err := <-writing; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		go func() { late <- a.Ensure(t.Context(), at(6)) }() // while Replace writes
		synctest.Wait()
		g.gate <- struct{}{}
		if err := <-replaced; err != nil {
			t.Error(err)
		}
		if err := <-late; !errors.Is(err, ErrOther) {
			t.Errorf("waited for the old log: %v", err)
		}
		go func() { waiting <- a.Ensure(t.Context(), at(7)) }()
		if err := <-waiting; !errors.Is(err, ErrOther) {
			t.Errorf("came with the old log: %v", err)
		}
		if a.Load() != recovered {
			t.Errorf("mark %+v", a.Load())
		}
		if found, err := Read(g.FS, "anchor"); err != nil || found != recovered {
			t.Errorf("found %+v %v", found, err)
		}
	})
}

// Who waits in the round that Replace takes is not told that its mark is durable.
func TestReplaceTakesTheTurnOfOthers(t *testing.T) {
	taken := false
	for i := 0; i < 200 && !taken; i++ { // either may get the turn
		synctest.Test(t, func(t *testing.T) {
			a, g := openGated(t)
			recovered := at(2)
			recovered.Fingerprint = events.ZeroDigest
			writing, waiting, replaced := make(chan error, 1), make(chan error, 1), make(chan error, 1)
			go func() { writing <- a.Ensure(t.Context(), at(5)) }()
			synctest.Wait()
			go func() { waiting <- a.Ensure(t.Context(), at(6)) }()
			go func() { replaced <- a.Replace(t.Context(), recovered) }()
			synctest.Wait()
			close(g.gate)
			if err := errors.Join(<-writing, <-replaced); err != nil {
				t.Error(err)
			}
			err := <-waiting
			if taken = *g.syncs == 2; taken != errors.Is(err, ErrOther) || !taken && err != nil {
				t.Errorf("after %d syncs: %v", *g.syncs, err)
			}
			if a.Load() != recovered {
				t.Errorf("mark %+v", a.Load())
			}
		})
	}
	if !taken {
		t.Error("Replace never had the turn")
	}
}
