package eventlog

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// proxied attaches through a proxy; direct is a log on a connection of its own.
func proxied(t *testing.T, cfg Config) (s *Stream, p *proxy, direct *Stream) {
	srv := startServer(t, t.TempDir())
	direct = create(t, srv.ClientURL(), Config{LedgerID: ledger})
	p = startProxy(t, srv.Addr().String())
	cfg.LedgerID = ledger
	s, err := Attach(testContext(t), connect(t, p.url()), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s, p, direct
}

// awaitEntry waits until another connection sees the entry stored.
func awaitEntry(t *testing.T, l Log, seq uint64) {
	t.Helper()
	_, err := collect(testContext(t), l, seq, "", seq)
	wantError(t, err, errEnough)
}

// L2: the entry is stored and its acknowledgement lost, with the connection.
func TestAppendWhoseAckIsLostWithTheConnection(t *testing.T) {
	s, p, direct := proxied(t, Config{AckWait: time.Hour})
	list := entries(4, "a", 0)
	appendAll(t, s, list[:2])
	p.arm(answers)
	done := make(chan error, 1)
	go func() { done <- s.Append(testContext(t), list[2]) }()
	<-p.passed
	awaitEntry(t, direct, 3)
	p.cut()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	appendAll(t, s, list[3:])
	sameEntries(t, mustReadAll(t, direct), list)
}

// L2, L4: the acknowledgement is lost and the server stays silent; the append
// is unknown, nothing else may be published, the same entry may.
func TestAppendWhoseAckIsLostIsUnknown(t *testing.T) {
	s, p, direct := proxied(t, Config{AckWait: 20 * time.Millisecond})
	list := entries(4, "a", 0)
	appendAll(t, s, list[:2])
	p.arm(answers)
	ctx, cancel := context.WithCancel(testContext(t))
	done := make(chan error, 1)
	go func() { done <- s.Append(ctx, list[2]) }()
	<-p.passed
	awaitEntry(t, direct, 3)
	cancel()
	err := <-done
	wantError(t, err, ErrAppendUnknown)
	for _, proven := range []error{ErrUnavailable, ErrFull, ErrConflict, ErrClosed, ErrUntrusted} {
		if errors.Is(err, proven) {
			t.Fatalf("%v passes for %v", err, proven)
		}
	}

	soon, stop := context.WithTimeout(testContext(t), 50*time.Millisecond)
	defer stop()
	wantError(t, s.Append(soon, entry(&list[1], "b", 0)), ErrAppendUnknown)
	p.cut()
	appendAll(t, s, list[2:])
	sameEntries(t, mustReadAll(t, direct), list)
}

// L4: the entry is lost on the way. Nothing else may be published until the
// same entry is.
func TestAppendThatIsLostIsUnknown(t *testing.T) {
	s, p, direct := proxied(t, Config{AckWait: 20 * time.Millisecond})
	list := entries(3, "a", 0)
	appendAll(t, s, list[:2])
	p.arm(requests)
	ctx, cancel := context.WithCancel(testContext(t))
	done := make(chan error, 1)
	go func() { done <- s.Append(ctx, list[2]) }()
	<-p.passed
	cancel()
	wantError(t, <-done, ErrAppendUnknown)
	p.cut()
	await(t, "a new connection", s.nc.IsConnected)
	wantError(t, s.Append(testContext(t), entry(&list[1], "b", 0)), ErrAppendUnknown)
	sameEntries(t, mustReadAll(t, direct), list[:2])
	appendAll(t, s, list[2:])
	sameEntries(t, mustReadAll(t, direct), list)
}

// L3: after a lost answer another writer's entry is found: a conflict.
func TestAppendUnresolvedThenAnotherEntry(t *testing.T) {
	srv := startServer(t, t.TempDir())
	direct := create(t, srv.ClientURL(), Config{LedgerID: ledger})
	p := startProxy(t, srv.Addr().String())
	s, err := Attach(testContext(t), connect(t, p.url()), Config{LedgerID: ledger})
	if err != nil {
		t.Fatal(err)
	}
	list := entries(3, "a", 0)
	appendAll(t, s, list[:2])
	foreign := entry(&list[1], "b", 0)
	s.pending = &list[2] // as if an attempt had been sent and never arrived
	appendAll(t, direct, []events.Stored{foreign})
	wantError(t, s.Append(testContext(t), list[2]), ErrConflict)
	appendAll(t, s, []events.Stored{entry(&foreign, "a", 0)})
	if got := mustReadAll(t, direct); len(got) != 4 {
		t.Fatal(len(got))
	}
}

// L4: what was left unresolved is let go once its sequence is taken.
func TestAppendLetsGoOfTheUnresolved(t *testing.T) {
	srv := startServer(t, t.TempDir())
	s := create(t, srv.ClientURL(), Config{LedgerID: ledger})
	list := entries(3, "a", 0)
	s.pending = &list[0]
	wantError(t, s.Append(testContext(t), entry(nil, "b", 0)), ErrAppendUnknown)
	appendAll(t, connected(t, srv.ClientURL()), list[:1])
	wantError(t, s.Append(testContext(t), entry(nil, "b", 0)), ErrConflict)
	appendAll(t, s, list[1:])
	sameEntries(t, mustReadAll(t, s), list)
}

func connected(t *testing.T, url string) *Stream {
	t.Helper()
	s, err := Attach(testContext(t), connect(t, url), Config{LedgerID: ledger})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// L1, L3: of writers that race, exactly one wins each sequence.
func TestWritersRace(t *testing.T) {
	const writers, last = 4, 120
	srv := startServer(t, t.TempDir())
	reader := create(t, srv.ClientURL(), Config{LedgerID: ledger})
	var won [last + 1]atomic.Int32
	group, ctx := errgroup.WithContext(testContext(t))
	for w := range writers {
		s, by := connected(t, srv.ClientURL()), string(rune('a'+w))
		group.Go(func() error { return race(ctx, s, by, last, &won) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, e := range mustReadAll(t, reader) {
		if n := won[e.Seq].Load(); n != 1 {
			t.Fatalf("entry %d has %d winners", e.Seq, n)
		}
	}
}

func race(ctx context.Context, s *Stream, by string, last uint64, won *[121]atomic.Int32) error {
	var tip *events.Stored
	for {
		known, next := uint64(0), entry(tip, by, rand.IntN(100))
		if tip != nil {
			known = tip.Seq
		}
		if known >= last {
			return nil
		}
		err := s.Append(ctx, next)
		switch {
		case err == nil:
			won[next.Seq].Add(1)
			tip = &next
		case errors.Is(err, ErrConflict):
			behind, err := s.Read(ctx, known+1, 0)
			if err != nil && !errors.Is(err, ErrUnavailable) {
				return err
			}
			if n := len(behind); n > 0 { // else a replica is behind or moving
				tip = &behind[n-1]
			}
		default:
			return err
		}
	}
}

// L1, L2: the server is killed at any point while entries are appended, tailed
// and delivered: what was acknowledged is there, once, and readers go on.
func TestServerIsKilled(t *testing.T) {
	t.Parallel()
	const last = 400
	store := t.TempDir()
	srv := startChild(t, store, -1)
	s := create(t, srv.url, Config{LedgerID: ledger, AckWait: 500 * time.Millisecond})
	list := entries(last, "a", 200)
	group, ctx := errgroup.WithContext(testContext(t))
	acked := make(chan uint64, last)
	group.Go(func() error {
		defer close(acked)
		for _, e := range list {
			if err := s.Append(ctx, e); err != nil {
				return err
			}
			acked <- e.Seq
		}
		return nil
	})
	var tailed []events.Stored
	reader := connected(t, srv.url)
	group.Go(func() (err error) {
		if tailed, err = collect(ctx, reader, 1, events.ZeroDigest, last); errors.Is(err, errEnough) {
			err = nil
		}
		return err
	})
	group.Go(func() error { return deliverUpTo(ctx, reader, last) })
	kills := 0
	for seq := range acked {
		if seq%100 == 50 {
			srv.kill()
			srv = startChild(t, store, srv.port(t))
			kills++
		}
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if kills != 4 {
		t.Fatal(kills)
	}
	sameEntries(t, mustReadAll(t, connected(t, srv.url)), list)
	sameEntries(t, tailed, list)
}

// deliverUpTo takes deliveries until each entry came at least once.
func deliverUpTo(ctx context.Context, l Log, last int) error {
	d, err := l.Deliveries(ctx, "dispatcher", 1)
	if err != nil {
		return err
	}
	defer d.Stop()
	for seen := map[uint64]bool{}; len(seen) < last; {
		got, err := d.Next(ctx)
		if err != nil {
			return err
		}
		seen[got.Seq] = true
		_ = got.Ack() // lost when the connection is
	}
	return nil
}

// L3: a full log says so, keeps what it has, and takes nothing more.
func TestAppendToAFullLog(t *testing.T) {
	srv := startServer(t, t.TempDir())
	s := create(t, srv.ClientURL(), Config{LedgerID: ledger, MaxBytes: 20_000})
	list := entries(10, "a", 4000)
	var err error
	n := 0
	for ; n < len(list) && err == nil; n++ {
		err = s.Append(testContext(t), list[n])
	}
	wantError(t, err, ErrFull)
	sameEntries(t, mustReadAll(t, s), list[:n-1])
}

// L3: proven not stored, for other reasons.
func TestAppendUnavailable(t *testing.T) {
	srv := startServer(t, t.TempDir())
	s := create(t, srv.ClientURL(), Config{LedgerID: ledger})
	list := entries(2, "a", 0)
	appendAll(t, s, list[:1])
	wantError(t, s.Append(testContext(t), entry(&list[0], "a", 2<<20)), ErrUnavailable) // above the payload limit of the server
	wantError(t, s.Append(testContext(t), events.Stored{}), ErrUnavailable)
	broken := list[1].Entry
	broken.Prev = events.ZeroDigest
	wantError(t, s.Append(testContext(t), events.Seal(broken)), ErrUnavailable)
	ctx, cancel := context.WithCancel(testContext(t))
	cancel()
	wantError(t, s.Append(ctx, list[1]), ErrUnavailable)
	stopServer(srv)
	await(t, "the connection lost", func() bool { return !s.nc.IsConnected() })
	ctx, cancel = context.WithTimeout(testContext(t), 100*time.Millisecond)
	defer cancel()
	wantError(t, s.Append(ctx, list[1]), ErrUnavailable)
	s.nc.Close()
	wantError(t, s.Append(testContext(t), list[1]), ErrClosed)
	wantError(t, s.Tail(testContext(t), 1, "", func(events.Stored) error { return nil }), ErrClosed)
	_, err := s.Read(testContext(t), 1, 0)
	wantError(t, err, ErrClosed)
}

// L3: an entry whose first event is in the log elsewhere is not taken for stored.
func TestAppendOfAKnownEventID(t *testing.T) {
	srv := startServer(t, t.TempDir())
	s := create(t, srv.ClientURL(), Config{LedgerID: ledger})
	list := entries(1, "a", 0)
	appendAll(t, s, list)
	again := entry(&list[0], "b", 0).Entry
	again.Events[0].ID = list[0].Events[0].ID
	wantError(t, s.Append(testContext(t), events.Seal(again)), ErrUnavailable)
	sameEntries(t, mustReadAll(t, s), list)
}

// Another stream that takes the subject does not pass for the log.
func TestAppendIsAcknowledgedByAnotherStream(t *testing.T) {
	srv := startServer(t, t.TempDir())
	s := create(t, srv.ClientURL(), Config{LedgerID: ledger})
	admin := connect(t, srv.ClientURL())
	c := Config{}.StreamConfig()
	c.Subjects = []string{"elsewhere"}
	if _, err := admin.UpdateStream(testContext(t), c); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.CreateStream(testContext(t), jetstream.StreamConfig{Name: "OTHER", Subjects: []string{wire.LogSubject}}); err != nil {
		t.Fatal(err)
	}
	wantError(t, s.Append(testContext(t), entries(1, "a", 0)[0]), ErrUntrusted)
}

// What is no acknowledgement proves nothing.
func TestMalformedAcknowledgement(t *testing.T) {
	for _, body := range []string{"", "not json", `{"stream":7}`, `{"error":{"err_code":99999,"description":"new"}}`,
		`{"stream":"EFFECTS","seq":1,"duplicate":true}`} {
		if a, err := judge([]byte(body), 1); a != silent || err == nil {
			t.Fatalf("%q: %v %v", body, a, err)
		}
	}
	if a, err := judge([]byte(`{"stream":"EFFECTS","seq":2}`), 1); a != broken || !errors.Is(err, ErrUntrusted) {
		t.Fatal(a, err)
	}
}
