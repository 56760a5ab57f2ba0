package operation

import (
	"errors"
	"strings"
	"testing"
)

// O8: a violation names the field and never says the value.
func TestValidate(t *testing.T) {
	const schema = `{type: object, required: [account, amount], additionalProperties: false, properties: {account: {type: string, minLength: 2, maxLength: 9, pattern: "^[a-z]+$"}, amount: {type: integer, minimum: 1, maximum: 100}, kind: {enum: [one, two]}, tags: {type: array, maxItems: 2, uniqueItems: true, items: {type: string}}, "a/b": {const: 1}, never: false, either: {anyOf: [{type: integer}, {type: "null"}]}}}`
	text := strings.Replace(minimal(""), "input: {type: object}", "input: "+schema, 1)
	c := mustCompile(t, text)
	cases := []struct{ payload, field, message string }{
		{`{"account": "ab", "amount": 1}`, "", ""},
		{`{"account": "ab", "amount": 1.0, "tags": ["x", "y"], "kind": "two", "a/b": 1, "either": null}`, "", ""},
		{`{"account": "ab"}`, "payload", `missing "amount"`},
		{`{}`, "payload", `missing "account", "amount"`},
		{`{"account": "ab", "amount": 1, "secretz": "hunter2"}`, "payload", `unknown "secretz"`},
		{`{"account": "hunter2", "amount": 1}`, "payload/account", "does not match the pattern"},
		{`{"account": "h", "amount": 1}`, "payload/account", "too short"},
		{`{"account": "hunterhunter", "amount": 1}`, "payload/account", "too long"},
		{`{"account": 5, "amount": 1}`, "payload/account", "want string"},
		{`{"account": "ab", "amount": 0}`, "payload/amount", "below the minimum"},
		{`{"account": "ab", "amount": 101}`, "payload/amount", "above the maximum"},
		{`{"account": "ab", "amount": 1.5}`, "payload/amount", "want integer"},
		{`{"account": "ab", "amount": "1"}`, "payload/amount", "want integer"},
		{`{"account": "ab", "amount": null}`, "payload/amount", "want integer"},
		{`{"account": "ab", "amount": 1, "kind": "hunter2"}`, "payload/kind", "not one of the allowed values"},
		{`{"account": "ab", "amount": 1, "tags": ["a", "b", "c"]}`, "payload/tags", "too long"},
		{`{"account": "ab", "amount": 1, "tags": ["a", "a"]}`, "payload/tags", "does not satisfy uniqueItems"},
		{`{"account": "ab", "amount": 1, "tags": ["a", 2]}`, "payload/tags/1", "want string"},
		{`{"account": "ab", "amount": 1, "a/b": 2}`, "payload/a~1b", "not the required value"},
		{`{"account": "ab", "amount": 1, "never": 2}`, "payload/never", "not allowed"},
		{`{"account": "ab", "amount": 1, "either": "hunter2"}`, "payload/either", "want integer"},
		{`{"account": 5, "amount": "x", "kind": 1, "tags": 1}`, "payload/account", "want string"},
		{`[]`, "payload", "want object"},
		{`null`, "payload", "want object"},
		{`"hunter2"`, "payload", "want object"},
		{`{"account": "ab", "amount": 1, "` + strings.Repeat("n", 999) + `": 1}`, "payload", `unknown "` + strings.Repeat("n", 64) + `…"`},
	}
	for _, tc := range cases {
		for range 5 { // the library walks maps; the answer must not vary
			err := c.Validate(mustPayload(t, tc.payload))
			var v *Violation
			switch {
			case tc.field == "":
				if err != nil {
					t.Fatalf("%s: %v", tc.payload, err)
				}
			case !errors.As(err, &v):
				t.Fatalf("%s: got %v", tc.payload, err)
			case v.Field != tc.field || v.Message != tc.message:
				t.Fatalf("%.60s: got %s: %s; want %s: %s", tc.payload, v.Field, v.Message, tc.field, tc.message)
			case strings.Contains(err.Error(), "hunter"):
				t.Fatalf("the value is in the message: %v", err)
			}
		}
	}
}

// Every misuse of the schema is a fault where it stands, all at once.
func TestSchemaFaults(t *testing.T) {
	text := strings.Replace(minimal(""), "input: {type: object}", `input:
  type: object
  requires: [a]
  properties:
    a: {type: text, minLength: -1}
    b: {items: [1]}
    c: {pattern: "["}
  allOf:
    - {foo: 1}
    - maximum: big`, 1)
	_, err := Compile("x.yaml", []byte(text))
	var faults Faults
	if !errors.As(err, &faults) {
		t.Fatal(err)
	}
	got := []string{}
	for _, f := range faults {
		got = append(got, f.Key)
	}
	if strings.Join(got, " ") != "input.requires input.properties.b.items input.properties.c.pattern input.allOf[0].foo" {
		t.Errorf("got\n%s", err)
	}

	text = strings.Replace(minimal(""), "input: {type: object}", "input:\n  properties:\n    a: {type: text}\n    b: {minLength: -1}\n  allOf:\n    - maximum: big", 1)
	_, err = Compile("x.yaml", []byte(text))
	if !errors.As(err, &faults) || len(faults) != 3 || faults[0].Line != 5 || faults[1].Line != 6 || faults[2].Line != 8 {
		t.Errorf("got\n%s", err)
	}
}

func TestParsePayload(t *testing.T) {
	for _, text := range []string{``, `{`, `{"a":1`, `[1,]`, `1 2`, `{} {}`, `{"a":1}x`, `nul`, `{"a":1,"a":2}`, "\"\xff\"", `99999999999999999999`} {
		if p, err := ParsePayload([]byte(text)); err == nil {
			t.Errorf("%q: got %v", text, p.value)
		}
	}
	p := mustPayload(t, `{"b":[1,2.5,true,null,"x",{}],"a":{"n":-3}}`)
	if string(p.Raw()) != `{"a":{"n":-3},"b":[1,2.5,true,null,"x",{}]}` {
		t.Errorf("raw %s", p.Raw())
	}
	b := p.value.(map[string]any)["b"].([]any)
	if b[0] != int64(1) || b[1] != 2.5 || b[2] != true || b[3] != nil || b[4] != "x" {
		t.Errorf("got %#v", b)
	}
}

func TestExposed(t *testing.T) {
	c := mustCompile(t, chargeText(t))
	got := c.Exposed(mustPayload(t, `{"account":"a","memo":"x"}`))
	if len(got) != 1 || got["account"] != "a" {
		t.Errorf("got %v", got)
	}
	if got := c.Exposed(mustPayload(t, `[1]`)); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}
