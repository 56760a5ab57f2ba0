package operation

import (
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/common/types"

	"github.com/effectd/effectd/events"
)

// Response is the answer of a service, an executor or a program.
type Response struct {
	Status  int64             // HTTP code, exit code
	Headers map[string]string // names in lower case
	Body    []byte            // bounded by the adapter
}

// Verdict is what the first rule that matches makes of an answer.
type Verdict struct {
	Rule        string // which one, such as "outcomes[0]"
	Outcome     events.Outcome
	Means       events.Means
	NotFound    bool // the service does not know the effect; no outcome then
	ProviderRef string
	Cost        events.Amounts // measured, of the units whose cost is valid
	CostInvalid bool           // a named cost is not an integer in range
	Named       events.Raw     // provider_ref and cost as named, nil for none
}

// Classify reads the answer to the one send. False: no rule matches, the outcome
// is unknown.
func (c *Contract) Classify(r Response, in Input) (Verdict, bool) {
	return c.classify(c.outcomes, r, in)
}

// ClassifyResubmit reads the answer to a request that was sent again with the
// same key.
func (c *Contract) ClassifyResubmit(r Response, in Input) (Verdict, bool) {
	return c.classify(c.resubmitRules, r, in)
}

// ClassifyQuery reads the answer to the reconciling query.
func (c *Contract) ClassifyQuery(r Response, in Input) (Verdict, bool) {
	if c.Reconcile == nil {
		return Verdict{}, false
	}
	return c.classify(c.Reconcile.rules, r, in)
}

// Preview reads the answer to [Contract.HTTPPreview].
func (c *Contract) Preview(r Response, in Input) (events.Raw, error) {
	if c.preview == nil {
		return nil, ErrUnsupported
	}
	v := newScope(in)
	v.response = &answer{Response: r}
	value, err := c.preview.show.eval(v)
	if err != nil {
		return nil, errNotJSON
	}
	return jsonOf(value)
}

func (c *Contract) classify(rules []rule, r Response, in Input) (Verdict, bool) {
	v := newScope(in)
	v.response = &answer{Response: r}
	scrub := func(s string) string { return c.Scrub(s, in.Secret) }
	for i := range rules {
		if verdict, ok := rules[i].read(v, scrub); ok {
			return verdict, true
		}
	}
	return Verdict{}, false
}

// read is false when the rule does not match or cannot be evaluated (O6). A cost
// is not part of the match: that it is wrong does not undo what happened.
func (r *rule) read(v *scope, scrub func(string) string) (Verdict, bool) {
	match, err := r.when.eval(v)
	if err != nil || match != types.True {
		return Verdict{}, false
	}
	out := Verdict{Rule: r.name, Outcome: r.outcome, Means: r.means, NotFound: r.notFound}
	named := naming{}
	if r.providerRef != nil {
		ref, err := r.providerRef.eval(v)
		if err != nil {
			return Verdict{}, false
		}
		if out.ProviderRef, err = refOf(ref, scrub); err != nil {
			return Verdict{}, false
		}
		named.ProviderRef = out.ProviderRef
	}
	for _, term := range r.cost {
		value, err := term.program.eval(v)
		amount, ok := amountOf(value)
		if err != nil || !ok {
			out.CostInvalid = true
			named.invalid(term.unit, value, scrub)
			continue
		}
		if out.Cost == nil {
			out.Cost = events.Amounts{}
		}
		out.Cost[term.unit] = amount
		named.cost(term.unit, amount)
	}
	out.Named = named.raw()
	return out, true
}

// answer resolves response.*; its JSON is read once, when first asked for.
type answer struct {
	Response
	read bool
	json any
}

func (a *answer) resolve(name string) (any, bool) {
	switch name {
	case "response.status":
		return a.Status, true
	case "response.headers":
		return validHeaders(a.Headers), true
	case "response.text":
		return strings.ToValidUTF8(string(a.Body), "\uFFFD"), true
	case "response.json":
		if !a.read {
			a.read = true
			a.json = lenient(a.Body)
		}
		return a.json, true
	default:
		return nil, false
	}
}

func validHeaders(headers map[string]string) map[string]string {
	out := make(map[string]string, len(headers))
	for name, value := range headers {
		if utf8.ValidString(name) && utf8.ValidString(value) {
			out[name] = value
		}
	}
	return out
}
