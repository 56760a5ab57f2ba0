package schema

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

func compile(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	text, ok := All()[name]
	if !ok {
		t.Fatalf("no schema %s", name)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(name, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(name)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return s
}

func validate(t *testing.T, s *jsonschema.Schema, body string) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

// Every schema is a valid schema, and there is one for everything.
func TestAllCompile(t *testing.T) {
	all := All()
	for name := range all {
		compile(t, name)
	}
	for _, v := range wire.Verbs() {
		if all["request."+string(v)] == nil {
			t.Errorf("no schema for the request of %s", v)
		}
	}
	if want := len(wire.Verbs()) + len(events.Types()) + len(replies) + 1; len(all) != want {
		t.Errorf("%d schemas, want %d", len(all), want)
	}
}

// S1, S2: every golden event passes its own schema and no other, and not with
// an unknown or missing member anywhere.
func TestGoldenEvents(t *testing.T) {
	for _, d := range events.Types() {
		body := golden(t, string(d.Type()))
		s := compile(t, "event."+string(d.Type()))
		if err := validate(t, s, body); err != nil {
			t.Errorf("%s: %v", d.Type(), err)
		}
		for what, bad := range map[string]string{
			"unknown member":      strings.Replace(body, `{"actor"`, `{"absurd":1,"actor"`, 1),
			"unknown data member": strings.Replace(body, `"data":{`, `"data":{"absurd":1,`, 1),
			"no id":               strings.Replace(body, `"id":"01JZ8M6BBB0000000000000000",`, ``, 1),
			"other version":       body[:len(body)-len(`1}`)] + `2}`,
			"other time":          strings.Replace(body, `"time":"2026-03-14T`, `"time":"2026-03-14 `, 1),
		} {
			if bad == body {
				t.Errorf("%s, %s: the test changes nothing", d.Type(), what)
			}
			if validate(t, s, bad) == nil {
				t.Errorf("%s with %s is valid", d.Type(), what)
			}
		}
		if d.Type() != events.TypeSettled && validate(t, s, golden(t, "settled")) == nil {
			t.Errorf("settled is a valid %s", d.Type())
		}
	}
	entry := golden(t, "entry")
	if err := validate(t, compile(t, "entry"), entry); err != nil {
		t.Error(err)
	}
	if validate(t, compile(t, "entry"), strings.Replace(entry, `"reason":"month closed"`, `"absurd":1`, 1)) == nil {
		t.Error("an entry with an unknown member in an event is valid")
	}
	nested := golden(t, "prepared")
	if validate(t, compile(t, "event.prepared"), strings.Replace(nested, `"binding":{`, `"binding":{"absurd":1,`, 1)) == nil {
		t.Error("a binding with an unknown member is valid")
	}
}

func golden(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "testdata", "golden", name+".v1.json"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestRequests(t *testing.T) {
	submit := compile(t, "request.effect.submit")
	const base = `{"task_id":"t","operation":"charge","payload":{"any":["thing"]},"run_id":"r","causal_id":"c"`
	if err := validate(t, submit, base+`,"version":1,"max_cost":{"usd_cents":5},"wait":"terminal","timeout_ms":100,"service":"s"}`); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{base + `,"absurd":1}`, base + `,"max_cost":{"usd":-1}}`, base + `,"max_cost":{"US D":1}}`, base + `,"version":"1"}`,
		strings.Replace(base, `"run_id":"r",`, ``, 1) + `}`, strings.Replace(base, `charge`, `Charge`, 1) + `}`} {
		if validate(t, submit, bad) == nil {
			t.Errorf("%s is valid", bad)
		}
	}
	if validate(t, compile(t, "request.run.finish"), `{"run_id":"r"}`) == nil || validate(t, compile(t, "request.run.get"), `{"run_id":"r"}`) != nil {
		t.Error("outcome belongs to run.finish")
	}
}

// S1 for replies: zero values encode to what the schema takes, and replies may grow.
func TestReplies(t *testing.T) {
	effect := string(events.CanonicalOf(wire.Effect{EffectID: "E", State: wire.StateSettled, Outcome: events.OutcomeFailed, Cost: events.Amounts{"usd": 1},
		Permit: &wire.Permit{State: wire.PermitConsumed}, Unknown: &wire.Unknown{Reason: events.ReasonTimeout, Since: 1}}))
	if err := validate(t, compile(t, "reply.effect"), effect); err != nil {
		t.Error(err)
	}
	if err := validate(t, compile(t, "reply.effect"), strings.Replace(effect, "{", `{"grown":1,`, 1)); err != nil {
		t.Error(err)
	}
	for name, v := range map[string]any{
		"reply.task":           wire.Task{TaskID: "t", Budgets: map[events.Unit]wire.Budget{"usd": {Max: 1, Available: -1}}},
		"reply.run":            wire.Run{RunID: "r", Principal: "p"},
		"reply.effect.list":    wire.List[wire.Effect]{},
		"reply.operation.list": wire.List[wire.Operation]{Items: []wire.Operation{{Name: "charge", Digest: events.ZeroDigest}}},
		"reply.permit.pending": wire.PendingList{Pending: []wire.Pending{{EffectID: "E", Operation: "charge", Exposed: events.Raw(`{}`)}}},
		"reply.ledger.status":  wire.Status{StoreFingerprint: events.ZeroDigest},
		"reply.error":          wire.ErrorReply{Error: wire.Errorf(wire.Expired, "too late")},
	} {
		if err := validate(t, compile(t, name), string(events.CanonicalOf(v))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if validate(t, compile(t, "reply.error"), `{"error":{"code":"absurd","message":"x"}}`) == nil {
		t.Error("an unknown code is valid")
	}
}
