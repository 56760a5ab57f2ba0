package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/effectd/effectd/aggregate/audit"
	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

var update = flag.Bool("update", false, "write the golden files anew")

var (
	goldenNow = time.Date(2026, 3, 1, 12, 0, 10, 0, time.UTC)
	goldenAt  = func(d time.Duration) events.Instant { return events.InstantOf(goldenNow.Add(d)) }
)

func goldenEffect() *wire.Effect {
	return &wire.Effect{
		EffectID: "01JNB8QZ2M6T7W6Q3Z5X9K4C1D", State: wire.StateSettled, Operation: "charge", Version: 2, Tenant: "main", Principal: "producer",
		TaskID: "shop", RunID: "run-7", CausalID: "order-1", Resource: "account/alice",
		Permit:      &wire.Permit{State: wire.PermitConsumed, Kind: events.AuthorizationPolicy},
		MaxCost:     events.Amounts{"usd_cents": 1200, "calls": 1},
		Reservation: []events.ReservationLine{{TaskID: "root", Unit: "usd_cents", Amount: 1200}, {TaskID: "shop", Unit: "usd_cents", Amount: 1200}},
		Receipt:     &events.Receipt{ReceiptID: "rc_0f", DurablePosition: events.Position{Seq: 12, Index: 2}},
		Outcome:     events.OutcomeSucceeded, Means: events.MeansCompleted, Reason: events.ReasonClassified, ProviderRef: "ch_1",
		Evidence: &events.Evidence{Source: "adapter", Status: 201, Rule: "outcomes[0]"},
		Cost:     events.Amounts{"usd_cents": 1150},
		Position: events.Position{Seq: 14}, CreatedAt: goldenAt(-10 * time.Second), UpdatedAt: goldenAt(-9800 * time.Millisecond), ExpiresAt: goldenAt(10 * time.Minute),
	}
}

func unknownEffect() *wire.Effect {
	x := goldenEffect()
	x.State, x.Outcome, x.Means, x.Reason, x.Evidence, x.Cost, x.ProviderRef = wire.StateUnknown, "", "", "", nil, nil, ""
	x.Unknown = &wire.Unknown{Reason: events.ReasonResponseLost, Since: goldenAt(-time.Second), Evidence: &events.Evidence{Source: "adapter", Detail: "the connection ended"}}
	x.Attempts = []wire.Attempt{{Method: events.MethodQuery, Result: events.AttemptInconclusive, Deadline: goldenAt(0)}, {Method: events.MethodQuery, Deadline: goldenAt(29 * time.Second)}}
	x.Acknowledged = &wire.Acknowledged{By: "main/operator", Reason: "seen\x1b[31m", At: goldenAt(0)}
	x.IdempotencyUntil = goldenAt(24 * time.Hour)
	return x
}

func waitingEffect() *wire.Effect {
	x := goldenEffect()
	*x = wire.Effect{EffectID: x.EffectID, State: wire.StatePrepared, Operation: "charge", Version: 2, TaskID: "shop", Resource: x.Resource,
		Permit: &wire.Permit{State: wire.PermitPendingState}, MaxCost: x.MaxCost, CreatedAt: x.CreatedAt, UpdatedAt: x.CreatedAt, ExpiresAt: x.ExpiresAt, Repeat: true}
	return x
}

func goldenPending() *wire.Pending {
	return &wire.Pending{EffectID: "01JNB8QZ2M6T7W6Q3Z5X9K4C1D", Operation: "charge", Resource: "account/alice",
		Exposed: events.Raw(`{"account":"alice","amount":150000,"note":"` + "\u202e" + `first\u001b[2Jand a text that is long enough to be shortened"}`), Reason: "more than 100.00 is looked at by a person",
		Budget:    map[events.Unit]wire.BudgetChange{"usd_cents": {Before: 100000, After: -50000}, "calls": {Before: 9, After: 8}, "effects": {Before: 1000, After: 999}},
		ExpiresAt: goldenAt(4*time.Minute + 10*time.Second)}
}

func goldenStatement() *policy.Statement {
	return &policy.Statement{V: 1, LedgerID: "01JNB8", EffectID: "01JNB8QZ2M6T7W6Q3Z5X9K4C1D", BindingDigest: "ab12", Operation: "charge", Resource: "account/alice",
		MaxCost: events.Amounts{"usd_cents": 150000, "calls": 1}, ExpiresAt: goldenAt(4*time.Minute + 10*time.Second), Decision: policy.DecisionApprove,
		Approver: "main/approver", IssuedAt: goldenAt(0)}
}

func goldenSteps() []step {
	at := func(d time.Duration, data events.Data, by events.Actor) events.Event {
		return events.Event{Type: data.Type(), Data: data, Actor: by, Time: goldenAt(d), Operation: "charge", TaskID: "shop"}
	}
	return []step{
		{events.Position{Seq: 12}, at(0, events.Prepared{Binding: events.Binding{Resource: "account/alice", MaxCost: events.Amounts{"usd_cents": 1200}}}, "main/producer")},
		{events.Position{Seq: 12, Index: 1}, at(0, events.Permitted{Permit: events.Permit{Authorization: events.Authorization{Kind: events.AuthorizationPolicy, PolicyRevision: 1}}}, events.SystemActor)},
		{events.Position{Seq: 12, Index: 2}, at(0, events.Admitted{Reservation: []events.ReservationLine{{TaskID: "shop", Unit: "usd_cents", Amount: 1200}}}, "main/producer")},
		{events.Position{Seq: 13}, at(3*time.Millisecond, events.Dispatched{Dispatcher: events.Dispatcher{Node: "node-a"}}, events.SystemActor)},
		{events.Position{Seq: 14}, at(2003*time.Millisecond, events.Unknown{Reason: events.ReasonResponseLost}, events.SystemActor)},
		{events.Position{Seq: 15}, at(65*time.Second, events.ReconcileStarted{Method: events.MethodQuery, AuthorizedBy: "main/operator"}, "main/operator")},
		{events.Position{Seq: 16}, at(66*time.Second, events.Settled{Outcome: events.OutcomeSucceeded, Reason: events.ReasonReconciled, Cost: events.Amounts{"usd_cents": 1200},
			Evidence: events.Evidence{Status: 200}}, "main/operator")},
	}
}

func TestTables(t *testing.T) {
	task := &wire.Task{TaskID: "shop", Parent: "root", Holders: []events.Actor{"main/producer", "main/second"}, ExpiresAt: goldenAt(25 * time.Hour),
		Closed:   &wire.TaskClosure{At: goldenAt(-time.Minute), By: "main/operator", Reason: "done"},
		Budgets:  map[events.Unit]wire.Budget{"usd_cents": {Max: 10000, Spent: 1200, Reserved: 700, Unknown: 700, Available: 8100}, "effects": {Max: 1000, Spent: 1, Reserved: 1, Unknown: 1, Available: 998}},
		Exposure: events.Amounts{"usd_cents": 2000}}
	status := &wire.Status{LedgerID: "01JNB8", Position: events.Position{Seq: 16}, Trusted: false, Reason: "entry 9: missing", Node: "node-a", Program: "effectd/0.1.0",
		PolicyRevision: 3, Limits: events.Limits{EffectRecords: 10000, LiveBytes: 64 << 20, LogBytes: 1 << 30}, Usage: wire.Usage{EffectRecords: 12, LiveBytes: 40_000, LogBytes: 90_000},
		Effects: map[wire.State]int64{wire.StateSettled: 11, wire.StateUnknown: 1}, Intake: wire.Intake{Serving: true, Waiting: 3, DenialsDropped: 2}, Time: goldenAt(0)}
	denials := []wire.Denial{
		{Time: goldenAt(0), Principal: "producer", Verb: wire.EffectSubmit, Code: wire.UnknownOperation, Field: "operation", Message: "no such operation", RequestSeq: 9, RunID: "run-7", CausalID: "order-2"},
		{Time: goldenAt(-time.Second), Principal: "second", Verb: wire.EffectAdmit, Code: wire.UnknownEffect, Message: "no such effect"},
	}
	operations := []wire.Operation{
		{Name: "charge", Version: 2, Adapter: "http", Units: []events.Unit{"usd_cents"}, Supports: map[string]bool{"query": true, "idempotency": true, "preview": false}, Description: "Charge a card account."},
		{Name: "note", Version: 1, Adapter: "file", Retired: true},
	}
	budgets := func(most, spent, held, unknown, free int64) map[events.Unit]wire.Budget {
		return map[events.Unit]wire.Budget{"usd_cents": {Max: most, Spent: spent, Reserved: held, Unknown: unknown, Available: free}, "effects": {Max: 9, Available: 9}}
	}
	tasks := []wire.Task{
		{TaskID: "anna", Parent: "shop", ExpiresAt: goldenAt(time.Hour), Budgets: budgets(2000, 500, 0, 0, 1500)},
		{TaskID: "bert", Parent: "shop", ExpiresAt: goldenAt(-time.Minute), Budgets: budgets(3000, 700, 700, 700, 1600), Exposure: events.Amounts{"usd_cents": 1000}},
		{TaskID: "one", Parent: "anna", ExpiresAt: goldenAt(time.Hour), Budgets: budgets(1000, 0, 0, 0, 1000)},
		{TaskID: "shop", ExpiresAt: goldenAt(time.Hour), Budgets: task.Budgets, Exposure: task.Exposure},
		{TaskID: "stray", Parent: "not-mine", ExpiresAt: goldenAt(time.Hour), Closed: task.Closed, Budgets: budgets(1, 0, 0, 0, 1)},
		{TaskID: "two", Parent: "anna", ExpiresAt: goldenAt(time.Hour), Budgets: budgets(1000, 0, 0, 0, 1000)},
	}
	finding := &audit.Finding{Code: "duplicate_causal_id", Position: events.Position{Seq: 9, Index: 1}, Message: "another effect has it"}
	for name, write := range map[string]func(*page){
		"effect_settled":  func(p *page) { effectPage(p, goldenEffect(), goldenNow) },
		"effect_unknown":  func(p *page) { effectPage(p, unknownEffect(), goldenNow) },
		"effect_prepared": func(p *page) { effectPage(p, waitingEffect(), goldenNow) },
		"effects": func(p *page) {
			effectRows(p, []wire.Effect{*goldenEffect(), *unknownEffect(), *waitingEffect()}, goldenNow)
		},
		"pending": func(p *page) {
			pendingRows(p, []wire.Pending{*goldenPending(), {EffectID: "01JNB8QZ2M6T7W6Q3Z5X9K4C1E", Operation: "note", Resource: "note/a", Exposed: events.Raw(`{}`),
				Budget: map[events.Unit]wire.BudgetChange{"effects": {Before: 3, After: 2}}, ExpiresAt: goldenAt(-time.Second)}}, goldenNow)
		},
		"statement": func(p *page) { statementPage(p, goldenStatement(), goldenPending(), goldenNow) },
		"settlement": func(p *page) {
			settlementPage(p, &policy.Settlement{V: 1, LedgerID: "01JNB8", EffectID: "01JNB8QZ2M6T7W6Q3Z5X9K4C1D", BindingDigest: "ab12", Outcome: events.OutcomeNoEffect,
				EvidenceSHA256: "cd34", Operator: "main/operator", IssuedAt: goldenAt(0)}, unknownEffect(), events.Raw(`{"reference":"2026-03/17","source":"the bank's statement","who":"`+"\u202e"+`Anna"}`))
		},
		"history":    func(p *page) { timeline(p, goldenSteps()) },
		"task":       func(p *page) { taskPage(p, task, goldenNow) },
		"tree":       func(p *page) { treeRows(p, tasks, goldenNow) },
		"status":     func(p *page) { statusPage(p, status) },
		"denials":    func(p *page) { denialRows(p, denials) },
		"operations": func(p *page) { operationRows(p, operations) },
		"run": func(p *page) {
			runPage(p, &wire.Run{RunID: "run-7", Principal: "producer", Cancelled: true, Effects: status.Effects})
		},
		"report": func(p *page) {
			reportPage(p, &audit.Report{Entries: 16, Events: 41, Digest: "ab", First: finding, Rules: []audit.Rule{
				{Name: "chain", Checked: 16}, {Name: "causal ids", Checked: 12, Violations: 1, First: finding}, {Name: "approvals"}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			p := newPage(&b)
			write(p)
			p.flush()
			golden(t, name, b.Bytes())
		})
	}
}

// golden compares with testdata/NAME.golden.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func TestDuration(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0 ms": 0, "0.4 ms": 400 * time.Microsecond, "35 ms": 35 * time.Millisecond, "1.2 s": 1290 * time.Millisecond, "59.9 s": 59999 * time.Millisecond,
		"1 m": time.Minute, "2 m 5 s": 125 * time.Second, "1 h": time.Hour + 59*time.Second, "3 h 4 m": 3*time.Hour + 4*time.Minute,
		"2 d 3 h": 51 * time.Hour, "-1.5 s": -1500 * time.Millisecond,
	} {
		if got := duration(d); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
}

// M4: a claim that does not hold says what was expected and what was found, and
// fails the demo.
func TestFalseClaim(t *testing.T) {
	var out, errs bytes.Buffer
	s := &story{env: &env{out: &out, err: &errs}}
	reached := false
	err := s.failed(all(that(s, "one is one", 1, 1), that(s, "one is two", 2, 1), func() error { reached = true; return nil }))
	if code := s.fail(err); code != int(exitRefused) || reached {
		t.Errorf("exit code %d, went on: %v", code, reached)
	}
	if want := "   ✓ one is one\n   ✗ one is two\n"; out.String() != want {
		t.Errorf("stdout %q, want %q", &out, want)
	}
	if want := "effectd: the demo failed: one is two: expected 2, got 1\n"; errs.String() != want {
		t.Errorf("stderr %q, want %q", &errs, want)
	}
}
