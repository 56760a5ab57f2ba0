package operation

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"
)

// attacks are values that try to be more than a value.
var attacks = []string{
	"a", "a/b", "../../admin", "..", ".", "", "%2e%2e", "%2f", "a?x=1", "a#b", "a&key=other", "a=b", "@evil.example", ":80", "//evil.example/",
	"a\r\nX-Evil: 1", "a\nb", "a\x00b", "a\\b", "a b", "a;b", "ä", "\u202egnp", "\u200b", "\ufeff", "${payload.account}", "a+b", "'\"", "a\u0085b", "\x7f",
}

const placesText = `
name: places
version: 1
input: {type: object}
resource: account/${payload.value}/x
exposes: [value]
adapter:
  kind: http
  method: POST
  url: "http://svc.example:8099/a/${payload.value}/b?key=${payload.value}&z=1"
  headers: {X-Value: "v ${payload.value}"}
`

// O3: scheme, host, segments, query keys and header lines stay the contract's.
func TestPlacesHold(t *testing.T) {
	c := mustCompile(t, placesText)
	for _, value := range attacks {
		payload, _ := json.Marshal(map[string]string{"value": value})
		call, err := c.HTTPSend(Input{Payload: mustPayload(t, string(payload))})
		if err != nil {
			if !errors.Is(err, ErrUnsendable) || strings.Contains(err.Error(), "evil") {
				t.Errorf("%q: %v", value, err)
			}
			if strings.Contains("a a/b %2f ä", value) && value != "" && value != "." {
				t.Errorf("%q is refused: %v", value, err)
			}
			continue
		}
		u, err := url.Parse(call.URL)
		if err != nil {
			t.Errorf("%q: %v", value, err)
			continue
		}
		segments := strings.Split(u.EscapedPath(), "/")
		if u.Scheme != "http" || u.Host != "svc.example:8099" || len(segments) != 4 || segments[1] != "a" || segments[3] != "b" || u.Fragment != "" {
			t.Errorf("%q changed the URL to %s", value, call.URL)
		}
		if got, err := url.PathUnescape(segments[2]); err != nil || got != value {
			t.Errorf("%q came out as %q in the path", value, got)
		}
		if q := u.Query(); len(q) != 2 || q.Get("key") != value || q.Get("z") != "1" {
			t.Errorf("%q changed the query to %s", value, u.RawQuery)
		}
		for _, h := range call.Header {
			if strings.ContainsAny(h[1], "\r\n\x00") {
				t.Errorf("%q broke header %s", value, h[0])
			}
		}
		if got := call.Header[0]; got[0] != "X-Value" || got[1] != "v "+value {
			t.Errorf("header %q", got)
		}
	}
}

// O3: a value is one segment of the resource, and policy sees no other.
func TestResourceHolds(t *testing.T) {
	c := mustCompile(t, placesText)
	seen := map[string]string{}
	for _, value := range attacks {
		payload, _ := json.Marshal(map[string]string{"value": value})
		got, err := c.Resource(mustPayload(t, string(payload)))
		refused := value == "" || value == "." || value == ".."
		if refused != (err != nil) {
			t.Errorf("%q: got %q, %v", value, got, err)
		}
		if err != nil {
			continue
		}
		if parts := strings.Split(got, "/"); len(parts) != 3 || parts[0] != "account" || parts[2] != "x" {
			t.Errorf("%q gives %q", value, got)
		}
		for _, r := range got {
			if r < ' ' || r >= 0x7f && r < 0xa1 || r >= 0x2000 && r < 0x2070 || r == 0xfeff {
				t.Errorf("%q gives %q with %U in it", value, got, r)
			}
		}
		if other, twice := seen[got]; twice {
			t.Errorf("%q and %q are the same resource %q", value, other, got)
		}
		seen[got] = value
	}
}

func TestResourceValues(t *testing.T) {
	resource := func(payload string) string {
		got, err := mustCompile(t, placesText).Resource(mustPayload(t, payload))
		if err != nil {
			return err.Error()
		}
		return got
	}
	cases := map[string]string{
		`{"value": 5}`:     "account/5/x",
		`{"value": -5}`:    "account/-5/x",
		`{"value": 1.5}`:   "account/1.5/x",
		`{"value": 1e-7}`:  "account/1e-7/x",
		`{"value": true}`:  "account/true/x",
		`{"value": null}`:  "resource: not text, a number or a boolean",
		`{"value": [1]}`:   "resource: not text, a number or a boolean",
		`{"value": {}}`:    "resource: not text, a number or a boolean",
		`{}`:               "resource: an expression cannot be computed",
		`[]`:               "resource: an expression cannot be computed",
		`{"value": "a b"}`: "account/a b/x",
		`{"value": "` + strings.Repeat("a", maxResource) + `"}`:   "resource: longer than 1024 bytes",
		`{"value": "` + strings.Repeat("a", maxRendered+1) + `"}`: "resource: longer than 8192 bytes",
	}
	for payload, want := range cases {
		if got := resource(payload); got != want {
			t.Errorf("%.40s: got %q, want %q", payload, got, want)
		}
	}
}
