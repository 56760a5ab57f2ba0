package eventlog

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// rig is a log under test and the hands of others on it.
type rig struct {
	log    Log
	put    func(body []byte) // appends anything, as another writer could
	remove func(seq uint64)  // takes a message away
}

func memoryRig(*testing.T) rig {
	m := NewMemory(ledger, time.Unix(1, 0))
	return rig{log: m, put: m.Put, remove: func(seq uint64) { m.Damage(seq, nil) }}
}

func streamRig(cfg Config) func(t *testing.T) rig {
	cfg.LedgerID = ledger
	return func(t *testing.T) rig {
		srv := startServer(t, t.TempDir())
		js, foreign := connect(t, srv.ClientURL()), connect(t, srv.ClientURL())
		deletable := cfg.StreamConfig() // which Attach would refuse
		deletable.DenyDelete = false
		stream, err := js.CreateStream(testContext(t), deletable)
		if err != nil {
			t.Fatal(err)
		}
		return rig{
			log: newStream(js, stream, cfg),
			put: func(body []byte) {
				if _, err := foreign.PublishMsg(testContext(t), &nats.Msg{Subject: wire.LogSubject, Data: body}); err != nil {
					t.Fatal(err)
				}
			},
			remove: func(seq uint64) {
				if err := stream.DeleteMsg(testContext(t), seq); err != nil {
					t.Fatal(err)
				}
			},
		}
	}
}

// Both logs, and the stream for a reader that polls, keep one contract.
func TestConformance(t *testing.T) {
	for name, open := range map[string]func(*testing.T) rig{
		"memory": memoryRig, "stream": streamRig(Config{}), "polling": streamRig(Config{Poll: time.Millisecond}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, rule := range rules {
				if name == "polling" && strings.HasPrefix(rule.name, "deliver") {
					continue // the same consumer
				}
				t.Run(rule.name, func(t *testing.T) {
					t.Parallel()
					rule.check(t, open(t))
				})
			}
		})
	}
}

var rules = []struct {
	name  string
	check func(t *testing.T, r rig)
}{
	{"empty", emptyLog},
	{"append and read", appendAndRead},
	{"append again", appendAgain},
	{"conflict", conflict},
	{"append after a gap", appendAfterGap},
	{"append on another entry", appendOnAnother},
	{"read past the end", readPastEnd},
	{"tail", tail},
	{"tail of a writer at work", tailWhileAppending},
	{"tail on another chain", tailOnAnotherChain},
	{"gap", gap},
	{"gap at the end", gapAtEnd},
	{"gap at the beginning", gapAtBeginning},
	{"broken chain", brokenChain},
	{"another sequence", anotherSequence},
	{"another ledger", anotherLedger},
	{"not an entry", notAnEntry},
	{"deliveries", deliverAll},
	{"deliver again", deliverAgain},
	{"status", status},
}

func emptyLog(t *testing.T, r rig) {
	if got := mustReadAll(t, r.log); len(got) != 0 {
		t.Fatal(got)
	}
	if last, err := r.log.Last(testContext(t)); last != 0 || err != nil {
		t.Fatal(last, err)
	}
}

// L1
func appendAndRead(t *testing.T, r rig) {
	list := entries(20, "a", 10)
	appendAll(t, r.log, list)
	sameEntries(t, mustReadAll(t, r.log), list)
	if last, err := r.log.Last(testContext(t)); last != 20 || err != nil {
		t.Fatal(last, err)
	}
	part, err := r.log.Read(testContext(t), 5, 3)
	if err != nil {
		t.Fatal(err)
	}
	sameEntries(t, part, list[4:7])
}

// L2: the same bytes at the same place are the same append.
func appendAgain(t *testing.T, r rig) {
	list := entries(3, "a", 0)
	appendAll(t, r.log, list)
	for _, e := range list {
		if err := r.log.Append(testContext(t), e); err != nil {
			t.Fatal(err)
		}
	}
	sameEntries(t, mustReadAll(t, r.log), list)
}

// L3
func conflict(t *testing.T, r rig) {
	list := entries(3, "a", 0)
	appendAll(t, r.log, list)
	wantError(t, r.log.Append(testContext(t), entry(&list[1], "b", 0)), ErrConflict)
	wantError(t, r.log.Append(testContext(t), entry(nil, "b", 0)), ErrConflict)
	sameEntries(t, mustReadAll(t, r.log), list)
}

func appendAfterGap(t *testing.T, r rig) {
	list := entries(5, "a", 0)
	appendAll(t, r.log, list[:3])
	wantDistrust(t, r.log.Append(testContext(t), list[4]), 4)
	sameEntries(t, mustReadAll(t, r.log), list[:3])
}

func appendOnAnother(t *testing.T, r rig) {
	list, others := entries(3, "a", 0), entries(4, "b", 0)
	for _, e := range list {
		r.put(e.Body)
	}
	wantDistrust(t, r.log.Append(testContext(t), others[3]), 3)
	sameEntries(t, mustReadAll(t, r.log), list)
}

func readPastEnd(t *testing.T, r rig) {
	appendAll(t, r.log, entries(3, "a", 0))
	if got, err := r.log.Read(testContext(t), 4, 0); err != nil || len(got) != 0 {
		t.Fatal(got, err)
	}
	_, err := r.log.Read(testContext(t), 5, 0)
	wantDistrust(t, err, 4)
}

var errEnough = errors.New("enough")

// collect tails until the entry with sequence last was delivered.
func collect(ctx context.Context, l Log, from uint64, prev events.Digest, last uint64) ([]events.Stored, error) {
	var got []events.Stored
	err := l.Tail(ctx, from, prev, func(e events.Stored) error {
		got = append(got, e)
		if e.Seq == last {
			return errEnough
		}
		return nil
	})
	return got, err
}

func tail(t *testing.T, r rig) {
	list := entries(30, "a", 0)
	appendAll(t, r.log, list)
	got, err := collect(testContext(t), r.log, 1, events.ZeroDigest, 30)
	wantError(t, err, errEnough)
	sameEntries(t, got, list)
	got, err = collect(testContext(t), r.log, 11, list[9].SHA256, 20)
	wantError(t, err, errEnough)
	sameEntries(t, got, list[10:20])
	got, err = collect(testContext(t), r.log, 11, "", 20)
	wantError(t, err, errEnough)
	sameEntries(t, got, list[10:20])

	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	wantError(t, r.log.Tail(ctx, 30, "", func(events.Stored) error { cancel(); return nil }), context.Canceled)
}

func tailWhileAppending(t *testing.T, r rig) {
	list := entries(300, "a", 0)
	ctx := testContext(t)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		for _, e := range list {
			if err := r.log.Append(ctx, e); err != nil {
				return err
			}
		}
		return nil
	})
	var got [3][]events.Stored
	for i := range got {
		group.Go(func() (err error) {
			got[i], err = collect(ctx, r.log, 1, events.ZeroDigest, 300)
			if errors.Is(err, errEnough) {
				err = nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for i := range got {
		sameEntries(t, got[i], list)
	}
}

// L5, and so on to the end.
func tailOnAnotherChain(t *testing.T, r rig) {
	list := entries(5, "a", 0)
	appendAll(t, r.log, list)
	got, err := collect(testContext(t), r.log, 3, list[0].SHA256, 5)
	wantDistrust(t, err, 3)
	sameEntries(t, got, nil)
}

// refuses checks that reading and tailing give the entries before seq, then
// distrust of seq; also when reading starts right after it or at it.
func refuses(t *testing.T, r rig, seq uint64, before []events.Stored) {
	t.Helper()
	got, err := readAll(testContext(t), r.log, 0)
	wantDistrust(t, err, seq)
	sameEntries(t, got, before)
	got, err = collect(testContext(t), r.log, 1, events.ZeroDigest, 1000)
	wantDistrust(t, err, seq)
	sameEntries(t, got, before)
	_, err = r.log.Read(testContext(t), seq, 1)
	wantDistrust(t, err, seq)
}

func gap(t *testing.T, r rig) {
	list := entries(20, "a", 0)
	appendAll(t, r.log, list)
	r.remove(10)
	refuses(t, r, 10, list[:9])
	_, err := r.log.Read(testContext(t), 11, 0)
	wantDistrust(t, err, 10)
}

func gapAtEnd(t *testing.T, r rig) {
	list := entries(20, "a", 0)
	appendAll(t, r.log, list)
	r.remove(20)
	_, err := r.log.Read(testContext(t), 21, 0)
	wantDistrust(t, err, 20)
}

func gapAtBeginning(t *testing.T, r rig) {
	appendAll(t, r.log, entries(20, "a", 0))
	r.remove(1)
	refuses(t, r, 1, nil)
}

func brokenChain(t *testing.T, r rig) {
	list := entries(3, "a", 0)
	appendAll(t, r.log, list)
	other := entries(4, "b", 0)
	r.put(other[3].Body)
	r.put(entry(&other[3], "b", 0).Body)
	refuses(t, r, 4, list)
}

func anotherSequence(t *testing.T, r rig) {
	list := entries(3, "a", 0)
	appendAll(t, r.log, list)
	e := entry(&list[2], "a", 0).Entry
	e.Seq = 7
	r.put(events.Seal(e).Body)
	refuses(t, r, 4, list)
}

func anotherLedger(t *testing.T, r rig) {
	list := entries(3, "a", 0)
	appendAll(t, r.log, list)
	e := entry(&list[2], "a", 0).Entry
	e.LedgerID = "01OTHER"
	r.put(events.Seal(e).Body)
	refuses(t, r, 4, list)
}

func notAnEntry(t *testing.T, r rig) {
	list := entries(3, "a", 0)
	appendAll(t, r.log, list)
	r.put([]byte(`{"v":1}`))
	refuses(t, r, 4, list)
}

func deliverAll(t *testing.T, r rig) {
	list := entries(300, "a", 0)
	appendAll(t, r.log, list[:200])
	d, err := r.log.Deliveries(testContext(t), "dispatcher", 101)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Stop()
	appendAll(t, r.log, list[200:])
	for _, want := range list[100:] {
		got, err := d.Next(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		sameEntries(t, []events.Stored{got.Stored}, []events.Stored{want})
		if err := got.Ack(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(testContext(t))
	cancel()
	_, err = d.Next(ctx)
	wantError(t, err, context.Canceled)
	d.Stop()
	_, err = d.Next(testContext(t))
	wantError(t, err, ErrClosed)
}

func deliverAgain(t *testing.T, r rig) {
	appendAll(t, r.log, entries(3, "a", 0))
	d, err := r.log.Deliveries(testContext(t), "dispatcher", 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		got, err := d.Next(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		if got.Seq != 2 {
			if err := got.Ack(); err != nil {
				t.Fatal(err)
			}
		}
	}
	d.Stop()
	if d, err = r.log.Deliveries(testContext(t), "dispatcher", 0); err != nil {
		t.Fatal(err)
	}
	defer d.Stop()
	got, err := d.Next(testContext(t))
	if err != nil || got.Seq != 2 || got.Times != 2 {
		t.Fatal(got.Seq, got.Times, err)
	}
}

func status(t *testing.T, r rig) {
	appendAll(t, r.log, entries(5, "a", 0))
	before, err := r.log.Status(testContext(t))
	if err != nil || before.FirstSeq != 1 || before.LastSeq != 5 || before.Messages != 5 || before.Bytes == 0 || before.Deleted != 0 {
		t.Fatal(before, err)
	}
	r.remove(3)
	after, err := r.log.Status(testContext(t))
	if err != nil || after.LastSeq != 5 || after.Messages != 4 || after.Deleted != 1 {
		t.Fatal(after, err)
	}
	if before.Fingerprint(ledger) != after.Fingerprint(ledger) || before.Fingerprint(ledger) == before.Fingerprint("01OTHER") {
		t.Fatal("the fingerprint is not that of ledger and stream")
	}
}
