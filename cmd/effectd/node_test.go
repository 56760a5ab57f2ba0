package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/effectd/effectd/embedded"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

func readJSON(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// withCharge writes the contract of the demo for a payment service of the test.
func withCharge(t *testing.T, dir string) *payments {
	t.Helper()
	s, err := openPayments("secret")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(t.Context()); err != nil {
			t.Log(err)
		}
	})
	for name, text := range map[string]string{"operations/charge.yaml": contract(s.url), "secrets/EFFECTD_DEMO_TOKEN": "secret\n"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestServe(t *testing.T) {
	dir := ledgerDir(t)
	node := serve(t, dir)
	var ready embedded.Ready
	if err := json.Unmarshal([]byte(node.first), &ready); err != nil || !ready.Ready || !ready.Trusted || ready.NATSURL == "" || ready.LedgerID == "" || ready.Data != dir {
		t.Fatalf("ready line %s: %v", node.first, err)
	}
	t.Run("a second one is refused", func(t *testing.T) {
		effectd(t, "serve", "--data", dir, "--listen", "127.0.0.1:0").want(t, 1).says(t, "another effectd process")
		effectd(t, "rebuild", "--data", dir).want(t, 1).says(t, "another effectd process")
	})
	t.Run("doctor finds nothing wrong", func(t *testing.T) {
		if r := effectd(t, "doctor", "--data", dir).want(t, 0); !strings.Contains(r.out, "trusted, dispatching") || strings.Contains(r.out, "fault") {
			t.Error(r.out)
		}
	})
	t.Run("a new user is known at once", func(t *testing.T) {
		effectd(t, "user", "add", "second", "--role", "operator", "--data", dir).want(t, 0)
		effectd(t, "user", "add", "second", "--role", "operator", "--data", dir).want(t, 1)
		effectd(t, "ledger", "status", "--as", "second", "--data", dir).want(t, 0)
		effectd(t, "ledger", "status", "--nats", ready.NATSURL, "--nkey", filepath.Join(dir, "keys", "second.nk")).want(t, 0)
	})
	t.Run("a role may do its own things only", func(t *testing.T) {
		effectd(t, "task", "open", "x", "--as", "auditor", "--data", dir).want(t, 1).says(t, "forbidden", "--as operator")
		effectd(t, "pending", "--as", "producer", "--data", dir).want(t, 1).says(t, "forbidden", "--as approver")
		effectd(t, "approve", "01X", "--as", "producer", "--data", dir).want(t, 1).says(t, "forbidden", "--as approver")
		effectd(t, "task", "open", "x", "--as", "nobody", "--data", dir).want(t, 2).says(t, "user list")
	})
	if code := node.signal(t, syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d\n%s", code, node.errs)
	}
	if exists(filepath.Join(dir, "node.json")) {
		t.Error("node.json stays")
	}
	effectd(t, "rebuild", "--data", dir).want(t, 0)
	effectd(t, "verify", "--data", dir).want(t, 0)
	if again := serve(t, dir); again.signal(t, syscall.SIGINT) != 0 {
		t.Errorf("SIGINT: %s", again.errs)
	}
}

// An operation file that is added is known after SIGHUP; one that is changed
// under its version is refused, and what was loaded stays.
func TestReload(t *testing.T) {
	dir := ledgerDir(t)
	node := serve(t, dir)
	withCharge(t, dir)
	known := func() int {
		return len(object[wire.List[wire.Operation]](t, effectd(t, "operation", "list", "--data", dir, "--json").want(t, 0)).Items)
	}
	if known() != 0 {
		t.Fatal("known before the reload")
	}
	if err := syscall.Kill(node.cmd.Process.Pid, syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(longest); known() == 0; {
		if time.Now().After(deadline) {
			t.Fatalf("not loaded\n%s", node.errs)
		}
	}
	if code := node.signal(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
	file := filepath.Join(dir, "operations", "charge.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), "timeout: 2s", "timeout: 3s", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	effectd(t, "serve", "--data", dir, "--listen", "127.0.0.1:0").want(t, 1).says(t, "charge", "version")
}

// One charge through every command, and the exit codes of every end.
func TestEffects(t *testing.T) {
	dir := ledgerDir(t)
	service := withCharge(t, dir)
	node := serve(t, dir)
	do := func(args ...string) ran { t.Helper(); return effectd(t, append(args, "--data", dir)...) }
	submit := func(id, payload string) ran {
		t.Helper()
		return do("submit", "--json", "-t", "shop", "-o", "charge", "--run-id", "r", "--causal-id", id, "--wait", "terminal", "--timeout", "20s", payload)
	}
	do("task", "open", "shop", "-b", "usd_cents=1000", "--holder", "main/producer").want(t, 0)

	first := object[wire.Effect](t, submit("1", `{"account":"alice","amount":100}`).want(t, 0))
	if first.State != wire.StateSettled || first.Outcome != events.OutcomeSucceeded || first.Repeat {
		t.Fatalf("settled: %+v", first)
	}
	if again := object[wire.Effect](t, submit("1", `{"amount":100,"account":"alice"}`).want(t, 0)); again.EffectID != first.EffectID || !again.Repeat {
		t.Errorf("repeat: %+v", again)
	}
	if r := object[wire.ErrorReply](t, submit("1", `{"account":"alice","amount":101}`).want(t, 1)); r.Error.Code != wire.BindingMismatch {
		t.Errorf("changed: %+v", r.Error)
	}
	if r := object[wire.ErrorReply](t, submit("2", `{"account":"alice","amount":901}`).want(t, 1)); r.Error.Code != wire.BudgetExceeded {
		t.Errorf("too much: %+v", r.Error)
	}
	do("submit", "-t", "shop", "-o", "charge", `{"account":"alice"}`).want(t, 1).says(t, "input_schema_violation", "--run-id")

	service.loseNext()
	lost := object[wire.Effect](t, submit("3", `{"account":"bob","amount":300}`).want(t, 3))
	if lost.State != wire.StateUnknown {
		t.Fatalf("lost: %+v", lost)
	}
	do("get", string(lost.EffectID)).want(t, 3)
	do("get", string(lost.EffectID), "--wait", "terminal").want(t, 3)
	if l := object[wire.List[wire.Effect]](t, do("list", "--json", "--state", "unknown").want(t, 0)); len(l.Items) != 1 || l.Items[0].EffectID != lost.EffectID {
		t.Errorf("unknown: %+v", l.Items)
	}
	if found := object[wire.Effect](t, do("reconcile", "--json", string(lost.EffectID)).want(t, 0)); found.Outcome != events.OutcomeSucceeded {
		t.Errorf("reconciled: %+v", found)
	}
	if n, _ := service.charged("bob"); n != 1 || service.sent(string(lost.IdempotencyKey)) != 1 {
		t.Errorf("bob is charged %d times", n)
	}

	one := do("list", "--json", "--limit", "1").want(t, 0).says(t, "more: --cursor ", "--all")
	cursor := object[wire.List[wire.Effect]](t, one).Cursor
	if rest := object[wire.List[wire.Effect]](t, do("list", "--json", "--cursor", cursor).want(t, 0)); len(rest.Items) != 2 || rest.Items[1].EffectID != first.EffectID {
		t.Errorf("the second page: %+v", rest.Items)
	}
	if all := do("list", "--json", "--limit", "1", "--all").want(t, 0); strings.Count(all.out, "\n") != 3 || !inOrder(all.out, string(lost.EffectID), string(first.EffectID)) {
		t.Error(all.out)
	}

	held := object[wire.Effect](t, effectdWith(t, `{"account":"carol","amount":1}`, "prepare", "--json", "-t", "shop", "-o", "charge", "--service", "till", "-", "--data", dir).want(t, 0))
	do("admit", string(held.EffectID)).want(t, 1).says(t, "effect_context_mismatch")
	held = object[wire.Effect](t, effectdWith(t, `{"account":"carol","amount":1}`, "prepare", "--json", "-t", "shop", "-o", "charge", "--service", "till", "-", "--data", dir).want(t, 0))
	do("admit", string(held.EffectID), "--service", "till").want(t, 0)
	held = object[wire.Effect](t, effectdWith(t, `{"account":"carol","amount":1}`, "prepare", "--json", "-t", "shop", "-o", "charge", "-", "--data", dir).want(t, 0))
	do("withdraw", string(held.EffectID)).want(t, 0)
	do("revoke", string(first.EffectID)).want(t, 1).says(t, "too_late")

	if h := do("history", string(lost.EffectID)).want(t, 0); !inOrder(h.out, "prepared", "admitted", "dispatched", "unknown", "reconcile-started", "settled") {
		t.Error(h.out)
	}
	if w := do("watch", "--from", "1", "--type", "settled", "--count", "2").want(t, 0); strings.Count(w.out, "\n") != 2 {
		t.Error(w.out)
	}
	if r := do("watch", "--from", "1", "--json", "--count", "1").want(t, 0); object[wire.HistoryItem](t, r).Position != (events.Position{Seq: 1}) {
		t.Error(r.out)
	}
	do("task", "close", "shop").want(t, 0)
	if r := object[wire.ErrorReply](t, submit("4", `{"account":"alice","amount":1}`).want(t, 1)); r.Error.Code != wire.TaskClosed {
		t.Errorf("closed: %+v", r.Error)
	}
	do("verify").want(t, 0)
	if code := node.signal(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d\n%s", code, node.errs)
	}
	do("verify").want(t, 0)
}

func inOrder(text string, words ...string) bool {
	at := -1
	return !slices.ContainsFunc(words, func(w string) bool {
		i := strings.Index(text[at+1:], w)
		at += i + 1
		return i < 0
	})
}

// M4: the demo holds, and says so.
func TestDemo(t *testing.T) {
	r := effectd(t, "demo").want(t, 0)
	if strings.Contains(r.out, "✗") || strings.Count(r.out, "✓") < 20 {
		t.Error(r.out)
	}
	t.Log(r.out)
	for line := range strings.Lines(effectd(t, "demo", "--json").want(t, 0).out) {
		var c checked
		if err := json.Unmarshal([]byte(line), &c); err != nil || !c.OK {
			t.Errorf("%s: %v", line, err)
		}
	}
}
