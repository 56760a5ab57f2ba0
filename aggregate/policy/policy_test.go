package policy

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/effectd/effectd/events"
)

func mustParse(t testing.TB, text string) *Policy {
	t.Helper()
	p, err := Parse([]byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// charges is what there is to ask for.
var charges = []Operation{{Name: "charge", Exposes: []string{"account", "amount"}, Units: []events.Unit{"usd_cents"}},
	{Name: "mail", Exposes: []string{"to"}}}

// asked is a producer of tenant main who wants to charge 1500.
func asked(changes ...func(*Request)) Request {
	r := Request{
		Action: ActionCommit, Tenant: "main", Principal: "producer", Role: events.RoleProducer, Operation: "charge",
		Context: Context{
			Target: "account/acct_1", Task: "task-1", Version: 1, MaxCost: events.Amounts{"usd_cents": 1500},
			Auth:    events.Auth{Source: "nkey", Strength: "signature"},
			Payload: map[string]any{"account": "acct_1", "amount": int64(1500)},
		},
	}
	for _, change := range changes {
		change(&r)
	}
	return r
}

// The policy of a new ledger does what SPEC 20 says, and no more.
func TestDefault(t *testing.T) {
	p, err := Parse([]byte(Default), []Operation{})
	if err != nil {
		t.Fatal(err)
	}
	may := map[events.Role]string{
		events.RoleProducer: "commit", events.RoleOperator: "observe reconcile settle acknowledge",
		events.RoleAuditor: "observe", events.RoleApprover: "observe", events.RoleExecutor: "",
	}
	for role, allowed := range may {
		for _, action := range actions {
			r := asked(func(r *Request) { r.Role, r.Action = role, action })
			want := slices.Contains(strings.Fields(allowed), action)
			if got := p.Decide(r); got.Allow != want || len(got.Errors) > 0 || want != (len(got.Determining) == 1) {
				t.Errorf("%s %s: got %+v", role, action, got)
			}
		}
	}
	if p.Decide(asked(func(r *Request) { r.Tenant = "other" })).Allow {
		t.Error("a producer of another tenant may commit")
	}
}

// The comments of the default policy work when they are taken out.
func TestDefaultComments(t *testing.T) {
	var text strings.Builder
	_, examples, found := strings.Cut(Default, "// To require approval")
	if !found {
		t.Fatal("no examples")
	}
	text.WriteString(Default)
	code := false
	for line := range strings.Lines(examples) {
		line = strings.TrimPrefix(strings.TrimPrefix(line, "//"), " ")
		code = strings.HasPrefix(line, "@id") || code && line != "\n"
		if code {
			text.WriteString(line)
		}
	}
	p, err := Parse([]byte(text.String()), charges)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.named) != 6 {
		t.Errorf("%d policies", len(p.named))
	}
	if got := p.Decide(asked()); got.Allow || !slices.Equal(got.Determining, []string{"charges-need-approval"}) {
		t.Errorf("commit: %+v", got)
	}
	if !p.Decide(asked(func(r *Request) { r.Action = ActionRequestApproval })).Allow {
		t.Error("nobody may ask")
	}
	large := asked(func(r *Request) { r.Operation, r.Context.MaxCost = "other", events.Amounts{"usd_cents": 10001} })
	if p.Decide(large).Allow {
		t.Error("a large cost is committed")
	}
	large.Context.MaxCost = events.Amounts{}
	if got := p.Decide(large); !got.Allow || len(got.Errors) > 0 {
		t.Errorf("no cost: %+v", got)
	}
}

func TestConditions(t *testing.T) {
	const permit = `permit (principal, action, resource) when { `
	hold := []string{
		`principal == Principal::"main/producer"`, `principal in Role::"producer"`, `principal in Tenant::"main"`, `principal is Principal`,
		`action == Action::"commit"`, `action in [Action::"commit", Action::"settle"]`, `resource == Operation::"charge"`, `resource is Operation`,
		`context.target == "account/acct_1"`, `context.target like "account/*"`, `context.task == "task-1"`, `context.version == 1`,
		`context.max_cost.usd_cents == 1500`, `context.auth.source == "nkey" && context.auth.strength == "signature"`,
		`context.payload.account == "acct_1"`, `context.payload.amount + 1 == 1501`, `context.payload.amount < 2000`,
		`context.payload.half.lessThan(decimal("0.51"))`, `context.payload.half == decimal("0.5")`, `context.payload.third == "0.3333333333333333"`,
		`context.payload.three == 3`, `!(context.payload has nothing)`, `context.payload.flag`, `context.payload.tags.contains("a")`,
		`context.payload.tags.containsAll([1, "a", decimal("0.5")])`, `context.payload.deep.er.x == -1`, `context.payload.deep == {"er": {"x": -1}}`,
		`context.payload.huge == "1e+300"`, `context.payload.fine == decimal("0.1234")`, `context.payload.finer == "0.12345"`,
	}
	fail := []string{
		`principal == Principal::"main/other"`, `principal in Role::"operator"`, `principal in Tenant::"other"`, `action == Action::"settle"`,
		`resource == Operation::"other"`, `context.max_cost has calls`, `context.payload has secret`, `context.payload.amount == "1500"`,
	}
	r := asked(func(r *Request) {
		for name, v := range map[string]any{"half": 0.5, "third": 1.0 / 3, "three": 3.0, "nothing": nil, "flag": true, "huge": 1e300, "fine": 0.1234, "finer": 0.12345,
			"tags": []any{"a", "a", int64(1), nil, 0.5}, "deep": map[string]any{"er": map[string]any{"x": int64(-1), "n": nil}}} {
			r.Context.Payload[name] = v
		}
	})
	for _, condition := range hold {
		if got := mustParse(t, permit+condition+" };").Decide(r); !got.Allow || len(got.Errors) > 0 {
			t.Errorf("%s: %+v", condition, got)
		}
	}
	for _, condition := range fail {
		if got := mustParse(t, permit+condition+" };").Decide(r); got.Allow || len(got.Errors) > 0 {
			t.Errorf("%s: %+v", condition, got)
		}
	}
}

// P1, P2, P3.
func TestDecisions(t *testing.T) {
	const all = `permit (principal, action, resource);`
	cases := []struct {
		name, text  string
		allow       bool
		determining string
		errors      string
	}{
		{"empty", "", false, "", ""},
		{"comment", "// nothing\n", false, "", ""},
		{"permit", all, true, "policy0", ""},
		{"two permits", all + "\n@id(\"b\")" + all + all, true, "b policy0 policy2", ""},
		{"forbid wins", all + `@id("no") forbid (principal, action, resource) when { context.version == 1 };`, false, "no", ""},
		{"forbid unless", all + `forbid (principal, action, resource) unless { context.version == 1 };`, true, "policy0", ""},
		{"permit that fails", `@id("x") permit (principal, action, resource) when { context.payload.none == 1 };`, false, "", "x"},
		{"forbid that fails", all + `@id("x") forbid (principal, action, resource) when { context.payload.none == 1 };`, true, "policy0", "x"},
		{"type error", all + `@id("x") forbid (principal, action, resource) when { context.target < 1 };`, true, "policy0", "x"},
		{"overflow", `@id("x") permit (principal, action, resource) when { context.version * 9223372036854775807 * 2 > 0 };`, false, "", "x"},
	}
	for _, tc := range cases {
		p := mustParse(t, tc.text)
		for range 10 {
			got := p.Decide(asked())
			if got.Allow != tc.allow || strings.Join(got.Determining, " ") != tc.determining || strings.Join(got.Errors, " ") != tc.errors {
				t.Fatalf("%s: got %+v", tc.name, got)
			}
		}
	}
	var none *Policy
	if got := none.Decide(asked()); got.Allow || got.Determining == nil {
		t.Errorf("nil policy: %+v", got)
	}
}

// P4: every fault, with its line.
func TestParseFaults(t *testing.T) {
	cases := []struct{ text, want string }{
		{"permit (principal, action, resource)", "line 1: column 37"},
		{"permit (principal, action, resource);\npermit (principal,\n  action == Action::commit, resource);", "line 3: column 29"},
		{"permit (principal, action, resource) when { foo(1) };", "not a function"},
		{"permit (principal,\n  action == Action::\"comit\", resource);", `line 2: unknown action "comit"`},
		{"permit (principal, action in [Action::\"commit\",\n Action::\"delete\"], resource);", `line 2: unknown action "delete"`},
		{"permit (principal, action, resource)\nwhen {\n  action == Action::\"x\" };", `line 3: unknown action "x"`},
		{"permit (principal, action, resource)\nwhen {\n  [action].contains(Action::\"x\") };", `line 3: unknown action "x"`},
		{"permit (principal, action, resource)\nwhen {\n  if action == Action\n :: \"x\" then true else false };", `line 1: unknown action "x"`},
		{"permit (principal in Role::\"admin\", action, resource);", `line 1: unknown role "admin"`},
		{"permit (principal, action, resource == Operation::\"chrage\");", `line 1: unknown operation "chrage"`},
		{"permit (principal, action, resource)\nunless { resource == Operation::\"chrage\" };", `line 2: unknown operation "chrage"`},
		{"permit (principal == User::\"bob\", action, resource);", `line 1: unknown entity type User`},
		{"permit (principal is User, action, resource);", `line 1: unknown entity type User`},
		{"permit (principal, action, resource) when { principal is User in Role::\"producer\" };", `unknown entity type User`},
		{"permit (principal == Principal::\"bob\", action, resource);", `no principal can be named "bob"`},
		{"permit (principal in Tenant::\"Main\", action, resource);", `no tenant can be named "Main"`},
		{"@id(\"a\") permit (principal, action, resource);\n@id(\"a\") forbid (principal, action, resource);", `line 2: a second policy with the id "a"`},
		{"@id(\"policy1\") permit (principal, action, resource);\nforbid (principal, action, resource);", `line 2: a second policy with the id "policy1"`},
		{"@id(\"\") permit (principal, action, resource);", "line 1: want an @id"},
		{strings.Repeat(" ", maxText+1), "longer than"},
		{"permit (principal, action, resource)\nwhen {\n  context.amount > 1 };", `line 3: unknown attribute amount of context; there are target, task, version, max_cost, auth, payload`},
		{"permit (principal, action, resource)\nwhen { context has amount };", `line 2: unknown attribute amount of context`},
		{"permit (principal, action, resource) when { true\n && context[\"amount\"] > 1 };", `line 2: unknown attribute amount of context`},
		{"permit (principal, action, resource) when { context.auth.kind == \"nkey\" };", `unknown attribute kind of context.auth; there are source, strength`},
		{"permit (principal, action, resource) when { context.target.host == \"x\" };", `unknown attribute host of context.target; there are none`},
		{"permit (principal, action, resource)\nwhen { context.payload has amount &&\n context.payload.amuont > 5 };", `line 3: unknown attribute amuont of context.payload; there are account, amount, to`},
		{"permit (principal, action, resource) when { context.max_cost has usd };", `unknown attribute usd of context.max_cost; there are usd_cents`},
		{"permit (principal, action, resource)\nunless { principal.role == \"x\" };", `line 2: unknown attribute role of principal; there are none`},
		{"permit (principal, action, resource) when { resource has owner };", `unknown attribute owner of resource; there are none`},
		{"permit (principal, action, resource) when { principal.hasTag(\"x\") };", `principal has no tags`},
		{"permit (principal, action, resource) when { if context.payload.getTag(\"x\") == 1 then true else false };", `context.payload has no tags`},
		{"permit (principal == Role::\"producer\", action, resource);", `principal == Role::"producer" never holds; want principal in Role::"producer"`},
		{"permit (principal, action, resource)\nwhen { principal == Tenant::\"main\" };", `line 2: principal == Tenant::"main" never holds; want principal in Tenant::"main"`},
		{"permit (principal, action, resource) when { Role::\"auditor\" != principal };", `principal == Role::"auditor" never holds`},
		{"permit (principal, action, resource) when { principal in [Role::\"auditor\", Operation::\"charge\"] };", `principal in Operation::"charge" never holds`},
		{"permit (principal is Role, action, resource);", `principal is Role never holds`},
		{"permit (principal, action, resource) when { resource is Principal };", `resource is Principal never holds`},
		{"permit (principal, action, resource) when { principal is Principal in Action::\"commit\" };", `principal in Action::"commit" never holds`},
		{"permit (principal, action, resource in Tenant::\"main\");", `resource in Tenant::"main" never holds`},
	}
	for _, tc := range cases {
		p, err := Parse([]byte(tc.text), charges)
		if err == nil || p != nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.80q:\n got %v\nwant %s", tc.text, err, tc.want)
		}
	}
	// A proposal that says all this of what exists is none of these.
	good := `permit (principal is Principal in Role::"producer", action, resource in Operation::"charge")
when { context.payload has amount && context.payload.amount > 5 && context.payload["to"] like "*@*" && context.max_cost.usd_cents < 9 && context.auth.source == "nkey"
  && principal in [Role::"producer", Tenant::"main"] && Principal::"main/a" != principal && context.payload.amount.deep == 1 && context.version in [Operation::"mail"] };`
	if _, err := Parse([]byte(good), charges); err != nil {
		t.Error(err)
	}
	// As the log holds it, a text is read whatever the operations are by now; and
	// while there are none, nothing is known of payloads and costs.
	const later = `permit (principal, action, resource == Operation::"gone") when { context.payload.gone == 1 && context.nothing == 2 };`
	if _, err := Parse([]byte(later), nil); err != nil {
		t.Error(err)
	}
	if _, err := Parse([]byte(`permit (principal, action, resource) when { context.payload.soon == 1 && context.max_cost.soon == 1 };`), []Operation{}); err != nil {
		t.Error(err)
	}
	var faults Faults
	_, err := Parse([]byte("permit (principal, action, resource);\npermit (principal, action == Action::\"a\", resource is X);"), nil)
	if !errors.As(err, &faults) || faults.In("policy.cedar").Error() != "policy.cedar:2: unknown action \"a\"; there are "+strings.Join(actions, ", ")+
		"\npolicy.cedar:2: unknown entity type X; there are Principal, Role, Tenant, Operation and Action" {
		t.Errorf("%v", faults.In("policy.cedar"))
	}
	_, err = Parse([]byte("permit (principal, action == Action::\"a\", resource);\npermit (principal, action == Action::\"b\", resource is X);"), nil)
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("not all faults at once: %v", err)
	}
	if _, err := Parse([]byte("permit (principal, action, resource == Operation::\"any\");"), nil); err != nil {
		t.Errorf("without a list of operations: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(Default)
	f.Add(`@id("x") permit (principal is Principal in Role::"producer", action in [Action::"commit"], resource) when { context.payload has a } unless { -1 < 2 };`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse([]byte(text), nil)
		if (p == nil) == (err == nil) {
			t.Fatal(p, err)
		}
		a, b := p.Decide(asked()), p.Decide(asked())
		if a.Allow != b.Allow || !slices.Equal(a.Determining, b.Determining) || !slices.Equal(a.Errors, b.Errors) {
			t.Fatalf("P2: %+v and %+v", a, b)
		}
	})
}

// P2: the logged request is the whole request.
func TestRequestJSON(t *testing.T) {
	r := asked(func(r *Request) {
		r.Context.Payload = map[string]any{"s": "x", "n": int64(5), "half": 0.5, "third": 1.0 / 3, "three": 3.0, "null": nil, "b": true,
			"list": []any{"b", "a", nil}, "deep": map[string]any{"__entity": "x", "n": nil}}
	})
	const want = `{"action":{"id":"commit","type":"Action"},"context":{"auth":{"source":"nkey","strength":"signature"},"max_cost":{"usd_cents":1500},` +
		`"payload":{"b":true,"deep":{"__entity":"x"},"half":{"__extn":{"arg":"0.5","fn":"decimal"}},"list":["b","a"],"n":5,"s":"x","third":"0.3333333333333333","three":3},` +
		`"target":"account/acct_1","task":"task-1","version":1},"parents":[{"id":"producer","type":"Role"},{"id":"main","type":"Tenant"}],` +
		`"principal":{"id":"main/producer","type":"Principal"},"resource":{"id":"charge","type":"Operation"}}`
	if got := string(r.JSON()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := string(Request{}.JSON()); !strings.Contains(got, `"max_cost":{}`) || !strings.Contains(got, `"payload":{}`) {
		t.Errorf("got %s", got)
	}
}

func BenchmarkDecide(b *testing.B) {
	p := mustParse(b, Default)
	r := asked()
	b.ReportAllocs()
	for b.Loop() {
		if !p.Decide(r).Allow {
			b.Fatal("denied")
		}
	}
}

func BenchmarkRequestJSON(b *testing.B) {
	r := asked()
	b.ReportAllocs()
	for b.Loop() {
		r.JSON()
	}
}

// A text made to exhaust the reader is an error like any other.
func TestHostileTexts(t *testing.T) {
	for _, deep := range []string{"(", "[", "!", "-", "{a:", "if ", "principal.a.", "1+", "@a"} {
		text := "permit (principal, action, resource) when { " + strings.Repeat(deep, (maxText-100)/len(deep))
		if _, err := Parse([]byte(text), nil); err == nil {
			t.Errorf("%s: parsed", deep)
		}
	}
	sum := mustParse(t, "permit (principal, action, resource) when { 0"+strings.Repeat("+1", 20000)+" > 0 };")
	if !sum.Decide(asked()).Allow {
		t.Error("a long condition does not hold")
	}
}
