package operation

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/effectd/effectd/events"
)

// The kinds of adapter.
const (
	KindHTTP = "http"
	KindNATS = "nats"
	KindExec = "exec"
	KindFile = "file"
)

// How the log keeps a payload (SPEC 14).
const (
	PayloadPlain     = "plain"
	PayloadProtected = "protected"
)

// Bounds and defaults of a contract.
const (
	DefaultExpires     = 10 * time.Minute
	DefaultTimeout     = 10 * time.Second
	DefaultConcurrency = 16

	maxExpires     = 30 * 24 * time.Hour
	maxTimeout     = 10 * time.Minute
	maxConcurrency = 1024
	maxRetention   = 10 * 365 * 24 * time.Hour
	maxNames       = 64 // exposed fields, secrets, headers, rules
	maxUnits       = 16
)

// build is the version of this package's rendering and classification. It is in
// every binding: a program that would send something else has another number.
const build = "1"

// Contract is one version of one operation, compiled. It is immutable and safe
// for concurrent use. What a contract does not declare is absent: a nil pointer.
type Contract struct {
	Name        events.OperationName
	Version     int64
	Description string
	Digest      events.Digest // of the parsed document with its format version
	Text        string        // as compiled
	File        string        // where it stood then; says nothing of the contract

	Expires     time.Duration // longest life of a binding
	Timeout     time.Duration // of the one send
	Concurrency int           // sends at a time
	Payload     string        // [PayloadPlain] or [PayloadProtected]

	Kind    string        // of the adapter
	Exposes []string      // payload fields that policy and approvers see
	Secrets []string      // names
	Units   []events.Unit // that it costs, sorted
	Input   events.Raw    // JSON Schema of the payload

	Exec         *Exec
	Precondition *Precondition
	Idempotency  *Idempotency
	Reconcile    *Reconcile

	schema        *jsonschema.Schema
	resource      *template
	cost          []costTerm // sorted by unit
	send          *request   // kind http
	file          *fileWrite // kind file
	outcomes      []rule
	resubmitRules []rule
	preview       *preview
}

// Adapter names the kind and build that will send.
func (c *Contract) Adapter() events.Adapter {
	return events.Adapter{Kind: c.Kind, Build: c.Kind + "/" + build}
}

// Supports says which optional properties the contract declares.
func (c *Contract) Supports() map[string]bool {
	return map[string]bool{
		"query":             c.Reconcile != nil && c.Reconcile.Query,
		"resubmit_same_key": c.Reconcile != nil && c.Reconcile.ResubmitSameKey,
		"precondition":      c.Precondition != nil,
		"idempotency":       c.Idempotency != nil,
		"preview":           c.preview != nil,
	}
}

// Exposed is the part of a payload that policy and approvers see.
func (c *Contract) Exposed(p Payload) map[string]any {
	out := make(map[string]any, len(c.Exposes))
	fields, _ := p.value.(map[string]any)
	for _, name := range c.Exposes {
		if v, ok := fields[name]; ok {
			out[name] = v
		}
	}
	return out
}

// Lifetime is the longest life of a binding; with a precondition, not longer than
// that is worth anything.
func (c *Contract) Lifetime(conditional bool) time.Duration {
	if p := c.Precondition; conditional && p != nil && p.Validity > 0 {
		return min(c.Expires, p.Validity)
	}
	return c.Expires
}

// Compile reads a contract. The error is [Faults]; file is how they name the text.
func Compile(file string, source []byte) (*Contract, error) {
	c := &compiler{file: file}
	var out *Contract
	if root := c.parse(source); root != nil {
		out = c.contract(root)
		out.Text, out.File = string(source), file
		if len(c.faults) == 0 { // else the values may not be JSON
			doc := root.json().(map[string]any)
			doc["v"] = int64(events.Format)
			out.Digest = events.DigestOf(doc)
		}
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	return out, nil
}

func (c *compiler) contract(root *node) *Contract {
	s := c.section(root, "name", "version", "description", "input", "resource", "exposes", "cost", "expires", "timeout",
		"concurrency", "payload", "adapter", "secrets", "precondition", "idempotency", "outcomes", "reconcile", "preview")
	out := &Contract{
		Name:        events.OperationName(c.token(s.need("name"))),
		Version:     c.integer(s.need("version"), 1, events.MaxAmount, 0),
		Expires:     c.duration(s.get("expires"), time.Second, maxExpires, DefaultExpires),
		Timeout:     c.duration(s.get("timeout"), time.Millisecond, maxTimeout, DefaultTimeout),
		Concurrency: int(c.integer(s.get("concurrency"), 1, maxConcurrency, DefaultConcurrency)),
		Payload:     PayloadPlain,
		Exposes:     c.names(s.get("exposes"), maxNames, func(string) bool { return true }, ""),
		Secrets:     c.names(s.get("secrets"), maxNames, secretName.MatchString, "a name such as CHARGE_TOKEN"),
	}
	if n := s.get("description"); n != nil {
		out.Description = c.str(n)
	}
	if n := s.get("payload"); n != nil {
		out.Payload = c.oneOf(n, PayloadPlain, PayloadProtected)
	}
	out.schema, out.Input = c.input(s.need("input"))
	c.exposable(s.get("exposes"), s.get("input"))
	l := newLanguage(out.Secrets)
	out.resource = c.target(s.need("resource"), l, seePayload, out.Exposes, segmentEscape)
	c.costs(out, s.get("cost"), l)
	c.adapter(out, s, l)
	out.outcomes = c.rules(s.get("outcomes"), l, ruleOutcome)
	c.reconcile(out, s.get("reconcile"), l)
	c.previewed(out, s.get("preview"), l)
	return out
}

var secretName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

func segmentEscape(string) func(string) (string, error) { return escapeSegment }

// exposable refuses to expose a field that no payload can have: it would hide a
// misspelled name from policy.
func (c *compiler) exposable(exposes, input *node) {
	if exposes == nil || input == nil || input.get("patternProperties") != nil {
		return
	}
	if closed := input.get("additionalProperties"); closed == nil || closed.value != false {
		return
	}
	properties := input.get("properties")
	for _, item := range exposes.items {
		if item.shape == text && (properties == nil || properties.get(item.text) == nil) {
			c.fault(item, "no property of input")
		}
	}
}

// target compiles a template that says what is acted on: whatever it takes from
// the payload must be exposed (O4).
func (c *compiler) target(n *node, l *language, s sight, exposes []string, escape func(string) func(string) (string, error)) *template {
	if n == nil {
		return nil
	}
	t := c.templateAt(n, l, s, escape)
	if t == nil {
		return nil
	}
	for _, p := range t.parts {
		if p.program == nil {
			continue
		}
		if p.program.whole {
			c.fault(n, "name the payload fields: payload.field")
		}
		for _, name := range p.program.fields {
			if !slices.Contains(exposes, name) {
				c.fault(n, "payload.%s is used here and must be in exposes", name)
			}
		}
	}
	return t
}

// Resource is the actual target of the effect.
func (c *Contract) Resource(p Payload) (string, error) {
	out, err := c.resource.render(&scope{Input: Input{Payload: p}}, &segments{})
	if err != nil {
		return "", fmt.Errorf("resource: %w", err)
	}
	if len(out) > maxResource {
		return "", fmt.Errorf("resource: longer than %d bytes", maxResource)
	}
	return out, nil
}

// maxResource bounds the target, in bytes.
const maxResource = 1024
