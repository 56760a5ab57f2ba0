package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// Charges above 10.00 wait for a person who signs on the command line.
func TestApprovals(t *testing.T) {
	dir := ledgerDir(t)
	service := withCharge(t, dir)
	file := filepath.Join(dir, "policy.cedar")
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, append(text, `
permit (principal in Role::"producer", action == Action::"request_approval", resource);
@id("large") @reason("more than 10.00")
forbid (principal, action == Action::"commit", resource) when { context.max_cost.usd_cents > 1000 };
`...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	node := serve(t, dir)
	do := func(args ...string) ran { t.Helper(); return effectd(t, append(args, "--data", dir)...) }
	do("task", "open", "shop", "-b", "usd_cents=10000", "--holder", "main/producer").want(t, 0)
	ask := func(id, payload string) wire.Effect {
		t.Helper()
		return object[wire.Effect](t, do("submit", "--json", "-t", "shop", "-o", "charge", "--run-id", "r", "--causal-id", id, "--wait", "none", payload).want(t, 0))
	}
	pending := func() []wire.Pending {
		t.Helper()
		return object[wire.PendingList](t, do("pending", "--json").want(t, 0)).Pending
	}

	first := ask("1", `{"account":"alice","amount":1500}`)
	if r := do("pending").want(t, 0); !inOrder(r.out, "BUDGET", string(first.EffectID), "charge", "alice", "amount 1500", "more than 10.00", "usd_cents 10000 → 8500") {
		t.Error(r.out)
	}
	if l := pending(); len(l) != 1 || l[0].EffectID != first.EffectID || l[0].Statement == "" {
		t.Fatalf("%+v", l)
	}
	do("get", string(first.EffectID), "--wait", "terminal", "--timeout", "10ms").want(t, 3).says(t, "wait_timeout", "effectd pending, effectd approve "+string(first.EffectID))

	// Nothing is signed without a yes.
	for _, answer := range []string{"", "\n", "no\n", "yesterday\n"} {
		r := effectdWith(t, answer, "approve", string(first.EffectID), "--data", dir).want(t, 1).says(t, "alice", "at most", "usd_cents 1500", "signed by", "Sign this?", "nothing was signed", "--yes")
		if r.out != "" {
			t.Error(r.out)
		}
	}
	do("approve", string(first.EffectID), "--yes", "--as", "producer").want(t, 1).says(t, "forbidden", "--as approver")
	if len(pending()) != 1 {
		t.Fatal("it does not wait any more")
	}
	r := effectdWith(t, "y\n", "approve", string(first.EffectID), "--data", dir).want(t, 0).says(t, "approve", "why asked", "more than 10.00")
	if !inOrder(r.out, "permit", "by main/approver", "receipt") {
		t.Error(r.out)
	}
	do("get", string(first.EffectID), "--wait", "terminal", "--timeout", "20s").want(t, 0)
	if again := object[wire.Effect](t, do("approve", "--json", "--yes", string(first.EffectID)).want(t, 0)); !again.Repeat || again.Permit.Approver != "main/approver" {
		t.Errorf("again: %+v", again)
	}
	if r := object[wire.ErrorReply](t, do("deny", "--json", "--yes", string(first.EffectID)).want(t, 1)); r.Error.Code != wire.IllegalTransition {
		t.Errorf("%+v", r.Error)
	}

	second := ask("2", `{"account":"bob","amount":2000}`)
	if r := effectdWith(t, "no\n", "deny", string(second.EffectID), "--data", dir).want(t, 1).says(t, "deny", "at most"); strings.Contains(r.err, "budget") {
		t.Errorf("a denial changes no budget: %s", r.err)
	}
	if e := object[wire.Effect](t, do("deny", "--json", "-y", "--run-id", "r", "--causal-id", "2").want(t, 0)); e.EffectID != second.EffectID || e.State != wire.StateRefused || e.Reason != events.ReasonApprovalDenied {
		t.Errorf("%+v", e)
	}
	do("deny", "--yes", string(second.EffectID)).want(t, 0)
	do("approve", "--yes", string(second.EffectID)).want(t, 1).says(t, "policy_denied")
	do("submit", "-t", "shop", "-o", "charge", "--run-id", "r", "--causal-id", "2", `{"account":"bob","amount":2000}`).want(t, 1).says(t, "policy_denied")

	// With a key file alone, on another machine; and with nobody else's.
	third := ask("3", `{"account":"carol","amount":3000}`)
	url := nodeURL(t, dir)
	effectd(t, "approve", "--yes", string(third.EffectID), "--nats", url, "--nkey", filepath.Join(dir, "keys", "producer.nk"), "--principal", "approver").want(t, 1)
	effectd(t, "approve", "--yes", string(third.EffectID), "--nats", url, "--nkey", filepath.Join(dir, "keys", "approver.nk")).want(t, 0)

	// Who waits in another process goes on by itself.
	done := make(chan ran, 1)
	go func() {
		done <- effectd(t, "submit", "--json", "-t", "shop", "-o", "charge", "--run-id", "r", "--causal-id", "4", "--wait", "terminal", "--timeout", "50s", `{"account":"dave","amount":1001}`, "--data", dir)
	}()
	for deadline := time.Now().Add(longest); len(pending()) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("nothing waits")
		}
	}
	do("approve", "--yes", string(pending()[0].EffectID)).want(t, 0)
	if e := object[wire.Effect](t, (<-done).want(t, 0)); e.Outcome != events.OutcomeSucceeded {
		t.Errorf("%+v", e)
	}

	// More than is left: approved, and the answer says why it is not admitted.
	fifth := ask("5", `{"account":"erin","amount":9000}`)
	if r := do("pending").want(t, 0); !strings.Contains(r.out, "NOT ENOUGH") {
		t.Error(r.out)
	}
	if r := do("approve", "--yes", string(fifth.EffectID)).want(t, 0); !inOrder(r.out, "permitted, not admitted", "not admitted", "budget_exceeded") {
		t.Error(r.out)
	}
	if n, _ := service.charged("bob"); n != 0 {
		t.Errorf("bob is charged %d times", n)
	}
	do("verify").want(t, 0)
	if code := node.signal(t, 15); code != 0 {
		t.Errorf("exit code %d\n%s", code, node.errs)
	}
}

func nodeURL(t *testing.T, dir string) string {
	t.Helper()
	h, err := home.Open(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	n, err := runningOn(h)
	if err != nil {
		t.Fatal(err)
	}
	return n.NATSURL
}
