package operation

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// request is one HTTP request of a contract, compiled.
type request struct {
	method       string
	scheme, host string // literal; a rendered URL must have exactly these
	url          *template
	headers      []header
	body         *program // nil: see defaultBody
	defaultBody  bool     // the payload
	contentType  string   // of a body, when the headers do not say
	secrets      []string // that it needs, sorted
}

type header struct {
	name  string
	value *template
}

// httpSend reads the adapter of kind http.
func (c *compiler) httpSend(n *node, l *language, exposes []string, taken *headerNames) *request {
	s := c.section(n, "kind", "method", "url", "headers", "body")
	out := c.request(s, l, seeInTarget, seeInContent|seeSecrets, exposes, taken)
	out.method = c.oneOf(s.need("method"), "POST", "PUT", "PATCH", "DELETE", "GET")
	out.defaultBody = out.method != "GET"
	c.bodyless(s, out)
	return out
}

// httpRead reads a query or preview.
func (c *compiler) httpRead(n *node, l *language, s sight, exposes []string) *request {
	sec := c.section(n, "method", "url", "headers", "body")
	var taken headerNames
	out := c.request(sec, l, s&^seePrecondition, s|seeSecrets, exposes, &taken)
	out.method = "GET"
	if method := sec.get("method"); method != nil {
		out.method = c.oneOf(method, "GET", "POST")
	}
	c.bodyless(sec, out)
	return out
}

func (c *compiler) bodyless(s section, r *request) {
	if body := s.get("body"); body != nil && r.method == "GET" {
		c.fault(body, "GET has no body")
	}
}

func (c *compiler) request(s section, l *language, inURL, inContent sight, exposes []string, taken *headerNames) *request {
	out := &request{}
	if n := s.need("url"); n != nil {
		c.url(out, n, l, inURL, exposes)
	}
	for _, f := range c.mapFields(s.get("headers"), maxNames) {
		name := &node{shape: text, text: f.name, line: f.line, column: f.column, key: f.value.key}
		value := c.templateAt(f.value, l, inContent, func(string) func(string) (string, error) { return escapeLine })
		if value != nil {
			if _, err := escapeLine(value.sample()); err != nil {
				c.fault(f.value, "%s", err)
			}
			out.secrets = append(out.secrets, value.secrets...)
		}
		out.headers = append(out.headers, header{name: c.headerName(name, taken), value: value})
	}
	if out.body = c.expression(s.get("body"), l, inContent, givesJSON...); out.body != nil {
		out.secrets = append(out.secrets, out.body.secrets...)
	}
	if taken.take("Content-Type") {
		out.contentType = "application/json"
	}
	slices.Sort(out.secrets)
	out.secrets = slices.Compact(out.secrets)
	return out
}

// url compiles the URL of a request. Scheme, host and port are literal.
func (c *compiler) url(out *request, n *node, l *language, s sight, exposes []string) {
	t := c.target(n, l, s, exposes, func(before string) func(string) (string, error) {
		if strings.Contains(before, "?") {
			return escapeQuery
		}
		return escapePath
	})
	if t == nil || len(t.parts) == 0 {
		return
	}
	if message := badURL(t); message != "" {
		c.fault(n, "%s", message)
		return
	}
	u, _ := url.Parse(t.sample())
	out.url, out.scheme, out.host = t, u.Scheme, u.Host
}

// badURL says what is wrong with the literal part of a URL.
func badURL(t *template) string {
	first := t.parts[0].literal
	scheme, rest, found := strings.Cut(first, "://")
	if !found || scheme != "http" && scheme != "https" {
		return "want a literal http:// or https:// and host"
	}
	authority, _, _ := strings.Cut(strings.ReplaceAll(rest, "?", "/"), "/")
	if len(authority) == len(rest) && len(t.parts) > 1 {
		return "the host is literal: ${…} stands after the / that follows it"
	}
	sample := t.sample()
	for i := range len(sample) {
		if c := sample[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>\\^`{|}", c) >= 0 {
			return "a character that a URL cannot hold; percent-encode it"
		}
	}
	u, err := url.Parse(sample)
	switch {
	case err != nil:
		return "malformed URL"
	case u.User != nil || strings.Contains(authority, "@"):
		return "credentials in a URL; use headers"
	case strings.Contains(sample, "#"):
		return "a fragment, which is never sent"
	case u.Hostname() == "" || !validPort(u):
		return "want a host, and a port from 1 to 65535 if any"
	default:
		return ""
	}
}

func validPort(u *url.URL) bool {
	if strings.HasSuffix(u.Host, ":") {
		return false
	}
	if u.Port() == "" {
		return true
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && port > 0
}

// sample is the template with an x for each expression.
func (t *template) sample() string {
	var out strings.Builder
	for _, p := range t.parts {
		if p.program == nil {
			out.WriteString(p.literal)
		} else {
			out.WriteByte('x')
		}
	}
	return out.String()
}

// headerNames are the headers of a request so far, in lower case.
type headerNames struct{ names []string }

func (h *headerNames) take(name string) (fresh bool) {
	name = strings.ToLower(name)
	if slices.Contains(h.names, name) {
		return false
	}
	h.names = append(h.names, name)
	return true
}

// hopHeaders belong to the connection or to the adapter.
var hopHeaders = []string{"host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade", "expect"}

func (c *compiler) headerName(n *node, taken *headerNames) string {
	name := c.str(n)
	switch {
	case name == "":
	case !isToken(name):
		c.fault(n, "not a header name")
	case slices.Contains(hopHeaders, strings.ToLower(name)) || strings.HasPrefix(strings.ToLower(name), "proxy-"):
		c.fault(n, "header %s belongs to the connection", name)
	case !taken.take(name):
		c.fault(n, "header %s is set twice", name)
	}
	return name
}

// isToken reports whether s is a token of RFC 9110, section 5.6.2.
func isToken(s string) bool {
	for i := range len(s) {
		if !isWord(s[i]) && strings.IndexByte("!#$%&'*+-.^`|~", s[i]) < 0 {
			return false
		}
	}
	return s != ""
}

// preview is a declared read shown before commitment.
type preview struct {
	query *request
	show  *program
}

// previewed reads the preview. What it guarantees and what is checked again is
// text for the people who see it.
func (c *compiler) previewed(out *Contract, n *node, l *language) {
	if n == nil {
		return
	}
	s := c.section(n, "query", "show", "guarantees", "checked_again")
	c.str(s.need("guarantees"))
	c.str(s.need("checked_again"))
	p := &preview{show: c.expression(s.need("show"), l, seeInRule, givesJSON...)}
	if q := s.need("query"); q != nil {
		p.query = c.httpRead(q, l, seeInContent, out.Exposes)
	}
	out.preview = p
}
