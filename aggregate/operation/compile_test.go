package operation

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/effectd/effectd/events"
)

// chargeText is the example contract of SPEC 13, as written there.
func chargeText(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile("testdata/charge.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// edited is the example with one part replaced.
func edited(t testing.TB, before, after string) string {
	t.Helper()
	text := chargeText(t)
	if strings.Count(text, before) != 1 {
		t.Fatalf("%q stands %d times in the example", before, strings.Count(text, before))
	}
	return strings.Replace(text, before, after, 1)
}

func mustCompile(t testing.TB, text string) *Contract {
	t.Helper()
	c, err := Compile("charge.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustPayload(t testing.TB, text string) Payload {
	t.Helper()
	raw, err := events.Canonicalize([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := ParsePayload(raw)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCompileExample(t *testing.T) {
	c := mustCompile(t, chargeText(t))
	if c.Name != "charge" || c.Version != 1 || c.Kind != KindHTTP || c.Payload != PayloadPlain {
		t.Errorf("got %s %d %s %s", c.Name, c.Version, c.Kind, c.Payload)
	}
	if c.Expires != 10*time.Minute || c.Timeout != 2*time.Second || c.Concurrency != 32 {
		t.Errorf("got %s %s %d", c.Expires, c.Timeout, c.Concurrency)
	}
	if !reflect.DeepEqual(c.Units, []events.Unit{"usd_cents"}) || !reflect.DeepEqual(c.Secrets, []string{"CHARGE_TOKEN"}) {
		t.Errorf("got %v %v", c.Units, c.Secrets)
	}
	if got := *c.Reconcile; !got.Query || got.SettlingWindow != 5*time.Second || got.ResubmitSameKey || got.Auto || got.NotFoundIsConclusive {
		t.Errorf("got %+v", got)
	}
	if got := *c.Idempotency; got.Retention != 24*time.Hour || got.Scope != "account" || !got.Concurrent || !got.MismatchRejected {
		t.Errorf("got %+v", got)
	}
	want := map[string]bool{"query": true, "resubmit_same_key": false, "precondition": true, "idempotency": true, "preview": false}
	if got := c.Supports(); !reflect.DeepEqual(got, want) {
		t.Errorf("supports %v", got)
	}
	if got := c.Adapter(); got != (events.Adapter{Kind: "http", Build: "http/1"}) {
		t.Errorf("adapter %v", got)
	}
}

// O1: the digest is of the document, not of its layout, and it does not move
// from one program version to the next.
func TestDigest(t *testing.T) {
	const want = "6999bb6ffcc63e8847eccd06864c083933a2a825150d5c7d0294640eb1a5cd0d"
	text := chargeText(t)
	if got := mustCompile(t, text).Digest; got != want {
		t.Errorf("digest %s", got)
	}
	relaid := strings.Replace(text, "precondition: {header: If-Match, from: precondition.etag}",
		"precondition:\n  from: 'precondition.etag' # the same\n  header: \"If-Match\"", 1)
	if got := mustCompile(t, "# a comment\n"+relaid).Digest; got != want {
		t.Errorf("layout changed the digest to %s", got)
	}
	if got := mustCompile(t, strings.Replace(text, "minimum: 1", "minimum: 2", 1)).Digest; got == want {
		t.Error("a changed contract has the same digest")
	}
}

func TestDefaults(t *testing.T) {
	c := mustCompile(t, minimal(""))
	if c.Expires != DefaultExpires || c.Timeout != DefaultTimeout || c.Concurrency != DefaultConcurrency || c.Payload != PayloadPlain {
		t.Errorf("got %s %s %d %s", c.Expires, c.Timeout, c.Concurrency, c.Payload)
	}
	for name, on := range c.Supports() {
		if on {
			t.Errorf("%s is supported without being declared", name)
		}
	}
	if bound, err := c.Bound(mustPayload(t, "{}")); err != nil || len(bound) != 0 {
		t.Errorf("bound %v, %v", bound, err)
	}
}

// minimal is the least contract there is, with more of it at the end.
func minimal(more string) string {
	return "name: ping\nversion: 1\ninput: {type: object}\nresource: ping\nadapter:\n  kind: http\n  method: POST\n  url: http://localhost/ping\n" + more
}

func TestOtherKinds(t *testing.T) {
	head := "name: job\nversion: 1\ninput: {type: object}\nresource: job\nadapter:\n"
	sum := strings.Repeat("0a", 32)
	cases := map[string]string{
		KindNATS: head + "  kind: nats\noutcomes:\n  - {when: response.json.ok == true, outcome: succeeded}\n",
		KindExec: head + "  kind: exec\n  argv: [/usr/bin/job, --now]\n  sha256: " + sum + "\noutcomes:\n  - {when: response.status == 0, outcome: succeeded}\n",
		KindFile: head + "  kind: file\n  root: /srv/out\n  path: report.json\n  mode: 0600\nprecondition: {from: precondition.sha256}\n",
	}
	for kind, text := range cases {
		c := mustCompile(t, text)
		if c.Kind != kind || c.Adapter().Build != kind+"/1" {
			t.Errorf("%s: got %s, %v", kind, c.Kind, c.Adapter())
		}
	}
	if exec := mustCompile(t, cases[KindExec]).Exec; exec.SHA256 != events.Digest(sum) || exec.Argv[1] != "--now" {
		t.Errorf("got %+v", exec)
	}
}

// O2: one fault, where it is.
func TestFaults(t *testing.T) {
	cases := []struct {
		name          string
		before, after string // in the example
		line          int
		key           string
		says          string
	}{
		{"unknown key", "timeout: 2s ", "timeuot: 2s ", 13, "timeuot", "unknown key"},
		{"unknown key below", "method: POST", "method: POST\n  retries: 3", 19, "adapter.retries", "unknown key"},
		{"unknown key in a rule", "outcome: no_effect", "outcome: no_effect, retry: true", 28, "outcomes[2].retry", "unknown key"},
		{"unknown key in query", "{method: GET, url:", "{method: GET, retries: 1, url:", 30, "reconcile.query.retries", "unknown key"},
		{"unknown schema keyword", "minimum: 1", "minimun: 1", 8, "input.properties.amount.minimun", "unknown JSON Schema keyword"},
		{"duplicate key", "payload: plain ", "version: 2 ", 15, "version", "duplicate"},
		{"duplicate nested key", "method: POST", "method: POST\n  kind: http", 19, "adapter.kind", "duplicate"},
		{"duplicate flow key", "{header: If-Match,", "{header: If-Match, from: precondition.x,", 23, "precondition.from", "duplicate"},
		{"missing name", "name: charge ", "#", 1, "name", "missing"},
		{"missing adapter key", "  method: POST\n", "", 16, "adapter.method", "missing"},
		{"missing when", `when: "response.status in [200, 201]", `, "", 26, "outcomes[0].when", "missing"},
		{"missing outcome", "when: response.status == 400, outcome: no_effect", "when: response.status == 400", 28, "outcomes[2].outcome", "missing"},
		{"missing from", "header: If-Match, from: precondition.etag", "header: If-Match", 23, "precondition.from", "missing"},
		{"bad token", "name: charge ", "name: Charge/All ", 1, "name", "a-z"},
		{"reserved token", "name: charge ", "name: _ ", 1, "name", "a-z"},
		{"long token", "name: charge ", "name: " + strings.Repeat("a", 65) + " ", 1, "name", "64"},
		{"text for integer", "version: 1", "version: one", 2, "version", "want an integer"},
		{"version 0", "version: 1", "version: 0", 2, "version", "want 1 to"},
		{"version fraction", "version: 1", "version: 1.5", 2, "version", "want an integer"},
		{"version huge", "version: 1", "version: 9007199254740992", 2, "version", "2^53"},
		{"nothing for a mapping", "cost: {usd_cents: payload.amount}  ", "cost:  ", 11, "cost", "got nothing"},
		{"list for text", "description: Charge a card account.", "description: [a]", 3, "description", "want text, got a list"},
		{"bad duration", "expires: 10m", "expires: 10 minutes", 12, "expires", "duration"},
		{"number for duration", "expires: 10m", "expires: 600", 12, "expires", "duration"},
		{"duration too long", "expires: 10m", "expires: 721h", 12, "expires", "720h"},
		{"negative duration", "expires: 10m", "expires: -1m", 12, "expires", "want"},
		{"timeout too short", "timeout: 2s", "timeout: 1us", 13, "timeout", "want"},
		{"timeout too long", "timeout: 2s", "timeout: 11m", 13, "timeout", "want"},
		{"concurrency 0", "concurrency: 32", "concurrency: 0", 14, "concurrency", "1 to 1024"},
		{"concurrency large", "concurrency: 32", "concurrency: 1025", 14, "concurrency", "1 to 1024"},
		{"bad payload", "payload: plain", "payload: secret", 15, "payload", "plain, protected"},
		{"bad kind", "kind: http ", "kind: smtp ", 17, "adapter.kind", "http, nats, exec, file"},
		{"bad method", "method: POST", "method: post", 18, "adapter.method", "one of"},
		{"boolean as text", "auto: false", `auto: "false"`, 37, "reconcile.auto", "true or false"},
		{"bad schema type", "{type: string}", "{type: strng}", 8, "input.properties.account.type", "bad JSON Schema"},
		{"bad schema value", "minimum: 1", "minimum: one", 8, "input.properties.amount.minimum", "want number"},
		{"bad pattern", "{type: string}", `{type: string, pattern: "(("}`, 8, "input.properties.account.pattern", "regular expression"},
		{"remote ref", "{type: string}", `{$ref: "http://localhost/x"}`, 8, "input.properties.account.$ref", "into this schema"},
		{"dangling ref", "{type: string}", `{$ref: "#/$defs/nope"}`, 4, "input", "not found"},
		{"old dialect", "type: object", `$schema: http://json-schema.org/draft-07/schema#`, 5, "input.$schema", "2020-12"},
		{"exposes what cannot be", "exposes: [account, amount]", "exposes: [account, amount, memo]", 10, "exposes[2]", "no property"},
		{"exposes twice", "exposes: [account, amount]", "exposes: [account, amount, account]", 10, "exposes[2]", "twice"},
		{"bad CEL", "cost: {usd_cents: payload.amount}", `cost: {usd_cents: "payload."}`, 11, "cost.usd_cents", "CEL"},
		{"unknown variable", "cost: {usd_cents: payload.amount}", "cost: {usd_cents: amount}", 11, "cost.usd_cents", "undeclared"},
		{"misspelled response", "when: response.status == 402", "when: response.statu == 402", 27, "outcomes[1].when", "undeclared"},
		{"answer in a bound", "cost: {usd_cents: payload.amount}", "cost: {usd_cents: response.status}", 11, "cost.usd_cents", "undeclared"},
		{"cost is text", "cost: {usd_cents: payload.amount}", `cost: {usd_cents: "'5'"}`, 11, "cost.usd_cents", "gives string"},
		{"when is no boolean", "when: response.status == 402", "when: response.status", 27, "outcomes[1].when", "gives int"},
		{"clock", "when: response.status == 402", `when: "timestamp('2020-01-01T00:00:00Z').getHours() == 1"`, 27, "outcomes[1].when", "getHours"},
		{"swelling replace", "when: response.status == 402", `when: "response.text.replace('a', response.text) == ''"`, 27, "outcomes[1].when", "constant"},
		{"swelling join", "when: response.status == 402", `when: "response.text.split('').join(response.text) == ''"`, 27, "outcomes[1].when", "constant"},
		{"reserved unit", "cost: {usd_cents: payload.amount}", `cost: {effects: "1"}`, 11, "cost.effects", "ledger itself"},
		{"bad unit", "cost: {usd_cents: payload.amount}", "cost: {USD: payload.amount}", 11, "cost.USD", "a-z"},
		{"reserved unit in a rule", `cost: {usd_cents: "0"}`, `cost: {effects: "0"}`, 27, "outcomes[1].cost.effects", "ledger itself"},
		{"cost of no_effect", "outcome: no_effect", `outcome: no_effect, cost: {usd_cents: "1"}`, 28, "outcomes[2].cost", "costs nothing"},
		{"bad outcome", "outcome: no_effect", "outcome: maybe", 28, "outcomes[2].outcome", "one of"},
		{"bad means", "means: completed", "means: done", 26, "outcomes[0].means", "accepted, completed"},
		{"means of failed", "outcome: failed", "outcome: failed, means: completed", 27, "outcomes[1].means", "succeeded"},
		{"not_found among outcomes", "outcome: no_effect", "outcome: no_effect, not_found: true", 28, "outcomes[2].not_found", "unknown key"},
		{"not_found with an outcome", "not_found: true", "not_found: true, outcome: failed", 33, "reconcile.rules[1].outcome", "not_found"},
		{"not_found false", "not_found: true", "not_found: false", 33, "reconcile.rules[1].outcome", "missing"},
		{"host from the payload", "url: http://127.0.0.1:8099/charges ", `url: "http://${payload.account}/charges" `, 19, "adapter.url", "host is literal"},
		{"host continued", "url: http://127.0.0.1:8099/charges ", `url: "http://127.0.0.1:8099${payload.account}" `, 19, "adapter.url", "host is literal"},
		{"port continued", "url: http://127.0.0.1:8099/charges ", `url: "http://127.0.0.1:80${payload.amount}/charges" `, 19, "adapter.url", "host is literal"},
		{"scheme from the payload", "url: http://127.0.0.1:8099/charges ", `url: "${payload.account}://127.0.0.1/" `, 19, "adapter.url", "literal"},
		{"other scheme", "url: http://127.0.0.1:8099/charges ", "url: file:///etc/passwd ", 19, "adapter.url", "literal http"},
		{"credentials", "url: http://127.0.0.1:8099/charges ", "url: http://a:b@127.0.0.1/charges ", 19, "adapter.url", "credentials"},
		{"fragment", "url: http://127.0.0.1:8099/charges ", "url: http://127.0.0.1/charges#a ", 19, "adapter.url", "fragment"},
		{"no host", "url: http://127.0.0.1:8099/charges ", "url: http:///charges ", 19, "adapter.url", "host"},
		{"bad port", "url: http://127.0.0.1:8099/charges ", "url: http://127.0.0.1:80990/charges ", 19, "adapter.url", "port"},
		{"space in url", "url: http://127.0.0.1:8099/charges ", `url: "http://127.0.0.1:8099/a b" `, 19, "adapter.url", "percent-encode"},
		{"secret in url", "url: http://127.0.0.1:8099/charges ", `url: "http://127.0.0.1:8099/${secret.CHARGE_TOKEN}" `, 19, "adapter.url", "headers and body only"},
		{"secret by index in url", "url: http://127.0.0.1:8099/charges ", `url: "http://127.0.0.1:8099/${secret['CHARGE_TOKEN']}" `, 19, "adapter.url", "headers and body only"},
		{"secret in resource", "resource: account/${payload.account}", "resource: account/${secret.CHARGE_TOKEN}", 9, "resource", "headers and body only"},
		{"secret in a rule", "when: response.status == 402", "when: response.text == secret.CHARGE_TOKEN", 27, "outcomes[1].when", "headers and body only"},
		{"secret in query url", "key=${idempotency_key}", "key=${secret.CHARGE_TOKEN}", 30, "reconcile.query.url", "headers and body only"},
		{"secret undeclared", "Bearer ${secret.CHARGE_TOKEN}", "Bearer ${secret.OTHER}", 20, "adapter.headers.Authorization", "not declared"},
		{"secret computed", "Bearer ${secret.CHARGE_TOKEN}", "Bearer ${secret[payload.account]}", 20, "adapter.headers.Authorization", "secret.NAME"},
		{"secret name", "secrets: [CHARGE_TOKEN]", "secrets: [CHARGE_TOKEN, ../x]", 22, "secrets[1]", "a name such as"},
		{"not exposed in resource", "exposes: [account, amount]", "exposes: [amount]", 9, "resource", "payload.account"},
		{"not exposed in url", "url: http://127.0.0.1:8099/charges ", `url: "http://127.0.0.1:8099/${payload.memo}" `, 19, "adapter.url", "payload.memo"},
		{"not exposed by index", "url: http://127.0.0.1:8099/charges ", `url: "http://127.0.0.1:8099/${payload['memo']}" `, 19, "adapter.url", "payload.memo"},
		{"not exposed in query url", "key=${idempotency_key}", "key=${payload.memo}", 30, "reconcile.query.url", "payload.memo"},
		{"whole payload in url", "url: http://127.0.0.1:8099/charges ", `url: "http://127.0.0.1:8099/${string(payload[payload.account])}" `, 19, "adapter.url", "name the payload fields"},
		{"precondition in url", "url: http://127.0.0.1:8099/charges ", `url: "http://127.0.0.1:8099/${precondition.etag}" `, 19, "adapter.url", "undeclared"},
		{"open template", "resource: account/${payload.account}", "resource: account/${payload.account", 9, "resource", "without its }"},
		{"empty template", "resource: account/${payload.account}", "resource: account/${ }", 9, "resource", "empty ${}"},
		{"list in a template", "resource: account/${payload.account}", "resource: account/${[payload.account]}", 9, "resource", "gives list"},
		{"header name", "headers: {Content-Type: application/json,", `headers: {"Content Type": application/json,`, 20, "adapter.headers.Content Type", "header name"},
		{"header of the connection", "headers: {Content-Type: application/json,", "headers: {Host: example.org,", 20, "adapter.headers.Host", "belongs to the connection"},
		{"header twice", "headers: {Content-Type: application/json,", "headers: {authorization: a,", 20, "adapter.headers.Authorization", "twice"},
		{"header of idempotency", "headers: {Content-Type: application/json,", "headers: {idempotency-key: a,", 24, "idempotency.header", "twice"},
		{"header of precondition", "header: If-Match,", "header: Authorization,", 23, "precondition.header", "twice"},
		{"header with a line break", "headers: {Content-Type: application/json,", `headers: {Content-Type: "a\r\nX: b",`, 20, "adapter.headers.Content-Type", "control character"},
		{"body of GET", "method: POST", "method: GET", 21, "adapter.body", "GET has no body"},
		{"resubmit rules alone", "resubmit_same_key: false ", "resubmit_rules: [] ", 36, "reconcile.resubmit_rules", "needs resubmit_same_key"},
		{"anchor", "description: Charge a card account.", "description: &a text", 3, "description", "anchors"},
		{"tag", "description: Charge a card account.", "description: !!str text", 3, "description", "tags"},
		{"number as key", "{type: string}", "{1: string}", 8, "input.properties.account", "not text"},
		{"malformed", "exposes: [account, amount]", "exposes: [account, amount", 11, "", "must be specified"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			fault := onlyFault(t, edited(t, tc.before, tc.after))
			if fault.Line != tc.line || fault.Key != tc.key || !strings.Contains(fault.Message, tc.says) || fault.File != "charge.yaml" {
				t.Errorf("got  %s\nwant line %d, key %s: …%s…", fault, tc.line, tc.key, tc.says)
			}
		})
	}
}

func onlyFault(t *testing.T, text string) Fault {
	t.Helper()
	_, err := Compile("charge.yaml", []byte(text))
	var faults Faults
	if !errors.As(err, &faults) {
		t.Fatalf("compiled, want a fault (%v)", err)
	}
	if len(faults) != 1 {
		t.Fatalf("%d faults, want one:\n%s", len(faults), err)
	}
	return faults[0]
}

func TestFaultsOfOtherKinds(t *testing.T) {
	head := "name: job\nversion: 1\ninput: {type: object}\nresource: job\nadapter:\n"
	sum := strings.Repeat("0a", 32)
	file := head + "  kind: file\n  root: /srv/out\n"
	exec := head + "  kind: exec\n"
	cases := []struct {
		name, text string
		line       int
		key, says  string
	}{
		{"nats url", head + "  kind: nats\n  url: x\n", 7, "adapter.url", "unknown key"},
		{"nats precondition", head + "  kind: nats\nprecondition: {from: precondition.x}\n", 7, "precondition", "no precondition"},
		{"exec argv missing", exec + "  sha256: " + sum + "\n", 5, "adapter.argv", "missing"},
		{"exec relative", exec + "  argv: [job]\n  sha256: " + sum + "\n", 7, "adapter.argv", "absolute"},
		{"exec template", exec + "  argv: [/bin/job, \"${payload.x}\"]\n  sha256: " + sum + "\n", 7, "adapter.argv[1]", "literal"},
		{"exec digest", exec + "  argv: [/bin/job]\n  sha256: ABC\n", 8, "adapter.sha256", "64"},
		{"exec header", exec + "  argv: [/bin/job]\n  sha256: " + sum + "\nidempotency: {header: X}\n", 9, "idempotency.header", "unknown key"},
		{"file root relative", head + "  kind: file\n  root: srv\n  path: a\n", 7, "adapter.root", "absolute"},
		{"file root unclean", head + "  kind: file\n  root: /srv/../etc\n  path: a\n", 7, "adapter.root", "clean"},
		{"file root /", head + "  kind: file\n  root: /\n  path: a\n", 7, "adapter.root", "directory"},
		{"file path absolute", file + "  path: /etc/passwd\n", 8, "adapter.path", "relative"},
		{"file path up", file + "  path: ../passwd\n", 8, "adapter.path", "relative"},
		{"file path unexposed", file + "  path: \"${payload.name}\"\n", 8, "adapter.path", "exposes"},
		{"file secret", file + "  path: a\n  content: secret.X\nsecrets: [X]\n", 9, "adapter.content", "headers and body only"},
		{"file mode", file + "  path: a\n  mode: rwx\n", 9, "adapter.mode", "octal"},
		{"file setuid", file + "  path: a\n  mode: 04755\n", 9, "adapter.mode", "octal"},
		{"file outcomes", file + "  path: a\noutcomes: []\n", 9, "outcomes", "itself"},
		{"file header", file + "  path: a\nprecondition: {header: If-Match, from: precondition.x}\n", 9, "precondition.header", "unknown key"},
		{"file idempotency", file + "  path: a\nidempotency: {scope: a}\n", 9, "idempotency", "no idempotency"},
		{"resubmission uncovered", minimal("idempotency: {scope: a, retention: 1h, concurrent: true}\nreconcile: {resubmit_same_key: true}\n"), 10, "reconcile.resubmit_same_key", "mismatch_rejected"},
		{"resubmission without retention", minimal("idempotency: {scope: a, concurrent: true, mismatch_rejected: true}\nreconcile: {resubmit_same_key: true}\n"), 10, "reconcile.resubmit_same_key", "retention"},
		{"resubmission without idempotency", minimal("reconcile: {resubmit_same_key: true}\n"), 9, "reconcile.resubmit_same_key", "idempotency"},
		{"rules without query", minimal("reconcile: {rules: [{when: true, not_found: true}]}\n"), 9, "reconcile.rules", "query"},
		{"query without rules", minimal("reconcile:\n  query: {url: \"http://localhost/\"}\n"), 9, "reconcile.rules", "missing"},
		{"auto without query", minimal("reconcile: {auto: true}\n"), 9, "reconcile.auto", "query"},
		{"conclusive without query", minimal("reconcile: {not_found_is_conclusive: true}\n"), 9, "reconcile.not_found_is_conclusive", "query"},
		{"preview states nothing", minimal("preview: {query: {url: \"http://localhost/\"}, show: response.json, guarantees: none}\n"), 9, "preview.checked_again", "missing"},
		{"two documents", minimal("---\nname: x\n"), 10, "", "second document"},
		{"empty file", "# nothing\n", 1, "", "no contract"},
		{"list", "- a\n", 1, "", "want a mapping"},
		{"not UTF-8", "name: \xff\n", 1, "", "UTF-8"},
		{"too long", "#" + strings.Repeat("x", maxText), 1, "", "longer than"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			fault := onlyFault(t, tc.text)
			if fault.Line != tc.line || fault.Key != tc.key || !strings.Contains(fault.Message, tc.says) {
				t.Errorf("got  %s\nwant line %d, key %s: …%s…", fault, tc.line, tc.key, tc.says)
			}
		})
	}
}

// O2: all faults of a text at once, in its order.
func TestAllFaultsAtOnce(t *testing.T) {
	text := edited(t, "version: 1", "version: one")
	text = strings.Replace(text, "timeout: 2s", "timeout: soon", 1)
	text = strings.Replace(text, "method: POST", "method: SEND", 1)
	text = strings.Replace(text, "response.status == 402", "response.status = 402", 1)
	_, err := Compile("charge.yaml", []byte(text))
	var faults Faults
	if !errors.As(err, &faults) {
		t.Fatal(err)
	}
	var lines []int
	for _, f := range faults {
		lines = append(lines, f.Line)
	}
	if !reflect.DeepEqual(lines, []int{2, 13, 18, 27}) {
		t.Errorf("got lines %v:\n%s", lines, err)
	}
	if first := strings.SplitN(err.Error(), "\n", 2)[0]; first != "charge.yaml:2:10: version: want an integer, got text" {
		t.Errorf("got %q", first)
	}
}

func FuzzCompile(f *testing.F) {
	f.Add(chargeText(f))
	f.Add(minimal("reconcile: {resubmit_same_key: true}\n"))
	f.Add("a: [")
	f.Add("? a\n: b")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Compile("fuzz.yaml", []byte(text))
		if (c == nil) == (err == nil) {
			t.Fatalf("contract %v, error %v", c, err)
		}
		if err != nil {
			return
		}
		again, err := Compile("other.yaml", []byte(text))
		if err != nil || again.Digest != c.Digest {
			t.Fatalf("O1: digest %s became %s (%v)", c.Digest, again.Digest, err)
		}
	})
}
