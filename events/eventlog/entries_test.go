package eventlog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/effectd/effectd/events"
)

const ledger events.LedgerID = "01LEDGER"

// entry seals an entry that follows prev (nil: the first). by distinguishes
// writers that append at the same sequence; pad sets the size.
func entry(prev *events.Stored, by string, pad int) events.Stored {
	seq, digest := uint64(1), events.ZeroDigest
	if prev != nil {
		seq, digest = prev.Seq+1, prev.SHA256
	}
	return events.Seal(events.Entry{
		V: events.Format, LedgerID: ledger, Seq: seq, Prev: digest, Time: events.Instant(seq), Writer: events.Incarnation(by),
		Events: []events.Event{{
			V: events.Format, ID: events.EventID(fmt.Sprintf("%s-%d", by, seq)), Type: events.TypeTaskClosed, Time: events.Instant(seq),
			Tenant: events.SystemTenant, Actor: events.SystemActor, TaskID: "t", Data: events.TaskClosed{Reason: "r" + strings.Repeat("x", pad)},
		}},
	})
}

// entries seals a chain of n.
func entries(n int, by string, pad int) []events.Stored {
	var out []events.Stored
	var prev *events.Stored
	for range n {
		out = append(out, entry(prev, by, pad))
		prev = &out[len(out)-1]
	}
	return out
}

func appendAll(t testing.TB, l Log, list []events.Stored) {
	t.Helper()
	for _, e := range list {
		if err := l.Append(testContext(t), e); err != nil {
			t.Fatal(err)
		}
	}
}

// readAll reads the whole log in steps and checks what it can without the log's
// own checks.
func readAll(ctx context.Context, l Log, step int) ([]events.Stored, error) {
	var all []events.Stored
	for {
		part, err := l.Read(ctx, uint64(len(all))+1, step)
		all = append(all, part...)
		if err != nil || len(part) == 0 {
			return all, err
		}
	}
}

func mustReadAll(t testing.TB, l Log) []events.Stored {
	t.Helper()
	all, err := readAll(testContext(t), l, 7)
	if err != nil {
		t.Fatal(err)
	}
	prev := events.ZeroDigest
	for i, e := range all {
		if e.Seq != uint64(i)+1 || e.Prev != prev || events.DigestBytes(e.Body) != e.SHA256 {
			t.Fatalf("entry %d does not follow", e.Seq)
		}
		prev = e.SHA256
	}
	return all
}

func sameEntries(t testing.TB, got, want []events.Stored) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d entries, want %d", len(got), len(want))
	}
	for i := range got {
		if string(got[i].Body) != string(want[i].Body) {
			t.Fatalf("entry %d is not the one appended", got[i].Seq)
		}
	}
}

func wantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
}

func wantDistrust(t testing.TB, err error, seq uint64) {
	t.Helper()
	var d *Distrust
	if !errors.As(err, &d) || d.Seq != seq || !errors.Is(err, ErrUntrusted) {
		t.Fatalf("got %v, want distrust of entry %d", err, seq)
	}
}
