package embedded_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/effectd/effectd/events/client"
	"github.com/effectd/effectd/events/wire"
)

// ask sends the bytes of a request as they are, and returns the refusal; nil if
// it was answered.
func ask(t testing.TB, c *client.Client, verb wire.Verb, body string) *wire.Error {
	t.Helper()
	m, err := c.Conn().Request(wire.APISubject("main", "producer", verb), []byte(body), patience)
	if err != nil {
		t.Fatal(err)
	}
	number := m.Header.Get(wire.HeaderErrorCode)
	if number == "" {
		return nil
	}
	var reply wire.ErrorReply
	if err := json.Unmarshal(m.Data, &reply); err != nil || reply.Error == nil {
		t.Fatalf("%s: %v", m.Data, err)
	}
	if number != strconv.Itoa(reply.Error.Code.Status()) || m.Header.Get(wire.HeaderError) != string(reply.Error.Code) {
		t.Errorf("headers %v do not say %s", m.Header, reply.Error.Code)
	}
	return reply.Error
}

// with is a good request with one payload.
func with(payload string) string {
	return `{"task_id":"shop","operation":"charge","run_id":"r","causal_id":"c","payload":` + payload + `}`
}

// also is a good request with more members.
func also(members string) string {
	return `{"task_id":"shop","operation":"charge","run_id":"r","causal_id":"c","payload":{"account":"a","amount":5},` + members + `}`
}

const good = `{"account":"a","amount":5}`

// What cannot be accepted is refused with its code and its field, on every verb
// that takes it, and leaves no trace in the log (SPEC 3, 6, 21).
func TestBadInput(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := running(t, s)
	c := r.as("producer")
	before := r.last()
	for _, bad := range []struct {
		name, body string
		code       wire.Code
		field      string
	}{
		{"not JSON", `{"task_id":`, wire.InvalidPayload, "task_id"},
		{"two values", with(good) + ` {}`, wire.InvalidPayload, ""},
		{"an array", `[]`, wire.InvalidRequest, ""},
		{"duplicate names", with(`{"account":"a","amount":5,"amount":6}`), wire.InvalidPayload, "payload.amount"},
		{"duplicate names outside", also(`"task_id":"shop"`), wire.InvalidPayload, "task_id"},
		{"duplicate names in disguise", with(`{"account":"a","amount":5,"\u0061mount":6}`), wire.InvalidPayload, "payload.amount"},
		{"2^53", with(`{"account":"a","amount":9007199254740992}`), wire.InvalidPayload, "payload.amount"},
		{"2^53+1", with(`{"account":"a","amount":9007199254740993}`), wire.InvalidPayload, "payload.amount"},
		{"-2^53", with(`{"account":"a","amount":-9007199254740992}`), wire.InvalidPayload, "payload.amount"},
		{"not finite", with(`{"account":"a","amount":1e999}`), wire.InvalidPayload, "payload.amount"},
		{"NaN", with(`{"account":"a","amount":NaN}`), wire.InvalidPayload, "payload.amount"},
		{"invalid UTF-8", with("{\"account\":\"\xff\",\"amount\":5}"), wire.InvalidPayload, "payload.account"},
		{"lone surrogate", with(`{"account":"\ud800","amount":5}`), wire.InvalidPayload, "payload.account"},
		{"too deep", with(`{"account":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `,"amount":5}`), wire.InvalidPayload, ""},
		{"an amount that is none", with(`{"account":"a","amount":0}`), wire.InputSchemaViolation, "payload"},
		{"a fraction", with(`{"account":"a","amount":1.5}`), wire.InputSchemaViolation, "payload"},
		{"a field missing", with(`{"amount":5}`), wire.InputSchemaViolation, "payload"},
		{"a field more", with(`{"account":"a","amount":5,"tip":1}`), wire.InputSchemaViolation, "payload"},
		{"no object", with(`"charge"`), wire.InputSchemaViolation, "payload"},
		{"no payload", `{"task_id":"shop","operation":"charge","run_id":"r","causal_id":"c"}`, wire.InvalidRequest, "payload"},
		{"an unknown field", also(`"tenant":"other"`), wire.InvalidRequest, "tenant"},
		{"a field of another case", also(`"Version":1`), wire.InvalidRequest, "Version"},
		{"a number as text", also(`"version":"1"`), wire.InvalidRequest, "version"},
		{"an empty time", also(`"expires_at":""`), wire.InvalidRequest, "expires_at"},
		{"no time", also(`"expires_at":"tomorrow"`), wire.InvalidRequest, "expires_at"},
		{"a time that is over", also(`"expires_at":"2001-01-01T00:00:00Z"`), wire.Expired, "expires_at"},
		{"a negative cost", also(`"max_cost":{"usd_cents":-1}`), wire.InvalidRequest, "max_cost.usd_cents"},
		{"a cost below the bound", also(`"max_cost":{"usd_cents":4}`), wire.BudgetExceeded, "max_cost.usd_cents"},
		{"no run", `{"task_id":"shop","operation":"charge","causal_id":"c","payload":` + good + `}`, wire.InvalidRequest, "run_id"},
		{"a long id", strings.Replace(with(good), `"c"`, `"`+strings.Repeat("c", 257)+`"`, 1), wire.InvalidRequest, "causal_id"},
		{"an unknown task", strings.Replace(with(good), "shop", "other", 1), wire.UnknownTask, "task_id"},
		{"an unknown operation", strings.Replace(with(good), `"charge"`, `"refund"`, 1), wire.UnknownOperation, "operation"},
		{"an unknown version", also(`"version":7`), wire.UnknownOperation, "operation"},
		{"a precondition", also(`"precondition":{"etag":"x"}`), wire.PreconditionUnsupported, "precondition"},
		{"a record too large", with(`{"account":"a","amount":5,"note":"` + strings.Repeat("a", 65<<10) + `"}`), wire.RecordTooLarge, "payload"},
		{"nested as deep as may be", with(`{"account":` + strings.Repeat("[", 62) + strings.Repeat("]", 62) + `,"amount":5}`), wire.InputSchemaViolation, "payload"},
	} {
		for _, verb := range []wire.Verb{wire.EffectPrepare, wire.EffectSubmit} {
			t.Run(bad.name+" "+string(verb), func(t *testing.T) {
				refusal := ask(t, c, verb, bad.body)
				if refusal == nil || refusal.Code != bad.code || refusal.Field != bad.field {
					t.Fatalf("%v, want %s at %q", refusal, bad.code, bad.field)
				}
				if len(refusal.Message) > 512 || strings.Contains(refusal.Message, "aaaaaaaa") {
					t.Fatalf("the message repeats values: %.600s", refusal.Message)
				}
			})
		}
	}
	if last := r.last(); last != before {
		t.Fatalf("the log went from entry %d to %d", before, last)
	}
	s.served(t, 0)
	// And what is at the edge is accepted.
	for i, payload := range []string{good, `{"account":"a","amount":9007199254740991}`, `{"account":"\u00e9\ud83d\ude00","amount":5.0}`, " {\n\"amount\" : 5e0 , \"account\":\"b\"} "} {
		if refusal := ask(t, c, wire.EffectPrepare, strings.Replace(with(payload), `"c"`, fmt.Sprintf(`"c%d"`, i), 1)); refusal != nil {
			t.Errorf("%s: %v", payload, refusal)
		}
	}
}

// A bound that is negative, not finite, not an integer or not computable is
// refused (SPEC 10, 21).
func TestUnboundedCost(t *testing.T) {
	t.Parallel()
	s := newService(t)
	r := newRig(t, s)
	contract := strings.ReplaceAll(chargeContract, "URL", s.URL)
	bounds := map[string]string{"negative": "payload.amount - 10", "infinite": "double(payload.amount) / 0.0", "no-number": "0.0 / 0.0 * double(payload.amount)",
		"fraction": "double(payload.amount) / 2.0", "huge": "payload.amount * 4503599627370496", "overflow": "payload.amount * 9223372036854775807",
		"division": "payload.amount / (payload.amount - 5)", "absent": "payload.limit"}
	for name, bound := range bounds {
		r.write("operations/"+name+".yaml", strings.NewReplacer("name: charge", "name: "+name, "{usd_cents: payload.amount}", "{usd_cents: "+bound+"}",
			"note: {type: string}", "limit: {type: integer}").Replace(contract))
	}
	r.start()
	r.openTask("shop", 100)
	before := r.last()
	for name := range bounds {
		refusal := ask(t, r.as("producer"), wire.EffectSubmit, strings.Replace(with(good), `"charge"`, `"`+name+`"`, 1))
		if refusal == nil || refusal.Code != wire.CostUnbounded || refusal.Field != "payload" {
			t.Errorf("%s: %v", name, refusal)
		}
	}
	if last := r.last(); last != before {
		t.Fatalf("the log went from entry %d to %d", before, last)
	}
}
