package wire

import (
	"reflect"
	"strings"
	"testing"

	"github.com/effectd/effectd/events"
	"github.com/go-json-experiment/json"
)

const submit = `{"task_id":"t","operation":"charge","payload":{"b":1,"a":[]},"run_id":"r","causal_id":"c"`

func TestDecode(t *testing.T) {
	got, refusal := Decode[SubmitRequest]([]byte(submit + `, "version":1.0, "precondition":null, "service":null, "max_cost":{"usd_cents":1e3}, "expires_at":"2026-01-01T00:00:00+01:00", "wait":"terminal"}`))
	if refusal != nil {
		t.Fatal(refusal)
	}
	run, causal := events.RunID("r"), events.CausalID("c")
	want := SubmitRequest{Wait: WaitTerminal, PrepareRequest: PrepareRequest{TaskID: "t", Operation: "charge", Version: 1, Payload: events.Raw(`{"a":[],"b":1}`),
		MaxCost: events.Amounts{"usd_cents": 1000}, ExpiresAt: "2026-01-01T00:00:00+01:00", SealedContext: SealedContext{RunID: &run, CausalID: &causal}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
	for _, empty := range []string{"", " \n", "{}"} {
		if _, refusal := Decode[EmptyRequest]([]byte(empty)); refusal != nil {
			t.Errorf("%q: %v", empty, refusal)
		}
	}
}

// SPEC 21: a malformed or unknown field is named; JSON that SPEC 3 refuses has
// its own code; no message repeats a value.
func TestDecodeRefuses(t *testing.T) {
	long := strings.Repeat("x", events.MaxID+1)
	secret := "s3cr3t"
	for _, c := range []struct {
		decode      func([]byte) *Error
		body        string
		code        Code
		field, text string
	}{
		{refusal[SubmitRequest], submit + `,"payload":1}`, InvalidPayload, "payload", "duplicate name"},
		{refusal[SubmitRequest], strings.Replace(submit, `"b":1`, `"b":1,"b":2`, 1) + `}`, InvalidPayload, "payload.b", "duplicate name"},
		{refusal[SubmitRequest], submit + `,"note":9007199254740993}`, InvalidPayload, "note", "beyond"},
		{refusal[SubmitRequest], submit + `,"max_cost":{"usd":1e400}}`, InvalidPayload, "max_cost.usd", "not finite"},
		{refusal[SubmitRequest], submit, InvalidPayload, "", "truncated"},
		{refusal[SubmitRequest], submit + `} {}`, InvalidPayload, "", "malformed"},
		{refusal[SubmitRequest], `null`, InvalidRequest, "", "want a JSON object"},
		{refusal[SubmitRequest], `[]`, InvalidRequest, "", "want a JSON object"},
		{refusal[SubmitRequest], submit + `,"s3cr3t_value":"s3cr3t"}`, InvalidRequest, "s3cr3t_value", "unknown field"},
		{refusal[SubmitRequest], submit + `,"Wait":"none"}`, InvalidRequest, "Wait", "unknown field"},
		{refusal[SubmitRequest], submit + `,"` + strings.Repeat("é", 500) + `":1}`, InvalidRequest, strings.Repeat("é", 64) + "…", "unknown field"},
		{refusal[SubmitRequest], submit + `,"version":"s3cr3t"}`, InvalidRequest, "version", "want an integer"},
		{refusal[SubmitRequest], submit + `,"version":1.5}`, InvalidRequest, "version", "want an integer"},
		{refusal[SubmitRequest], submit + `,"version":0}`, InvalidRequest, "version", "empty"},
		{refusal[SubmitRequest], submit + `,"version":-0}`, InvalidRequest, "version", "empty"},
		{refusal[SubmitRequest], submit + `,"version":-1}`, InvalidRequest, "version", "from 1"},
		{refusal[SubmitRequest], submit + `,"expires_at":""}`, InvalidRequest, "expires_at", "empty"},
		{refusal[SubmitRequest], submit + `,"expires_at":"tomorrow"}`, InvalidRequest, "expires_at", "RFC 3339"},
		{refusal[SubmitRequest], submit + `,"max_cost":{"usd":-1}}`, InvalidRequest, "max_cost.usd", "0 to 2^53"},
		{refusal[SubmitRequest], submit + `,"max_cost":{"usd":0.5}}`, InvalidRequest, "max_cost.usd", "want an integer"},
		{refusal[SubmitRequest], submit + `,"max_cost":{"US D":1}}`, InvalidRequest, "max_cost", "a unit"},
		{refusal[SubmitRequest], submit + `,"max_cost":7}`, InvalidRequest, "max_cost", "want an object"},
		{refusal[SubmitRequest], submit + `,"wait":"forever"}`, InvalidRequest, "wait", "none, admitted, terminal"},
		{refusal[SubmitRequest], submit + `,"timeout_ms":-1}`, InvalidRequest, "timeout_ms", "milliseconds"},
		{refusal[SubmitRequest], submit + `,"timeout_ms":9007199254740991}`, InvalidRequest, "timeout_ms", "milliseconds"},
		{refusal[SubmitRequest], submit + `,"service":""}`, InvalidRequest, "service", "empty"},
		{refusal[SubmitRequest], submit + `,"session":"` + long + `"}`, InvalidRequest, "session", "longer"},
		{refusal[PrepareRequest], submit + `,"wait":"none"}`, InvalidRequest, "wait", "unknown field"},
		{refusal[PrepareRequest], strings.Replace(submit, `"run_id":"r",`, ``, 1) + `}`, InvalidRequest, "run_id", "required"},
		{refusal[PrepareRequest], strings.Replace(submit, `"causal_id":"c"`, `"causal_id":null`, 1) + `}`, InvalidRequest, "causal_id", "required"},
		{refusal[PrepareRequest], strings.Replace(submit, `"c"`, `""`, 1) + `}`, InvalidRequest, "causal_id", "required"},
		{refusal[PrepareRequest], strings.Replace(submit, `"c"`, `"`+long+`"`, 1) + `}`, InvalidRequest, "causal_id", "longer"},
		{refusal[PrepareRequest], strings.Replace(submit, `"t"`, `7`, 1) + `}`, InvalidRequest, "task_id", "want a string"},
		{refusal[PrepareRequest], strings.Replace(submit, `"charge"`, `"Charge!"`, 1) + `}`, InvalidRequest, "operation", "characters"},
		{refusal[PrepareRequest], `{"task_id":"t","operation":"charge","run_id":"r","causal_id":"c"}`, InvalidRequest, "payload", "required"},
		{refusal[AdmitRequest], `{"effect_id":"E"}`, InvalidRequest, "binding_digest", "required"},
		{refusal[GetRequest], `{}`, InvalidRequest, "effect_id", "required"},
		{refusal[GetRequest], `{"run_id":"r"}`, InvalidRequest, "effect_id", "required"},
		{refusal[GetRequest], `{"effect_id":"E","run_id":"r"}`, InvalidRequest, "effect_id", "either"},
		{refusal[GetRequest], `{"effect_id":"E","min_position":"last"}`, InvalidRequest, "min_position", "position"},
		{refusal[ListRequest], `{"state":"gone"}`, InvalidRequest, "state", "prepared"},
		{refusal[ListRequest], `{"limit":-1}`, InvalidRequest, "limit", "0 to"},
		{refusal[ListRequest], `{"since":"1"}`, InvalidRequest, "since", "RFC 3339"},
		{refusal[TaskOpenRequest], `{"task_id":"t","budgets":{"usd":1}}`, InvalidRequest, "expires_at", "required"},
		{refusal[TaskOpenRequest], `{"task_id":"t","expires_at":"2026-01-01T00:00:00Z","holders":["main/p","main"]}`, InvalidRequest, "holders.1", "TENANT"},
		{refusal[TaskOpenRequest], `{"task_id":"t","expires_at":"2026-01-01T00:00:00Z","holders":"main/p"}`, InvalidRequest, "holders", "want an array"},
		{refusal[SettleRequest], `{"effect_id":"E","outcome":"succeeded"}`, InvalidRequest, "evidence", "object"},
		{refusal[SettleRequest], `{"effect_id":"E","outcome":"unknown","evidence":{}}`, InvalidRequest, "outcome", "succeeded"},
		{refusal[ReconcileRequest], `{"effect_id":"E","method":"guess"}`, InvalidRequest, "method", "query"},
		{refusal[RunRequest], `{"run_id":"r","outcome":"fine"}`, InvalidRequest, "outcome", "succeeded"},
		{refusal[EmptyRequest], `{"a":1}`, InvalidRequest, "a", "unknown field"},
	} {
		got := c.decode([]byte(c.body))
		if got == nil {
			t.Errorf("%.200s is accepted", c.body)
			continue
		}
		if got.Code != c.code || got.Field != c.field || !strings.Contains(got.Message, c.text) || strings.Contains(got.Message, secret) {
			t.Errorf("%.200s: got %+v, want %s %q %q", c.body, got, c.code, c.field, c.text)
		}
	}
}

func refusal[T any](body []byte) *Error {
	_, r := Decode[T](body)
	return r
}

// SPEC 3: request_sha256 is over exactly what was sent, absent = null.
func TestRequestDigest(t *testing.T) {
	digest := func(members string) events.Digest {
		t.Helper()
		r, refusal := Decode[SubmitRequest]([]byte(submit + members + "}"))
		if refusal != nil {
			t.Fatalf("%s: %v", members, refusal)
		}
		return r.Digest()
	}
	base := digest("")
	want := events.DigestBytes([]byte(`{"expires_at":null,"max_cost":null,"operation":"charge","payload_sha256":"` +
		string(events.DigestBytes([]byte(`{"a":[],"b":1}`))) + `","precondition":null,"task_id":"t","v":1,"version":null}`))
	if base != want {
		t.Errorf("got %s, want %s", base, want)
	}
	for _, same := range []string{`,"version":null`, `,"max_cost":null,"expires_at":null,"precondition":null`, `,"wait":"none","timeout_ms":1`, `,"service":"s"`} {
		if digest(same) != base {
			t.Errorf("%s changes the digest", same)
		}
	}
	seen := map[events.Digest]string{base: "nothing"}
	for _, other := range []string{`,"version":1`, `,"max_cost":{}`, `,"max_cost":{"usd":0}`, `,"precondition":{}`, `,"precondition":""`,
		`,"expires_at":"2026-01-01T00:00:00Z"`, `,"expires_at":"2026-01-01T01:00:00+01:00"`} {
		d := digest(other)
		if seen[d] != "" {
			t.Errorf("%s has the digest of %s", other, seen[d])
		}
		seen[d] = other
	}
}

// What the Go client sends has the digest of what it was given: nothing that
// is present is dropped.
func TestRequestDigestSurvivesEncoding(t *testing.T) {
	r, refusal := Decode[PrepareRequest]([]byte(submit + `,"max_cost":{},"precondition":{"etag":"1"}}`))
	if refusal != nil {
		t.Fatal(refusal)
	}
	body, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	again, refusal := Decode[PrepareRequest](body)
	if refusal != nil || again.Digest() != r.Digest() {
		t.Errorf("%s: %v", body, refusal)
	}
}

func TestCodes(t *testing.T) {
	for code, status := range Codes() {
		if code.Status() != status || status < 400 || status > 599 {
			t.Errorf("%s: %d", code, status)
		}
	}
	if Code("nonsense").Status() != 500 {
		t.Error("unknown code")
	}
}

func TestCallerOf(t *testing.T) {
	tenant, principal, ok := CallerOf(APISubject("main", "producer", EffectSubmit))
	if !ok || tenant != "main" || principal != "producer" {
		t.Error(tenant, principal, ok)
	}
	for _, bad := range []string{"effects.api._.ledger.effect.get", "effects.api.main.producer.effect", "effects.api.main.producer.effect.get.x",
		"effects.log", "effects.api.MAIN.producer.effect.get", "effects.api.main..effect.get"} {
		if _, _, ok := CallerOf(bad); ok {
			t.Errorf("%s is a caller", bad)
		}
	}
}

// Decoding never panics, and what it accepts it accepts again, with the same
// digest, in the form that the Go client sends.
func FuzzWireDecode(f *testing.F) {
	f.Add([]byte(submit + `}`))
	f.Add([]byte(submit + `,"version":1,"max_cost":{"usd":1},"expires_at":"2026-01-01T00:00:00Z","service":"s","wait":"terminal","timeout_ms":5}`))
	f.Add([]byte(`{"effect_id":"E","outcome":"failed","evidence":{"who":"x"}}`))
	f.Add([]byte(`{"task_id":"t","budgets":{"usd":1},"holders":["main/p"],"expires_at":"2026-01-01T00:00:00Z"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		again[TaskOpenRequest](t, body)
		again[TaskCloseRequest](t, body)
		again[AdmitRequest](t, body)
		again[GetRequest](t, body)
		again[ListRequest](t, body)
		again[ApprovalRequest](t, body)
		again[SettleRequest](t, body)
		again[RunRequest](t, body)
		first, second, ok := again[SubmitRequest](t, body)
		if ok && first.Digest() != second.Digest() {
			t.Fatalf("%s: the digest changes", body)
		}
	})
}

func again[T any](t *testing.T, body []byte) (first, second T, ok bool) {
	first, refusal := Decode[T](body)
	if refusal != nil {
		if refusal.Code != InvalidRequest && refusal.Code != InvalidPayload {
			t.Fatalf("code of %v", refusal)
		}
		return first, second, false
	}
	sent, err := json.Marshal(first)
	if err != nil {
		t.Fatalf("%T: %v", first, err)
	}
	if second, refusal = Decode[T](sent); refusal != nil {
		t.Fatalf("%s became %s: %v", body, sent, refusal)
	}
	return first, second, true
}

func BenchmarkDecode(b *testing.B) {
	body := []byte(submit + `,"service":"billing","wait":"terminal","timeout_ms":2000}`)
	b.ReportAllocs()
	for b.Loop() {
		r, refusal := Decode[SubmitRequest](body)
		if refusal != nil {
			b.Fatal(refusal)
		}
		_ = r.Digest()
	}
}
