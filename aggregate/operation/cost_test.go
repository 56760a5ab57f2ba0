package operation

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/effectd/effectd/events"
)

// O5: a bound is an integer from 0 to 2^53−1, or an error that names the unit
// and not the value.
func TestBound(t *testing.T) {
	const refused = -1
	cases := []struct {
		expression, payload string
		want                int64
	}{
		{`payload.a`, `{"a": 5}`, 5},
		{`payload.a`, `{"a": 0}`, 0},
		{`payload.a`, `{"a": -0}`, 0},
		{`payload.a`, `{"a": 5.0}`, 5},
		{`payload.a`, `{"a": 5e2}`, 500},
		{`payload.a`, `{"a": 9007199254740991}`, 9007199254740991},
		{`payload.a + 1`, `{"a": 5}`, 6},
		{`payload.a * 2`, `{"a": 5}`, 10},
		{`payload.a / 2`, `{"a": 5}`, 2},
		{`payload.a % 2`, `{"a": 5}`, 1},
		{`payload.a * 1.5`, `{"a": 4}`, refused}, // CEL does not mix integers and doubles
		{`double(payload.a) * 1.5`, `{"a": 4}`, 6},
		{`double(payload.a) * 1.5`, `{"a": 5}`, refused},
		{`int(payload.a * 100.0)`, `{"a": 1.25}`, 125},
		{`uint(payload.a)`, `{"a": 5}`, 5},
		{`0`, `{}`, 0},
		{`7`, `{}`, 7},
		{`size(payload.items) * 10`, `{"items": [1, 2, 3]}`, 30},
		{`payload.items.map(i, i.n).size()`, `{"items": [{"n": 1}]}`, 1},
		{`has(payload.a) ? payload.a : 100`, `{}`, 100},
		{`payload.a`, `{"a": -5}`, refused},
		{`payload.a`, `{"a": 1.5}`, refused},
		{`payload.a`, `{"a": "5"}`, refused},
		{`payload.a`, `{"a": null}`, refused},
		{`payload.a`, `{"a": true}`, refused},
		{`payload.a`, `{"a": [5]}`, refused},
		{`payload.a`, `{}`, refused},
		{`payload.a`, `[]`, refused},
		{`payload.a`, `null`, refused},
		{`payload.a - 10`, `{"a": 5}`, refused},
		{`payload.a * 2`, `{"a": 9007199254740991}`, refused},
		{`payload.a * 9007199254740991`, `{"a": 9007199254740991}`, refused}, // overflow
		{`10 / payload.a`, `{"a": 0}`, refused},
		{`10 % payload.a`, `{"a": 0}`, refused},
		{`10.0 / payload.a`, `{"a": 0.5}`, 20},
		{`10.0 / double(payload.a)`, `{"a": 0}`, refused}, // infinite
		{`0.0 / double(payload.a)`, `{"a": 0}`, refused},  // not a number
		{`1e300`, `{}`, refused},
		{`-1.0 * double(payload.a)`, `{"a": 0}`, 0},
		{`9007199254740992`, `{}`, refused},
		{`18446744073709551615u`, `{}`, refused},
		{`payload`, `5`, 5},
		{`payload`, `{"a": 5}`, refused},
	}
	for _, tc := range cases {
		t.Run(tc.expression+" of "+tc.payload, func(t *testing.T) {
			c := mustCompile(t, minimal(fmt.Sprintf("cost: {usd_cents: %s}\n", quoted(tc.expression))))
			got, err := c.Bound(mustPayload(t, tc.payload))
			if tc.want == refused {
				if !errors.Is(err, ErrUnbounded) || !strings.HasPrefix(err.Error(), "cost.usd_cents: ") {
					t.Errorf("got %v, %v", got, err)
				}
				return
			}
			if err != nil || got["usd_cents"] != tc.want {
				t.Errorf("got %v, %v; want %d", got, err, tc.want)
			}
		})
	}
}

// quoted puts an expression in YAML quotes.
func quoted(expression string) string {
	return "'" + strings.ReplaceAll(expression, "'", "''") + "'"
}

func TestBoundOfManyUnits(t *testing.T) {
	c := mustCompile(t, minimal("cost: {usd_cents: payload.a, calls: 1}\n"))
	if got := fmt.Sprint(c.Units); got != "[calls usd_cents]" {
		t.Errorf("units %s", got)
	}
	got, err := c.Bound(mustPayload(t, `{"a": 3}`))
	if want := (events.Amounts{"calls": 1, "usd_cents": 3}); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, %v", got, err)
	}
}

// O7: whatever is written or sent, an evaluation ends soon and small.
func TestEvaluationIsBounded(t *testing.T) {
	big := `{"items": [` + strings.TrimSuffix(strings.Repeat("1,", 5000), ",") + `], "text": "` + strings.Repeat("a", 30000) + `"}`
	p := mustPayload(t, big)
	for _, expression := range []string{
		`payload.items.map(a, payload.items.map(b, payload.items.map(c, a + b + c).size()).size()).size()`,
		`payload.items.all(a, payload.items.all(b, a == b)) ? 1 : 0`,
		`size(payload.items.map(i, payload.text + payload.text + payload.text + payload.text).join("-"))`,
		`size(payload.text.replace("", "00000000000000000000").replace("0", "00000000000000000000").replace("0", "00000000000000000000"))`,
		`size(payload.text.split("").map(x, payload.text.split("")))`,
		`payload.items.exists(i, payload.text.matches("(a*)*(a*)*b")) ? 1 : 0`,
		`size(payload.items.map(i, payload.text.upperAscii() + payload.text.lowerAscii()))`,
		`size("%s%s%s%s%s%s%s%s".format([payload.text, payload.text, payload.text, payload.text, payload.text, payload.text, payload.items, payload.items]).split("").map(x, payload.items))`,
	} {
		c := mustCompile(t, minimal("cost: {usd_cents: "+quoted(expression)+"}\n"))
		if got, err := c.Bound(p); !errors.Is(err, ErrUnbounded) {
			t.Errorf("%s: got %v, %v; want it cut off", expression, got, err)
		}
	}
}

// O7: maps are walked in the order of their keys, given or written.
func TestMapsAreOrdered(t *testing.T) {
	given := `payload.m.map(k, k).join("")`
	written := `{"h": 1, "b": 1, "d": 1, "a": 1, "g": 1, "c": 1, "f": 1, "e": 1}.map(k, k).join("")`
	nested := `[{"h": 1, "b": 1, "d": 1, "a": 1, "g": 1, "c": 1, "f": 1, "e": 1}].map(m, m.map(k, k).join(""))[0]`
	mixed := `{"b": 1, 2: 1, "a": 1, 1: 1, true: 1}.map(k, string(k)).join("")`
	for expression, want := range map[string]string{given: "abcdefgh", written: "abcdefgh", nested: "abcdefgh", mixed: "true12ab"} {
		c := mustCompile(t, "name: x\nversion: 1\ninput: {}\nresource: x\nadapter: {kind: file, root: /srv, path: a, content: "+quoted(expression)+"}\n")
		for range 50 {
			p := mustPayload(t, `{"m": {"h": 1, "b": 1, "d": 1, "a": 1, "g": 1, "c": 1, "f": 1, "e": 1}}`)
			got, err := c.FileWrite(Input{Payload: p})
			if err != nil || string(got.Content) != want {
				t.Fatalf("%s: got %q, %v", expression, got.Content, err)
			}
		}
	}
}
