package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// What an operator does about unknown effects, and a producer about its run.
func TestSettleAndRuns(t *testing.T) {
	dir := ledgerDir(t)
	service := withCharge(t, dir)
	serve(t, dir)
	do := func(args ...string) ran { t.Helper(); return effectd(t, append(args, "--data", dir)...) }
	do("task", "open", "shop", "-b", "usd_cents=10000", "--holder", "main/producer").want(t, 0)
	lose := func(id string) wire.Effect {
		t.Helper()
		service.loseNext()
		return object[wire.Effect](t, do("submit", "--json", "-t", "shop", "-o", "charge", "--run-id", "r", "--causal-id", id, "--wait", "terminal",
			`{"account":"alice","amount":500}`).want(t, 3))
	}
	first, second := lose("1"), lose("2")
	known := []string{"--source", "the bank's statement", "--reference", "2026-03/17", "--who", "Ada"}
	settle := func(id events.EffectID, outcome string) []string {
		return append([]string{"settle", string(id), "--data", dir, "--outcome", outcome}, known...)
	}

	do("run", "finish", "r", "succeeded").want(t, 1).says(t, "run_unresolved", "effectd list")
	do("acknowledge", string(first.EffectID), "--reason", "small").want(t, 0)
	if x := object[wire.Effect](t, do("get", "--json", string(first.EffectID)).want(t, 3)); x.State != wire.StateUnknown || x.Acknowledged == nil {
		t.Fatalf("%+v", x)
	}
	// That nothing happened is signed, and not without a yes.
	effectdWith(t, "no\n", settle(first.EffectID, "no_effect")...).want(t, 1).says(t, "had no effect", "frees", "the bank's statement", "Sign this?", "nothing was signed")
	effectdWith(t, "yes\n", settle(first.EffectID, "no_effect")...).want(t, 0)
	if x := object[wire.Effect](t, effectd(t, append(settle(second.EffectID, "succeeded"), "--json")...).want(t, 0)); x.Outcome != events.OutcomeSucceeded ||
		x.Reason != events.ReasonOperatorEstablished || x.Evidence.Reference != "2026-03/17" {
		t.Fatalf("%+v", x)
	}
	for _, show := range []string{"get", "history"} {
		if r := do(show, string(second.EffectID)).want(t, 0); !strings.Contains(r.out, "from the bank's statement: 2026-03/17, seen by Ada") {
			t.Errorf("%s: %s", show, r.out)
		}
	}
	effectd(t, append(settle(second.EffectID, "failed"), "--json")...).want(t, 1).says(t, "illegal_transition")
	effectd(t, append(settle(second.EffectID, "perhaps"), "--json")...).want(t, 2)

	// A document has whatever the operator wants kept; other outcomes are signed if asked.
	third := lose("3")
	file := filepath.Join(dir, "call.json")
	if err := os.WriteFile(file, []byte(`{"source": "a call", "reference": "ticket 12", "who": "Anna", "said": ["half", "of it"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	partial := []string{"settle", string(third.EffectID), "--data", dir, "--outcome", "partial", "--sign", "--evidence", "@" + file}
	effectdWith(t, "no\n", partial...).want(t, 1).says(t, "was done in part", "charges", "usd_cents 500", `said ["half","of it"]`, "Sign this?")
	x := object[wire.Effect](t, effectd(t, append(partial, "--yes", "--json")...).want(t, 0))
	if x.Outcome != events.OutcomePartial || string(x.Evidence.Named) != `{"reference":"ticket 12","said":["half","of it"],"source":"a call","who":"Anna"}` {
		t.Fatalf("%+v", x)
	}
	if r := effectd(t, append(partial, "--source", "me")...).want(t, 2); !strings.Contains(r.err, "--evidence") {
		t.Error(r.err)
	}
	effectdWith(t, `{"a":1,"a":2}`, "settle", string(third.EffectID), "--data", dir, "--outcome", "partial", "--evidence", "-").want(t, 1).says(t, "invalid_payload", "evidence")
	effectdWith(t, `{"said":"trust me"}`, "settle", string(lose("4").EffectID), "--data", dir, "--outcome", "partial", "--evidence", "-").want(t, 1).says(t, "invalid_request", "evidence")
	effectd(t, "settle", "--run-id", "r", "--causal-id", "4", "--data", dir, "--outcome", "failed", "--source", "the books", "--reference", "4").want(t, 0)

	if r := do("run", "finish", "r", "succeeded").want(t, 0); !inOrder(r.out, "outcome", "succeeded", "settled", "4") {
		t.Error(r.out)
	}
	do("run", "cancel", "r").want(t, 1).says(t, "run_finished")
	do("submit", "-t", "shop", "-o", "charge", "--run-id", "s", "--causal-id", "1", `{"account":"alice","amount":1}`).want(t, 0)
	do("run", "cancel", "s", "--reason", "enough").want(t, 0)
	do("submit", "-t", "shop", "-o", "charge", "--run-id", "s", "--causal-id", "2", `{"account":"alice","amount":1}`).want(t, 1).says(t, "run_cancelled")
	do("verify").want(t, 0)
}
