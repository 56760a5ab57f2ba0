package operation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/effectd/effectd/events"
)

func input(t testing.TB) Input {
	return Input{
		Payload: mustPayload(t, `{"account":"acct_1","amount":1500}`), Resource: "account/acct_1", EffectID: "01E", IdempotencyKey: "ek_1",
		Secret: func(name string) (string, bool) { return "s3cr3t-token", name == "CHARGE_TOKEN" },
	}
}

func show(v Verdict, ok bool) string {
	if !ok {
		return "unknown"
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s %s %v invalid=%v %s", v.Rule, v.Outcome, v.Means, v.ProviderRef, map[events.Unit]int64(v.Cost), v.CostInvalid, string(v.Named)))
}

// O6: the first rule that matches; a rule that fails is no match; no rule, no
// outcome.
func TestClassify(t *testing.T) {
	c := mustCompile(t, chargeText(t))
	cases := []struct {
		status int64
		body   string
		want   string
	}{
		{200, `{"id":"ch_1","amount":1500}`, `outcomes[0] succeeded completed ch_1 map[usd_cents:1500] invalid=false {"cost":{"usd_cents":1500},"provider_ref":"ch_1"}`},
		{201, `{"id":7,"amount":1.5e3}`, `outcomes[0] succeeded completed 7 map[usd_cents:1500] invalid=false {"cost":{"usd_cents":1500},"provider_ref":"7"}`},
		{200, `{"id":null,"amount":0}`, `outcomes[0] succeeded completed  map[usd_cents:0] invalid=false {"cost":{"usd_cents":0}}`},
		{200, `{"id":"ch_1","amount":-1}`, `outcomes[0] succeeded completed ch_1 map[] invalid=true {"cost":{"usd_cents":"-1"},"provider_ref":"ch_1"}`},
		{200, `{"id":"ch_1","amount":1.5}`, `outcomes[0] succeeded completed ch_1 map[] invalid=true {"cost":{"usd_cents":"1.5"},"provider_ref":"ch_1"}`},
		{200, `{"id":"ch_1","amount":"1500"}`, `outcomes[0] succeeded completed ch_1 map[] invalid=true {"cost":{"usd_cents":"1500"},"provider_ref":"ch_1"}`},
		{200, `{"id":"ch_1","amount":null}`, `outcomes[0] succeeded completed ch_1 map[] invalid=true {"cost":{"usd_cents":null},"provider_ref":"ch_1"}`},
		{200, `{"id":"ch_1"}`, `outcomes[0] succeeded completed ch_1 map[] invalid=true {"cost":{"usd_cents":null},"provider_ref":"ch_1"}`},
		{200, `{"id":"ch_1","amount":"` + strings.Repeat("9", 200) + `"}`, `outcomes[0] succeeded completed ch_1 map[] invalid=true {"cost":{"usd_cents":null},"provider_ref":"ch_1"}`},
		{200, `{"id":"s3cr3t-token","amount":"x s3cr3t-token"}`, `outcomes[0] succeeded completed [secret CHARGE_TOKEN] map[] invalid=true {"cost":{"usd_cents":"x [secret CHARGE_TOKEN]"},"provider_ref":"[secret CHARGE_TOKEN]"}`},
		{200, `{"amount":1500}`, `unknown`},
		{200, `{"id":["ch_1"],"amount":1500}`, `unknown`},
		{200, `{"id":"` + strings.Repeat("r", maxRef+1) + `","amount":1500}`, `unknown`},
		{200, `not json`, `unknown`},
		{200, ``, `unknown`},
		// A number out of range is no cost, and loses nothing else that the answer proves.
		{200, `{"id":"ch_1","amount":1e300}`, `outcomes[0] succeeded completed ch_1 map[] invalid=true {"cost":{"usd_cents":"1e+300"},"provider_ref":"ch_1"}`},
		{200, `{"id":"ch_1","amount":5,"trace":18446744073709551615}`, `outcomes[0] succeeded completed ch_1 map[usd_cents:5] invalid=false {"cost":{"usd_cents":5},"provider_ref":"ch_1"}`},
		{200, `{"id":"ch_1","id":"ch_2","amount":1}`, `unknown`},
		{402, `anything`, `outcomes[1] failed   map[usd_cents:0] invalid=false {"cost":{"usd_cents":0}}`},
		{400, ``, `outcomes[2] no_effect   map[] invalid=false`},
		{500, `{"id":"ch_1","amount":1500}`, `unknown`},
		{0, ``, `unknown`},
	}
	for _, tc := range cases {
		if got := show(c.Classify(Response{Status: tc.status, Body: []byte(tc.body)}, input(t))); got != tc.want {
			t.Errorf("%d %.80s:\n got %s\nwant %s", tc.status, tc.body, got, tc.want)
		}
	}
}

// A cost of 1e300 or 2^53 that arrives as a number CEL can hold is still none.
func TestClassifyComputedCost(t *testing.T) {
	for expression, valid := range map[string]bool{
		"double(response.json.n) * 1e300": false, "9007199254740991 + response.json.n": false, "response.json.n / 0": false,
		"0.0 / 0.0": false, "response.json.n": true, "double(response.json.n)": true,
	} {
		c := mustCompile(t, minimal("outcomes:\n  - {when: true, outcome: failed, cost: {calls: '"+expression+"'}}\n"))
		v, ok := c.Classify(Response{Body: []byte(`{"n":3}`)}, Input{})
		if !ok || v.CostInvalid == valid || v.Outcome != events.OutcomeFailed {
			t.Errorf("%s: got %+v, %v", expression, v, ok)
		}
	}
}

func TestClassifySees(t *testing.T) {
	for _, when := range []string{
		`response.headers["x-request"] == "r1"`, `"x-none" in response.headers == false`, `response.text.contains("hello")`,
		`payload.account == "acct_1" && resource == "account/acct_1"`, `effect_id == "01E" && idempotency_key == "ek_1"`,
		`response.json == null`, `response.json.missing == 1 || response.status == 7`, `precondition == null`,
	} {
		c := mustCompile(t, minimal("outcomes:\n  - {when: "+quoted(when)+", outcome: partial}\n"))
		r := Response{Status: 7, Headers: map[string]string{"x-request": "r1", "x-bad": "\xff"}, Body: []byte("say hello \xff")}
		if v, ok := c.Classify(r, input(t)); !ok || v.Outcome != events.OutcomePartial || v.Means != "" {
			t.Errorf("%s: got %+v, %v", when, v, ok)
		}
	}
	for _, when := range []string{`response.json.a == 1`, `response.headers["x-none"] == ""`, `response.json`, `response.status / 0 == 1`, `int(response.text) == 1`} {
		c := mustCompile(t, minimal("outcomes:\n  - {when: "+quoted(when)+", outcome: succeeded}\n"))
		if v, ok := c.Classify(Response{Status: 7, Body: []byte("x")}, input(t)); ok {
			t.Errorf("%s: got %+v, want no match", when, v)
		}
	}
}

func TestClassifyQuery(t *testing.T) {
	c := mustCompile(t, chargeText(t))
	cases := []struct {
		status int64
		body   string
		want   string
	}{
		{200, `{"items":[{"id":"ch_9"}]}`, `reconcile.rules[0] succeeded completed ch_9 map[] invalid=false {"provider_ref":"ch_9"}`},
		{200, `{"items":[]}`, `not found by reconcile.rules[1]`},
		{200, `{"items":[{}]}`, `not found by reconcile.rules[1]`},
		{500, `{"items":[]}`, `unknown`},
	}
	for _, tc := range cases {
		v, ok := c.ClassifyQuery(Response{Status: tc.status, Body: []byte(tc.body)}, input(t))
		got := show(v, ok)
		if v.NotFound {
			got = "not found by " + v.Rule
			if v.Outcome != events.OutcomeUnknown || v.Cost != nil {
				t.Errorf("not found proves %+v", v)
			}
		}
		if got != tc.want {
			t.Errorf("%d %s: got %s, want %s", tc.status, tc.body, got, tc.want)
		}
	}
	if _, ok := mustCompile(t, minimal("")).ClassifyQuery(Response{Status: 200}, Input{}); ok {
		t.Error("a contract without rules classifies")
	}
}

// A second request that is refused proves nothing about the first.
func TestClassifyResubmit(t *testing.T) {
	c := mustCompile(t, chargeText(t))
	if v, ok := c.ClassifyResubmit(Response{Status: 400}, input(t)); ok {
		t.Errorf("got %+v", v)
	}
	if v, ok := c.ClassifyResubmit(Response{Status: 402}, input(t)); !ok || v.Outcome != events.OutcomeFailed {
		t.Errorf("got %+v, %v", v, ok)
	}
	own := mustCompile(t, edited(t, "resubmit_same_key: false ", "resubmit_same_key: true\n  resubmit_rules: [{when: response.status == 208, outcome: succeeded, means: accepted}]\n"))
	if v, ok := own.ClassifyResubmit(Response{Status: 208}, input(t)); !ok || v.Rule != "reconcile.resubmit_rules[0]" || v.Means != events.MeansAccepted {
		t.Errorf("got %+v, %v", v, ok)
	}
	if v, ok := own.ClassifyResubmit(Response{Status: 402}, input(t)); ok {
		t.Errorf("own rules fall back to outcomes: %+v", v)
	}
}

// A message that is not an amount cannot make named evidence grow.
func TestNamedIsBounded(t *testing.T) {
	costs := []string{}
	for i := range maxUnits {
		costs = append(costs, fmt.Sprintf("unit%d: response.json.x", i))
	}
	c := mustCompile(t, minimal("outcomes:\n  - {when: true, outcome: succeeded, provider_ref: response.json.r, cost: {"+strings.Join(costs, ", ")+"}}\n"))
	body := fmt.Sprintf(`{"x":%q,"r":%q}`, strings.Repeat("\u0001", maxInvalid), strings.Repeat("\u0001", maxRef))
	v, ok := c.Classify(Response{Body: []byte(strings.ReplaceAll(body, `\x01`, `\u0001`))}, Input{})
	if !ok || !v.CostInvalid || len(v.Named) > maxNamed {
		t.Errorf("got %v, %d bytes", ok, len(v.Named))
	}
}
