package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/effectd/effectd/aggregate/policy"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
)

const largeNeedApproval = `@id("producers")
permit (principal in Role::"producer", action in [Action::"commit", Action::"request_approval"], resource);
@id("large")
forbid (principal, action == Action::"commit", resource == Operation::"charge")
when { context.payload.amount > 100 };
@id("operators")
permit (principal in Role::"operator", action, resource);
`

const examples = `
- {name: small, principal: producer, operation: charge, payload: {account: a, amount: 100}, expect: commit}
- {name: large, principal: main/producer, operation: charge, payload: {account: a, amount: 101}, expect: request_approval}
- {name: nobody, principal: other/who, role: auditor, operation: charge, payload: {account: a, amount: 1}, expect: deny}
- {name: settle, principal: operator, operation: charge, payload: {account: a, amount: 1}, action: settle, expect: allow}
- {name: no settle, principal: producer, operation: charge, payload: {account: a, amount: 1}, action: settle, expect: deny}
`

func writeTo(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

type appliedPolicy struct {
	PolicySHA256 events.Digest `json:"policy_sha256"`
	Revision     int64         `json:"revision"`
	Changed      bool          `json:"changed"`
	Known        bool          `json:"known"`
}

// A policy is checked, applied to a running node and shown; one with a fault
// changes nothing (SPEC 11, 20).
func TestPolicy(t *testing.T) {
	dir := ledgerDir(t)
	withCharge(t, dir)
	do := func(args ...string) ran { t.Helper(); return effectd(t, append(args, "--data", dir)...) }
	do("policy", "check").want(t, 0)
	if a := object[appliedPolicy](t, do("policy", "apply", "--json").want(t, 0)); a.Known || a.Changed {
		t.Errorf("without a node: %+v", a)
	}
	if p := object[loggedPolicy](t, do("policy", "show", "--json").want(t, 0)); p.Revision != 1 || p.Policy != policy.Default {
		t.Errorf("at rest: %+v", p)
	}

	node := serve(t, dir)
	writeTo(t, dir, "policy.cedar", largeNeedApproval)
	a := object[appliedPolicy](t, do("policy", "apply", "--json").want(t, 0))
	if a.Revision != 2 || !a.Changed || !a.Known || a.PolicySHA256 != events.DigestBytes([]byte(largeNeedApproval)) {
		t.Errorf("applied: %+v", a)
	}
	if a := object[appliedPolicy](t, do("policy", "apply", "--json").want(t, 0)); a.Revision != 2 || a.Changed || !a.Known {
		t.Errorf("applied again: %+v", a)
	}
	if p := object[loggedPolicy](t, do("policy", "show", "--json").want(t, 0)); p.Revision != 2 || p.Policy != largeNeedApproval || p.PolicySHA256 != a.PolicySHA256 {
		t.Errorf("shown: %+v", p)
	}
	if r := do("policy", "show").want(t, 0); !strings.Contains(r.out, "when { context.payload.amount > 100 };\n") || !strings.Contains(r.out, string(a.PolicySHA256)) {
		t.Error(r.out)
	}

	bad := strings.Replace(largeNeedApproval, "payload.amount", "payload.amuont", 1)
	writeTo(t, dir, "policy.cedar", bad)
	for _, verb := range []string{"check", "apply"} {
		do("policy", verb).want(t, 1).says(t, "policy.cedar:5: unknown attribute amuont of context.payload")
	}
	if p := object[loggedPolicy](t, do("policy", "show", "--json").want(t, 0)); p.Revision != 2 {
		t.Errorf("a refused policy is revision %d", p.Revision)
	}
	do("policy", "check", writeTo(t, t.TempDir(), "other.cedar", largeNeedApproval)).want(t, 0)
	do("task", "open", "shop", "-b", "usd_cents=1000", "--holder", "main/producer").want(t, 0)
	do("submit", "-t", "shop", "-o", "charge", "--wait", "terminal", `{"account":"a","amount":100}`).want(t, 0)
	if code := node.signal(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d\n%s", code, node.errs)
	}
	do("policy", "apply").want(t, 1).says(t, "policy.cedar:5")
	do("verify").want(t, 0)
}

// Examples say what a policy does, and which policy does it.
func TestPolicyExamples(t *testing.T) {
	dir := ledgerDir(t)
	withCharge(t, dir)
	file := writeTo(t, dir, "examples.yaml", examples)
	other := writeTo(t, dir, "new.cedar", largeNeedApproval)
	run := func(code int, args ...string) (out []verdict) {
		t.Helper()
		r := effectd(t, append([]string{"policy", "test", "--json", "--data", dir}, args...)...).want(t, code)
		for line := range strings.Lines(r.out) {
			var v verdict
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				t.Fatal(err)
			}
			out = append(out, v)
		}
		return out
	}
	all := run(0, file, "--policy", other)
	if len(all) != 5 {
		t.Fatalf("%d answers", len(all))
	}
	large := all[1]
	if len(large.Asked) != 2 || len(large.Asked[0].DecidedBy) != 1 || large.Asked[0].DecidedBy[0] != (citation{"large", 3}) || large.Asked[1].DecidedBy[0] != (citation{"producers", 1}) {
		t.Errorf("large: %+v", large)
	}
	if nobody := all[2]; len(nobody.Asked) != 2 || len(nobody.Asked[1].DecidedBy) != 0 || nobody.Got != "deny" {
		t.Errorf("nobody: %+v", nobody)
	}
	// The policy of the directory commits what is large, too.
	if all := run(1, file); all[0].OK != true || all[1].OK || all[1].Got != "commit" {
		t.Errorf("by default: %+v", all)
	}
	r := effectd(t, "policy", "test", "--data", dir, file).want(t, 1)
	for _, words := range []string{"✗", "commit, expected request_approval", "commit: permitted by producers-commit (line 16)", "4 of 5 examples as expected"} {
		if !strings.Contains(r.out, words) {
			t.Errorf("%q is missing: %s", words, r.out)
		}
	}
	for text, words := range map[string]string{
		`[{name: x, principal: producer, operation: chrage, expect: deny}]`:                                                          "no such contract",
		`[{name: x, principal: nobody, operation: charge, expect: deny}]`:                                                            "role: missing",
		`[{name: x, principal: producer, operation: charge, payload: {account: a}, expect: deny}]`:                                   "amount",
		`[{name: x, principal: producer, operation: charge, payload: {account: a, amount: 1}, expect: maybe}]`:                       "expect: want commit, request_approval, deny",
		`[{name: x, principal: producer, operation: charge, payload: {account: a, amount: 1}, action: charge, expect: deny}]`:        "action: there are commit",
		`[{name: x, principal: producer, operation: charge, payload: {account: a, amount: 1}, action: settle, expect: acknowledge}]`: "expect: want settle, allow, deny",
	} {
		if r := effectd(t, "policy", "test", "--data", dir, writeTo(t, dir, "bad.yaml", text)).want(t, 1); !strings.Contains(r.out, words) {
			t.Errorf("%s: %s", text, r.out)
		}
	}
	effectd(t, "policy", "test", "--data", dir, writeTo(t, dir, "bad.yaml", "- {name: x, expct: deny}")).want(t, 1).says(t, "bad.yaml:1")
	effectd(t, "policy", "test", "--data", dir, writeTo(t, dir, "bad.yaml", "[]")).want(t, 1).says(t, "no examples")
}

// A removed user is disconnected and stays out; its effects stay; the last
// operator cannot be removed (SPEC 12).
func TestUserRemove(t *testing.T) {
	dir := ledgerDir(t)
	withCharge(t, dir)
	node := serve(t, dir)
	var here running
	readJSON(t, filepath.Join(dir, "node.json"), &here)
	do := func(args ...string) ran { t.Helper(); return effectd(t, append(args, "--data", dir)...) }
	do("user", "add", "second", "--role", "producer").want(t, 0)
	seed, err := os.ReadFile(filepath.Join(dir, "keys", "second.nk"))
	if err != nil {
		t.Fatal(err)
	}
	kept := writeTo(t, t.TempDir(), "second.nk", string(seed))
	do("task", "open", "shop", "-b", "usd_cents=1000", "--holder", "main/second").want(t, 0)
	done := object[wire.Effect](t, do("submit", "--json", "--as", "second", "-t", "shop", "-o", "charge", "--wait", "terminal", `{"account":"a","amount":1}`).want(t, 0))
	held := object[wire.Effect](t, do("prepare", "--json", "--as", "second", "-t", "shop", "-o", "charge", `{"account":"a","amount":2}`).want(t, 0))

	c, err := client.Dial(here.NATSURL, kept, "main", "second")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	hung := make(chan struct{})
	go func() {
		defer close(hung)
		for c.Conn().IsConnected() {
			_, _ = c.Status(t.Context())
		}
	}()
	do("user", "remove", "second").want(t, 0)
	<-hung
	if exists(filepath.Join(dir, "keys", "second.nk")) {
		t.Error("the key stays")
	}
	for range 3 {
		effectd(t, "ledger", "status", "--nats", here.NATSURL, "--nkey", kept).want(t, 1).says(t, "forbidden")
	}
	if e := object[wire.Effect](t, do("get", "--json", string(done.EffectID)).want(t, 0)); e.State != wire.StateSettled {
		t.Errorf("what was done: %+v", e)
	}
	if e := object[wire.Effect](t, do("get", "--json", string(held.EffectID), "--wait", "terminal").want(t, 1)); e.State != wire.StateRefused || e.Reason != events.ReasonPolicyDenied {
		t.Errorf("what was held: %+v", e)
	}
	if r := do("user", "list").want(t, 0); strings.Contains(r.out, "second") {
		t.Error(r.out)
	}
	if r := do("watch", "--from", "1", "--type", "access-changed", "--count", "3").want(t, 0); strings.Count(r.out, "\n") != 3 {
		t.Error(r.out)
	}
	do("user", "remove", "second").want(t, 1).says(t, "unknown user", "user list")
	do("user", "remove", "operator").want(t, 1).says(t, "main/operator is the last operator", "user add --role operator")
	if code := node.signal(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d\n%s", code, node.errs)
	}
	if r := do("user", "remove", "executor").want(t, 0); !strings.Contains(r.out, "next effectd serve") {
		t.Error(r.out)
	}
	do("verify").want(t, 0)
}
