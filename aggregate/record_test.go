package aggregate_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/rehearsal"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// TestIntentIsNamed: who claims, abandons or reports names the intent that was
// admitted; another one is of no effect here (SPEC 3).
func TestIntentIsNamed(t *testing.T) {
	w := rehearsal.New()
	id := done(t, w.Do(charge("1"))).EffectID
	unknown := func(c aggregate.Command) {
		t.Helper()
		d := w.Do(c)
		if refused(t, d, wire.UnknownEffect); len(d.Events) > 0 || d.Claimed {
			t.Errorf("%T left events", c)
		}
	}
	claim, abandon := w.Claim(id), w.Abandon(id)
	claim.IntentSHA256, abandon.IntentSHA256 = events.ZeroDigest, ""
	unknown(claim)
	unknown(abandon)
	done(t, w.Do(w.Claim(id)))
	report := w.Report(id, events.OutcomeSucceeded, nil)
	report.IntentSHA256 = events.ZeroDigest
	unknown(report)
	done(t, w.Do(w.Report(id, events.OutcomeSucceeded, nil)))
}

// TestSpooledUnknown: a result that waited in the spool says so also when it proves
// nothing (SPEC 8).
func TestSpooledUnknown(t *testing.T) {
	for _, spooled := range []bool{true, false} {
		w := rehearsal.New()
		id := done(t, w.Do(charge("1"))).EffectID
		done(t, w.Do(w.Claim(id)))
		report := w.Report(id, events.OutcomeUnknown, nil)
		report.AuditIncomplete = spooled
		done(t, w.Do(report))
		e := w.State.Effect(id)
		if v := w.State.View(e, w.At); e.State != wire.StateUnknown || e.Unknown.AuditIncomplete != spooled || v.AuditIncomplete != spooled {
			t.Errorf("spooled %v: %+v", spooled, e.Unknown)
		}
	}
}

// TestEvidenceIsBounded: whatever is reported, its record fits the ledger, and what
// it proves stays (SPEC 13, 14).
func TestEvidenceIsBounded(t *testing.T) {
	for _, outcome := range []events.Outcome{events.OutcomeSucceeded, events.OutcomeUnknown} {
		w := rehearsal.New()
		id := done(t, w.Do(charge("1"))).EffectID
		done(t, w.Do(w.Claim(id)))
		report := w.Report(id, outcome, nil)
		large := strings.Repeat("ä", 1<<20)
		report.Result.Evidence.Detail, report.Result.Evidence.Reference, report.Result.ProviderRef = large, large, large
		report.Result.Evidence.Named = events.CanonicalOf(large)
		d := done(t, w.Do(report))
		for _, record := range d.Encoded {
			if limit := w.State.Head().Limits.RecordBytes; limit == 0 || int64(len(record)) > limit {
				t.Errorf("%q: a record of %d bytes, the limit is %d", outcome, len(record), limit)
			}
			if bytes.Contains(record, []byte("\ufffd")) {
				t.Error("a text is cut within a character")
			}
		}
		if e := w.State.Effect(id); outcome == events.OutcomeSucceeded && (e.Settled == nil || e.Settled.Outcome != outcome || e.Settled.ProviderRef != "") {
			t.Errorf("%+v", e.Settled)
		}
	}
}

// TestFollows: only the next entry of this very log follows.
func TestFollows(t *testing.T) {
	w := rehearsal.New()
	before := w.State
	done(t, w.Do(charge("1")))
	next := w.Entries[len(w.Entries)-1]
	if err := aggregate.Follows(before, &next); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*events.Stored){
		"a gap":          func(e *events.Stored) { e.Seq++ },
		"a repeat":       func(e *events.Stored) { e.Seq-- },
		"another chain":  func(e *events.Stored) { e.Prev = events.ZeroDigest },
		"another ledger": func(e *events.Stored) { e.LedgerID = "01K0000000000000000000ELSE" },
	} {
		e := next
		if change(&e); aggregate.Follows(before, &e) == nil {
			t.Errorf("%s follows", what)
		}
	}
	first := w.Entries[0]
	if err := aggregate.Follows(aggregate.New(), &first); err != nil {
		t.Errorf("the first entry: %v", err)
	}
}

// TestNobodyOversees an effect of their own, whatever they have become since (SPEC 9).
func TestNobodyOverseesTheirOwn(t *testing.T) {
	w := rehearsal.New()
	id := done(t, w.Do(charge("1"))).EffectID
	done(t, w.Do(w.Claim(id)))
	done(t, w.Do(w.Report(id, events.OutcomeUnknown, nil)))
	users := rehearsal.Users()
	for i := range users {
		if users[i].Principal == rehearsal.Producer.Principal && users[i].Tenant == rehearsal.Producer.Tenant {
			users[i].Role = events.RoleOperator
		}
	}
	done(t, w.Do(aggregate.ChangeAccess{Users: users}))
	refused(t, w.Do(w.Start(rehearsal.Producer, id, "")), wire.Forbidden)
	refused(t, w.Do(w.Settle(rehearsal.Producer, id, events.OutcomeSucceeded)), wire.Forbidden)
	refused(t, w.Do(aggregate.Acknowledge{Caller: rehearsal.Producer, EffectID: id}), wire.Forbidden)
	done(t, w.Do(w.Start(rehearsal.Operator, id, "")))
}

// TestNobodyApprovesTheirOwn, whatever they have become since (SPEC 11).
func TestNobodyApprovesTheirOwn(t *testing.T) {
	w := rehearsal.New()
	id := done(t, w.Do(rehearsal.Prepare(rehearsal.Producer, "wire", plain, "run", "1"))).EffectID
	users := rehearsal.Users()
	for i := range users {
		if users[i].Principal == rehearsal.Producer.Principal && users[i].Tenant == rehearsal.Producer.Tenant {
			users[i].Role = events.RoleApprover
		}
	}
	done(t, w.Do(aggregate.ChangeAccess{Users: users}))
	refused(t, w.Do(w.Approve(rehearsal.Producer, id)), wire.SelfApproval)
	refused(t, w.Do(w.Deny(rehearsal.Producer, id)), wire.SelfApproval)
}

// TestOnlyTheEndedAreOrphaned: a claim and an attempt are ended for their process
// only once a later life of its node has the ledger.
func TestOnlyTheEndedAreOrphaned(t *testing.T) {
	w := rehearsal.New()
	id := done(t, w.Do(charge("1"))).EffectID
	nothing := func() {
		t.Helper()
		if d := done(t, w.Do(aggregate.Orphaned{EffectID: id})); len(d.Events) > 0 || len(w.State.Orphans()) > 0 {
			t.Fatalf("%+v", d)
		}
	}
	done(t, w.Do(w.Claim(id)))
	nothing()
	done(t, w.Do(w.Report(id, events.OutcomeUnknown, nil)))
	nothing()
	done(t, w.Do(w.Start(rehearsal.Operator, id, "")))
	nothing()
	done(t, w.Restart())
	if o := w.State.Orphans(); len(o) != 1 || o[0] != id {
		t.Fatal(o)
	}
	if d := done(t, w.Do(aggregate.Orphaned{EffectID: id})); len(d.Events) != 1 {
		t.Fatalf("%+v", d)
	}
}

// TestCollectKeepsTheServiceWindow: while the service may know the key, the record
// stays (SPEC 14).
func TestCollectKeepsTheServiceWindow(t *testing.T) {
	w := rehearsal.New()
	w.Tick(time.Hour)
	id := done(t, w.Do(charge("1"))).EffectID
	done(t, w.Do(w.Claim(id)))
	done(t, w.Do(w.Report(id, events.OutcomeSucceeded, nil)))
	until := w.State.Effect(id).Claim.IdempotencyUntil
	if task := w.State.Task("main", "t"); until <= task.ExpiresAt {
		t.Fatal("the window ends before the task")
	}
	w.At = until - events.Instant(time.Second)
	if d := done(t, w.Do(aggregate.Collect{Limit: 10})); len(d.Events) > 0 {
		t.Fatal("collected while the service knows the key")
	}
	w.At = until
	if d := done(t, w.Do(aggregate.Collect{Limit: 10})); len(d.Events) != 1 || w.State.Effect(id) != nil {
		t.Fatal("not collected after it")
	}
}

// TestRecheckGoesOn until every effect that a change of law ended is ended, however
// few are touched at a time.
func TestRecheckGoesOn(t *testing.T) {
	w := rehearsal.New()
	for _, causal := range []string{"1", "2", "3", "4", "5"} {
		done(t, w.Do(charge(causal)))
	}
	done(t, w.Do(aggregate.ChangePolicy{Text: rehearsal.DenyAll}))
	var rounds int
	var next events.EffectID
	for rounds = 1; ; rounds++ {
		d := done(t, w.Do(aggregate.Sweep{Limit: 2, Recheck: true, From: next}))
		if len(d.Events) > 2 {
			t.Fatalf("%d events", len(d.Events))
		}
		if next = d.Next; next == "" {
			break
		}
	}
	if rounds != 3 || w.State.Open() != 0 {
		t.Fatalf("%d rounds, %d effects are open", rounds, w.State.Open())
	}
}

// TestRecheckIsBounded also where it ends nothing: nobody waits for a look at every
// effect that is open.
func TestRecheckIsBounded(t *testing.T) {
	w := rehearsal.New()
	for i := range 40 {
		done(t, w.Do(charge(strconv.Itoa(i))))
	}
	done(t, w.Do(aggregate.ChangePolicy{Text: rehearsal.Policy + "\n// as before"}))
	rounds, next := 1, events.EffectID("")
	for ; ; rounds++ {
		if next = done(t, w.Do(aggregate.Sweep{Limit: 1, Recheck: true, From: next})).Next; next == "" {
			break
		}
	}
	if rounds != 5 || w.State.Open() != 40 {
		t.Fatalf("%d rounds, %d effects are open", rounds, w.State.Open())
	}
}
