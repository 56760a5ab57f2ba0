package audit_test

import (
	"testing"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/audit"
	"github.com/effectd/effectd/aggregate/rehearsal"
	"github.com/effectd/effectd/events"
	"pgregory.net/rapid"
)

func audited(entries []events.Stored) audit.Report {
	a := audit.New()
	for i := range entries {
		a.Entry(entries[i])
	}
	return a.Report()
}

// picks spreads rapid's one draw evenly over a walk.
func picks(t *rapid.T) func(n int) int {
	seed, drawn := rapid.Uint64().Draw(t, "seed"), uint64(0)
	return func(n int) int {
		drawn++
		x := (seed ^ drawn*0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>29) * 0x94d049bb133111eb
		return int((x ^ x>>32) % uint64(n))
	}
}

// TestLogsOfTheLawPass: whatever package aggregate decides has no finding (U1),
// and the audit folds the state that was decided.
func TestLogsOfTheLawPass(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := rehearsal.Walker{World: rehearsal.New()}
		w.Pick = picks(t)
		w.Calm = w.Pick(4) > 0
		for range 20 + w.Pick(250) {
			w.Step()
		}
		r := audited(w.Entries)
		for _, rule := range r.Rules {
			if rule.Violations > 0 {
				t.Errorf("%s: %+v", rule.Name, *rule.First)
			}
		}
		if r.First != nil || r.Entries != int64(len(w.Entries)) || r.Digest != w.State.Digest() {
			t.Fatalf("first %+v, %d of %d entries", r.First, r.Entries, len(w.Entries))
		}
	})
}

// TestNoLogBreaksTheAudit: entries torn out, repeated and swapped give findings,
// never a panic (U2).
func TestNoLogBreaksTheAudit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := rehearsal.Walker{World: rehearsal.New(), Calm: true}
		w.Pick = picks(t)
		for range 80 {
			w.Step()
		}
		var all []events.Event
		for i := range w.Entries {
			all = append(all, w.Entries[i].Events...)
		}
		for range 1 + w.Pick(10) {
			i, j := w.Pick(len(all)), w.Pick(len(all))
			switch w.Pick(3) {
			case 0:
				all[i], all[j] = all[j], all[i]
			case 1:
				all[i] = all[j]
			case 2:
				all[i].EffectID = all[j].EffectID
			}
		}
		a, prev := audit.New(), events.ZeroDigest
		for i := range all {
			e := events.Seal(events.Entry{V: 1, LedgerID: rehearsal.LedgerID, Seq: uint64(i + 1), Prev: prev, Time: all[i].Time, Writer: "W", Events: all[i : i+1]})
			prev = e.SHA256
			a.Entry(e)
		}
		a.Report()
	})
}

// TestApprovalUnderANewerPolicy: an approval counts when policy has come to allow
// the commit itself, and the log says which question was asked.
func TestApprovalUnderANewerPolicy(t *testing.T) {
	w := rehearsal.New()
	w.Do(aggregate.ChangePolicy{Text: rehearsal.ApproveAll})
	id := w.Do(rehearsal.Prepare(rehearsal.Producer, "charge", pay, "run", "1")).EffectID
	w.Do(aggregate.ChangePolicy{Text: rehearsal.Policy})
	if d := w.Do(w.Approve(rehearsal.Approver, id)); d.Refusal != nil {
		t.Fatal(d.Refusal)
	}
	if r := audited(w.Entries); r.First != nil {
		t.Fatalf("%+v", *r.First)
	}
}

// TestNothingToCheckIsNotOK: a rule that checked nothing says so (U4).
func TestNothingToCheckIsNotOK(t *testing.T) {
	for _, rule := range audit.New().Report().Rules {
		if rule.Checked != 0 || rule.Verdict() != "nothing to check" {
			t.Errorf("%s: %s after %d checks", rule.Name, rule.Verdict(), rule.Checked)
		}
	}
	verdicts := map[string]int{}
	for _, rule := range audited(rehearsal.New().Entries).Rules {
		verdicts[rule.Verdict()]++
	}
	if verdicts["ok"] == 0 || verdicts["nothing to check"] == 0 || verdicts["violated"] > 0 {
		t.Errorf("a log without effects: %v", verdicts)
	}
}

// TestEveryRuleChecks: a story that has everything leaves no rule without work,
// and its intents are counted while they are open.
func TestEveryRuleChecks(t *testing.T) {
	s := tell()
	r := audited(s.Entries)
	if r.First != nil {
		t.Fatalf("%+v", *r.First)
	}
	for _, rule := range r.Rules {
		if rule.Verdict() != "ok" {
			t.Errorf("%s: %s", rule.Name, rule.Verdict())
		}
	}
	if r.Open != 1 {
		t.Errorf("%d open intents, want the one of %s", r.Open, s.open)
	}
}
