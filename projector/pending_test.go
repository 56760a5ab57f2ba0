package projector

import (
	"fmt"
	"testing"
	"time"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

func pendingFor(t fataler, q *Queries, c aggregate.Caller, body string) *wire.PendingList {
	return ask[*wire.PendingList](t, q, c, wire.PermitPending, body)
}

// An approver is shown what waits in its tenant, and nobody else anything.
func TestPendingScope(t *testing.T) {
	w := newWorld(t)
	w.must(w.openTask("later", 1000*time.Hour))
	w.must(w.prepare(producer, "charge", "root", "r1", false)) // needs no approval
	ids := []events.EffectID{}
	for range 5 {
		ids = append(ids, w.must(w.prepare(producer, "pay", "root", "r1", true))[0].EffectID)
	}
	w.must(aggregate.Withdraw{Caller: producer, EffectID: ids[0]})
	p, q := shown(t, w)
	for who, want := range map[aggregate.Caller]int{approver: 4, second: 4, judge: 0} {
		got := pendingFor(t, q, who, ``)
		if len(got.Pending) != want || got.Position != p.State().Head().Last || got.Cursor != "" {
			t.Errorf("%s: %d pending at %s", who.Actor(), len(got.Pending), got.Position)
		}
		if got := pendingFor(t, q, who, byID(ids[1])); len(got.Pending) != min(want, 1) {
			t.Errorf("%s: %d of one", who.Actor(), len(got.Pending))
		}
	}
	for _, who := range []aggregate.Caller{producer, rival, operator, auditor, executor, stranger, foreign} {
		if refusal := refused(t, q, who, wire.PermitPending, byID(ids[1])); refusal.Code != wire.Forbidden {
			t.Errorf("%s: %v", who.Actor(), refusal)
		}
	}
	if got := pendingFor(t, q, approver, ``).Pending; got[0].EffectID != ids[4] || got[3].EffectID != ids[1] {
		t.Errorf("not newest first: %s … %s", got[0].EffectID, got[3].EffectID)
	}
	for _, id := range []events.EffectID{ids[0], "01NONE"} {
		if got := pendingFor(t, q, approver, byID(id)); len(got.Pending) != 0 {
			t.Errorf("%s does not wait", id)
		}
	}
	w.at = w.at.Add(11 * time.Minute) // expired: shown at once, before the log says so
	if got := pendingFor(t, q, approver, ``); len(got.Pending) != 0 {
		t.Errorf("%d pending after their time", len(got.Pending))
	}
}

// Who became an approver is not shown what it asked for itself.
func TestPendingOwn(t *testing.T) {
	w := newWorld(t)
	w.must(aggregate.ChangePolicy{Text: `permit (principal, action == Action::"request_approval", resource);`})
	w.must(w.prepare(producer, "pay", "root", "r1", true))
	users := []events.User{}
	for _, u := range w.state.Users() {
		if u.Principal == producer.Principal {
			u.Role = events.RoleApprover
		}
		users = append(users, u)
	}
	w.must(w.prepare(rival, "pay", "root", "r2", true), aggregate.ChangeAccess{Users: users})
	_, q := shown(t, w)
	if got := pendingFor(t, q, producer, ``).Pending; len(got) != 1 {
		t.Errorf("%d pending for a former producer", len(got))
	}
}

// An item says what is asked, why, what it does to the budget, and has both
// statements for the approver who asks.
func TestPendingItem(t *testing.T) {
	w := newWorld(t)
	w.must(aggregate.OpenTask{Caller: operator, ExpiresAt: w.at.Add(time.Hour), Request: wire.TaskOpenRequest{TaskID: "small", Parent: "root",
		Budgets: events.Amounts{"usd_cents": 12, "effects": 3}, Holders: []events.Actor{producer.Actor()}}})
	w.must(aggregate.OpenTask{Caller: operator, ExpiresAt: w.at.Add(time.Hour), Request: wire.TaskOpenRequest{TaskID: "wide", Parent: "small",
		Budgets: events.Amounts{"usd_cents": 12, "effects": 2}, Holders: []events.Actor{producer.Actor()}}})
	w.must(w.prepare(producer, "charge", "small", "r1", true)) // takes 5 of the parent's 12
	id := w.must(w.prepare(producer, "pay", "wide", "r1", true))[0].EffectID
	_, q := shown(t, w)
	got := pendingFor(t, q, second, ``).Pending[0]
	b := w.state.Effect(id).Prepared
	if got.EffectID != id || got.Operation != "pay" || got.Resource != "account/a1" || string(got.Exposed) != `{"account":"a1","amount":5}` || got.ExpiresAt != b.Binding.ExpiresAt {
		t.Errorf("%+v", got)
	}
	if got.Budget["usd_cents"] != (wire.BudgetChange{Before: 7, After: 2}) || got.Budget["effects"] != (wire.BudgetChange{Before: 2, After: 1}) || len(got.Budget) != 2 {
		t.Errorf("budget %+v", got.Budget)
	}
	for text, decision := range map[string]string{got.Statement: policy.DecisionApprove, got.DenyStatement: policy.DecisionDeny} {
		s, err := policy.ParseStatement(text)
		want := policy.Statement{V: 1, LedgerID: "01LEDGER", EffectID: id, BindingDigest: b.BindingDigest, Operation: "pay", Resource: "account/a1",
			MaxCost: events.Amounts{"usd_cents": 5}, ExpiresAt: b.Binding.ExpiresAt, Decision: decision, Approver: second.Actor(), IssuedAt: w.at}
		if err != nil || s.Check(want) != nil || s.IssuedAt != w.at {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The reason is that of the policies which decide, or their names.
func TestPendingReason(t *testing.T) {
	const asks = `@id("ask") %s permit (principal in Role::"producer", action == Action::"request_approval", resource == Operation::"pay");`
	const forbid = `@id("small") permit (principal, action == Action::"commit", resource); @id("big") %s forbid (principal, action == Action::"commit", resource) when { context.max_cost.usd_cents > 4 };`
	for _, c := range []struct{ text, want string }{
		{fmt.Sprintf(asks, ""), "allowed with an approval by ask"},
		{fmt.Sprintf(asks, `@reason("a person looks at payments")`), "a person looks at payments"},
		{fmt.Sprintf(asks+forbid, "", ""), "forbidden without an approval by big"},
		{fmt.Sprintf(asks+forbid, "", `@reason("more than 4 cents")`), "more than 4 cents"},
		{fmt.Sprintf(asks+forbid, `@reason("b")`, `@reason("a")`), "a; b"},
		{fmt.Sprintf(asks+forbid, `@reason("same")`, `@reason("same")`), "same"},
	} {
		w := newWorld(t)
		w.must(aggregate.ChangePolicy{Text: c.text}, w.prepare(producer, "pay", "root", "r1", true))
		_, q := shown(t, w)
		if got := pendingFor(t, q, approver, ``).Pending; len(got) != 1 || got[0].Reason != c.want {
			t.Errorf("%s: %+v", c.text, got)
		}
	}
	w := newWorld(t)
	w.must(w.prepare(producer, "pay", "root", "r1", true))
	w.must(aggregate.ChangePolicy{Text: `permit (principal, action == Action::"commit", resource);`})
	_, q := shown(t, w)
	if got := pendingFor(t, q, approver, ``).Pending; len(got) != 1 || got[0].Reason != "by now the policy allows it without an approval" {
		t.Errorf("%+v", got)
	}
	w.must(aggregate.ChangePolicy{Text: ``})
	_, q = shown(t, w)
	if got := pendingFor(t, q, approver, ``).Pending; len(got) != 0 {
		t.Errorf("nobody may approve it any more: %+v", got)
	}
}

// Thousands are read page by page, each once; a page fits a message.
func TestPendingPages(t *testing.T) {
	w := newWorld(t)
	const waiting = 1200
	for range waiting / 100 {
		var commands []aggregate.Command
		for range 100 {
			commands = append(commands, w.prepare(producer, "pay", "root", "r1", true))
		}
		w.must(commands...)
	}
	_, q := shown(t, w)
	for _, limit := range []int{0, 7, 500} {
		seen, cursor, most := map[events.EffectID]bool{}, "", 0
		for n := 0; n == 0 || cursor != ""; n++ {
			got := pendingFor(t, q, approver, fmt.Sprintf(`{"limit":%d,"cursor":%q}`, limit, cursor))
			if size := len(events.CanonicalOf(got)); size > pageBytes+100_000 {
				t.Fatalf("%d bytes", size)
			}
			for _, v := range got.Pending {
				seen[v.EffectID] = true
			}
			cursor, most = got.Cursor, max(most, len(got.Pending))
		}
		if len(seen) != waiting || limit > 0 && most > limit {
			t.Errorf("limit %d: %d seen, %d on a page", limit, len(seen), most)
		}
	}
	if refusal := refused(t, q, approver, wire.PermitPending, `{"limit":501}`); refusal.Code != wire.InvalidRequest {
		t.Error(refusal)
	}
	first := pendingFor(t, q, approver, `{"limit":7}`)
	if refusal := refused(t, q, second, wire.PermitPending, fmt.Sprintf(`{"cursor":%q}`, first.Cursor)); refusal.Code != wire.InvalidRequest || refusal.Field != "cursor" {
		t.Error(refusal)
	}
}
