package operation

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/effectd/effectd/events"
)

func TestHTTPSend(t *testing.T) {
	c := mustCompile(t, chargeText(t))
	in := input(t)
	in.Precondition = events.Raw(`{"etag":"\"v1\""}`)
	got, err := c.HTTPSend(in)
	if err != nil {
		t.Fatal(err)
	}
	want := Call{
		Method: "POST", URL: "http://127.0.0.1:8099/charges", Body: []byte(`{"account":"acct_1","amount":1500}`),
		Header: [][2]string{{"Content-Type", "application/json"}, {"Authorization", "Bearer s3cr3t-token"}, {"Idempotency-Key", "ek_1"}, {"If-Match", `"v1"`}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	in.Precondition = nil
	if got, _ := c.HTTPSend(in); len(got.Header) != 3 {
		t.Errorf("without precondition: %v", got.Header)
	}
}

func TestHTTPQuery(t *testing.T) {
	c := mustCompile(t, edited(t, "key=${idempotency_key}", "key=${idempotency_key}&ref=${provider_ref}"))
	in := input(t)
	in.ProviderRef = "ch/1&x"
	got, err := c.HTTPQuery(in)
	want := Call{Method: "GET", URL: "http://127.0.0.1:8099/charges?key=ek_1&ref=ch%2F1%26x"}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := mustCompile(t, minimal("")).HTTPQuery(in); !errors.Is(err, ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}

// What cannot be built is said by key, before anything is sent, without values.
func TestUnsendable(t *testing.T) {
	const text = "name: x\nversion: 1\ninput: {}\nresource: x\nexposes: [a]\nsecrets: [TOKEN]\nadapter:\n  kind: http\n  method: PUT\n  url: \"http://localhost/${payload.a}\"\n  headers: {X-A: \"${payload.b}\", Authorization: \"${secret.TOKEN}\"}\n  body: payload.c\n"
	c := mustCompile(t, text)
	secret := func(value string) func(string) (string, bool) {
		return func(string) (string, bool) { return value, value != "" }
	}
	cases := []struct{ payload, secret, want string }{
		{`{"a":"hunter2","b":"x","c":1}`, "tok", ""},
		{`{"a":"hunter2","b":"x","c":1}`, "", "adapter.headers: request cannot be built: secret missing: TOKEN"},
		{`{"a":"..","b":"x","c":1}`, "tok", `adapter.url: request cannot be built: a segment comes out empty, "." or ".."`},
		{`{"b":"x","c":1}`, "tok", "adapter.url: request cannot be built: an expression cannot be computed"},
		{`{"a":"` + strings.Repeat("a", maxRendered+1) + `","b":"x","c":1}`, "tok", "adapter.url: request cannot be built: longer than 8192 bytes"},
		{`{"a":"a","b":"hunter2\n","c":1}`, "tok", "adapter.headers.X-A: request cannot be built: a control character, which a header cannot hold"},
		{`{"a":"a","b":"x","c":1}`, "tok\n", "adapter.headers.Authorization: request cannot be built: a control character, which a header cannot hold"},
		{`{"a":"a","b":"x"}`, "tok", "adapter.body: request cannot be built: cannot be computed"},
	}
	for _, tc := range cases {
		_, err := c.HTTPSend(Input{Payload: mustPayload(t, tc.payload), Secret: secret(tc.secret)})
		if tc.want == "" {
			if err != nil {
				t.Errorf("%s: %v", tc.payload, err)
			}
			continue
		}
		if err == nil || err.Error() != tc.want || !errors.Is(err, ErrUnsendable) {
			t.Errorf("%.50s: got %v, want %s", tc.payload, err, tc.want)
		}
		if tc.secret == "" && !errors.Is(err, ErrSecretMissing) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := mustCompile(t, minimal("")).FileWrite(Input{}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}

func TestBody(t *testing.T) {
	cases := []struct{ body, want string }{
		{"payload", `{"a":[1,2.5,"x",null,true],"n":5}`},
		{`{"id": effect_id, "n": payload.n + 1, "token": secret.TOKEN, "all": payload.a}`, `{"all":[1,2.5,"x",null,true],"id":"01E","n":6,"token":"tok"}`},
		{`payload.a.map(x, [x])`, `[[1],[2.5],["x"],[null],[true]]`},
		{`b"hi"`, `"aGk="`},
		{`null`, `null`},
		{`{1: 2}`, ""},
		{`9007199254740992`, ""},
		{`1e300`, ""},
		{`{"t": timestamp("2020-01-01T00:00:00Z")}`, ""},
	}
	for _, tc := range cases {
		c := mustCompile(t, strings.Replace(minimal("secrets: [TOKEN]\n"), "  url:", "  body: "+quoted(tc.body)+"\n  url:", 1))
		in := Input{Payload: mustPayload(t, `{"n":5,"a":[1,2.5,"x",null,true]}`), EffectID: "01E", Secret: func(string) (string, bool) { return "tok", true }}
		got, err := c.HTTPSend(in)
		if string(got.Body) != tc.want || (tc.want == "") != (err != nil) {
			t.Errorf("%s: got %s, %v", tc.body, got.Body, err)
		}
		if err == nil && !reflect.DeepEqual(got.Header, [][2]string{{"Content-Type", "application/json"}}) {
			t.Errorf("headers %v", got.Header)
		}
	}
}

func TestCheckPrecondition(t *testing.T) {
	charge := mustCompile(t, chargeText(t))
	file := mustCompile(t, fileText)
	none := mustCompile(t, minimal(""))
	sum := strings.Repeat("0a", 32)
	cases := []struct {
		c        *Contract
		raw      string
		accepted bool
	}{
		{charge, ``, true}, {charge, `null`, true}, {charge, `{"etag":"v1"}`, true},
		{charge, `{"etag":""}`, false}, {charge, `{"etag":null}`, false}, {charge, `{}`, false}, {charge, `"v1"`, false},
		{charge, `{"etag":"a\r\nX: b"}`, false}, {charge, `{"etag":"` + strings.Repeat("v", maxRendered+1) + `"}`, false},
		{file, ``, true}, {file, `{"sha256":"` + sum + `"}`, true}, {file, `{"sha256":"` + strings.ToUpper(sum) + `"}`, false}, {file, `{"sha256":"abc"}`, false},
		{none, ``, true}, {none, `null`, true}, {none, `{"etag":"v1"}`, false},
	}
	for _, tc := range cases {
		err := tc.c.CheckPrecondition(events.Raw(tc.raw))
		if (err == nil) != tc.accepted || err != nil && !errors.Is(err, ErrPrecondition) {
			t.Errorf("%s %.40s: %v", tc.c.Name, tc.raw, err)
		}
	}
}

const fileText = `
name: report
version: 1
input: {type: object}
resource: report/${payload.name}
exposes: [name]
adapter: {kind: file, root: /srv/out, path: "reports/${payload.name}.txt", content: "payload.text + '\\n'", mode: "0600"}
precondition: {from: precondition.sha256}
`

func TestFileWrite(t *testing.T) {
	c := mustCompile(t, fileText)
	write := func(name string) (Write, error) {
		p := mustPayload(t, string(events.CanonicalOf(map[string]any{"name": name, "text": "hello"})))
		return c.FileWrite(Input{Payload: p, Precondition: events.Raw(`{"sha256":"` + strings.Repeat("0a", 32) + `"}`)})
	}
	got, err := write("may")
	want := Write{Root: "/srv/out", Path: "reports/may.txt", Content: []byte("hello\n"), Mode: 0o600, Expected: events.Digest(strings.Repeat("0a", 32))}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, name := range attacks {
		got, err := write(name)
		if err != nil {
			continue
		}
		if parts := strings.Split(got.Path, "/"); len(parts) != 2 || parts[0] != "reports" || !strings.HasSuffix(parts[1], ".txt") || strings.ContainsAny(parts[1], "\x00\n") {
			t.Errorf("%q gives path %q", name, got.Path)
		}
	}
	if _, err := write(strings.Repeat("a", 300)); !errors.Is(err, ErrUnsendable) {
		t.Errorf("got %v", err)
	}
	plain := mustCompile(t, strings.Replace(fileText, `, content: "payload.text + '\\n'"`, "", 1))
	if got, err := plain.FileWrite(Input{Payload: mustPayload(t, `{"name":"x"}`)}); err != nil || string(got.Content) != `{"name":"x"}` || got.Expected != "" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestPreview(t *testing.T) {
	c := mustCompile(t, chargeText(t)+"preview:\n  query: {url: \"http://127.0.0.1:8099/accounts/${payload.account}\", headers: {Authorization: \"Bearer ${secret.CHARGE_TOKEN}\"}}\n  show: '{\"balance\": response.json.balance}'\n  guarantees: nothing; the balance may change\n  checked_again: the service checks the balance\n")
	if !c.Supports()["preview"] {
		t.Error("preview is not supported")
	}
	call, err := c.HTTPPreview(input(t))
	if err != nil || call.URL != "http://127.0.0.1:8099/accounts/acct_1" || call.Method != "GET" {
		t.Errorf("got %+v, %v", call, err)
	}
	if got, err := c.Preview(Response{Body: []byte(`{"balance":7}`)}, input(t)); err != nil || string(got) != `{"balance":7}` {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err := c.Preview(Response{}, input(t)); err == nil {
		t.Error("shows what it did not see")
	}
	if _, err := mustCompile(t, minimal("")).HTTPPreview(Input{}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}

func TestScrub(t *testing.T) {
	c := mustCompile(t, minimal("secrets: [A, AB, SHORT, NONE]\n"))
	secret := func(name string) (string, bool) {
		v, ok := map[string]string{"A": "hunter", "AB": "hunter2", "SHORT": "x"}[name]
		return v, ok
	}
	if got := c.Scrub("x hunter2 hunter hunter22", secret); got != "x [secret AB] [secret A] [secret AB]2" {
		t.Errorf("got %q", got)
	}
	if got := c.Scrub("hunter2", nil); got != "hunter2" {
		t.Errorf("got %q", got)
	}
}
