package eventlog

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/effectd/effectd/events"
)

// damaged makes a log of n entries, damages its files while the server is down,
// and starts a server on them again.
func damaged(t *testing.T, list []events.Stored, damage func(t *testing.T, dir string)) jetstream.JetStream {
	t.Helper()
	store := t.TempDir()
	srv := startServer(t, store)
	appendAll(t, create(t, srv.ClientURL(), Config{LedgerID: ledger}), list)
	stopServer(srv)
	damage(t, messageDir(store))
	return connect(t, startServer(t, store).ClientURL())
}

// flip changes one bit in the middle of an entry as stored.
func flip(e events.Stored) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		edit(t, dir, func(b []byte) ([]byte, bool) {
			at := bytes.Index(b, e.Body)
			if at < 0 {
				return nil, false
			}
			b[at+len(e.Body)/2] ^= 1
			return b, true
		})
	}
}

// tear cuts the files off in the middle of an entry.
func tear(e events.Stored) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		edit(t, dir, func(b []byte) ([]byte, bool) {
			at := bytes.Index(b, e.Body)
			return b[:max(at, 0)+len(e.Body)/2], at >= 0
		})
	}
}

// edit rewrites the one block file that change accepts.
func edit(t *testing.T, dir string, change func([]byte) ([]byte, bool)) {
	t.Helper()
	for _, name := range blocks(t, dir) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := change(b); ok {
			if err := os.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("the entry is in no block file")
}

func blocks(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.blk"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	return names
}

func dropIndex(t *testing.T, dir string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, "index.db")); err != nil {
		t.Fatal(err)
	}
}

func both(first, second func(t *testing.T, dir string)) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		first(t, dir)
		second(t, dir)
	}
}

// L5: what the server leaves out without a word is named.
func TestFlippedBit(t *testing.T) {
	list := entries(20, "a", 100)
	for name, at := range map[string]int{"first": 1, "middle": 10, "last": 20} {
		t.Run(name, func(t *testing.T) {
			js := damaged(t, list, flip(list[at-1]))
			s, err := Attach(testContext(t), js, Config{LedgerID: ledger})
			if err != nil {
				t.Fatal("this damage is not to be seen at attach: ", err)
			}
			refuses(t, rig{log: s}, uint64(at), list[:at-1])
			if at == 20 {
				wantDistrust(t, s.Append(testContext(t), entry(&list[19], "a", 0)), 20)
			}
		})
	}
}

// A log whose only entry is unreadable is not an empty log.
func TestFlippedBitInTheOnlyEntry(t *testing.T) {
	list := entries(1, "a", 100)
	s, err := Attach(testContext(t), damaged(t, list, flip(list[0])), Config{LedgerID: ledger})
	if err != nil {
		t.Fatal("this damage is not to be seen at attach: ", err)
	}
	refuses(t, rig{log: s}, 1, nil)
	wantDistrust(t, s.Append(testContext(t), list[0]), 1)
}

// Without its index the server cuts the log at the damage: the log is short,
// which the anchor tells, and whoever knows an entry behind the cut.
func TestFlippedBitWithoutIndex(t *testing.T) {
	list := entries(20, "a", 100)
	shortened(t, list, both(flip(list[9]), dropIndex))
}

func TestTornTail(t *testing.T) {
	list := entries(20, "a", 100)
	for name, damage := range map[string]func(*testing.T, string){
		"index": tear(list[14]), "no index": both(tear(list[14]), dropIndex),
	} {
		t.Run(name, func(t *testing.T) { shortened(t, list, damage) })
	}
}

// shortened checks that damage is seen at attach, or as a log that ends early.
func shortened(t *testing.T, list []events.Stored, damage func(*testing.T, string)) {
	t.Helper()
	js := damaged(t, list, damage)
	s, err := Attach(testContext(t), js, Config{LedgerID: ledger})
	if err != nil {
		wantError(t, err, ErrUntrusted)
		t.Log(err)
		return
	}
	last, err := s.Last(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if last >= 20 {
		_, err := readAll(testContext(t), s, 0)
		wantError(t, err, ErrUntrusted)
		t.Log(err)
		return
	}
	t.Log("the log ends at", last)
	_, err = s.Read(testContext(t), 21, 0)
	wantDistrust(t, err, 20)
	_, err = collect(testContext(t), s, 21, list[19].SHA256, 21)
	wantDistrust(t, err, 20)
	wantDistrust(t, s.Append(testContext(t), entry(&list[19], "a", 0)), 20)

	// Somebody who knows no better goes on from there; the chain tells.
	before := mustReadAll(t, s)
	for tip := &before[len(before)-1]; tip.Seq < 21; {
		fork := entry(tip, "b", 0)
		appendAll(t, s, []events.Stored{fork})
		tip = &fork
	}
	_, err = collect(testContext(t), s, 21, list[19].SHA256, 21)
	wantDistrust(t, err, 21)
}

// A writer whose server restarts with a log cut short, which another writer
// fills up again, does not append to that other log.
func TestLogIsReplacedWhileConnected(t *testing.T) {
	store := t.TempDir()
	srv := startServer(t, store)
	port := srv.Addr().(*net.TCPAddr).Port
	s := create(t, srv.ClientURL(), Config{LedgerID: ledger})
	list := entries(20, "a", 100)
	appendAll(t, s, list)
	stopServer(srv)
	both(flip(list[9]), dropIndex)(t, messageDir(store))
	srv, err := newServer(store, port)
	if err != nil {
		t.Fatal(err)
	}
	defer stopServer(srv)
	another := connected(t, srv.ClientURL())
	for tip := &list[8]; tip.Seq < 20; {
		fork := entry(tip, "b", 0)
		appendAll(t, another, []events.Stored{fork})
		tip = &fork
	}
	wantDistrust(t, s.Append(testContext(t), entry(&list[19], "a", 0)), 20)
	if last, err := another.Last(testContext(t)); last != 20 || err != nil {
		t.Fatal(last, err)
	}
}

func TestMissingBlock(t *testing.T) {
	list := entries(30, "a", 400<<10) // more than one block
	js := damaged(t, list, func(t *testing.T, dir string) {
		names := blocks(t, dir)
		if len(names) < 2 {
			t.Fatal("one block only")
		}
		if err := os.Remove(names[0]); err != nil {
			t.Fatal(err)
		}
	})
	_, err := Attach(testContext(t), js, Config{LedgerID: ledger})
	wantError(t, err, ErrUntrusted)
	t.Log(err)
	if !strings.Contains(err.Error(), "begins at entry") && !strings.Contains(err.Error(), "lost") {
		t.Fatal(err)
	}
}
