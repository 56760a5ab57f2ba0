package operation

import (
	"fmt"
	"strings"
	"time"

	"github.com/effectd/effectd/events"
)

// rule reads an outcome from an answer.
type rule struct {
	name        string // where it stands, such as "outcomes[0]"
	when        *program
	outcome     events.Outcome // zero with notFound
	means       events.Means
	notFound    bool
	providerRef *program // nil: none named
	cost        []costTerm
}

// ruleSet says which rules stand where.
type ruleSet uint8

const (
	ruleOutcome ruleSet = iota
	ruleQuery           // may say not_found; sees provider_ref
)

func (c *compiler) rules(n *node, l *language, set ruleSet) []rule {
	var out []rule
	for i, item := range c.list(n, maxNames) {
		out = append(out, c.rule(item, fmt.Sprintf("%s[%d]", n.key, i), l, set))
	}
	return out
}

func (c *compiler) rule(n *node, name string, l *language, set ruleSet) rule {
	keys := []string{"when", "outcome", "means", "provider_ref", "cost"}
	sees := seeInRule
	if set == ruleQuery {
		keys, sees = append(keys, "not_found"), sees|seeProviderRef
	}
	s := c.section(n, keys...)
	out := rule{name: name, when: c.expression(s.need("when"), l, sees, givesBool...)}
	if set == ruleQuery {
		out.notFound = c.boolean(s.get("not_found"))
	}
	if out.notFound {
		for _, key := range []string{"outcome", "means", "provider_ref", "cost"} {
			if extra := s.get(key); extra != nil {
				c.fault(extra, "not_found says that nothing is known; it has no %s", key)
			}
		}
		return out
	}
	out.outcome = events.Outcome(c.oneOf(s.need("outcome"), "succeeded", "failed", "partial", "no_effect"))
	out.means = c.means(s.get("means"), out.outcome)
	out.providerRef = c.expression(s.get("provider_ref"), l, sees, givesText...)
	if cost := s.get("cost"); cost != nil {
		if out.outcome == events.OutcomeNoEffect {
			c.fault(cost, "no_effect costs nothing")
		}
		out.cost = c.costTerms(cost, l, sees)
	}
	return out
}

func (c *compiler) means(n *node, outcome events.Outcome) events.Means {
	if n == nil {
		if outcome == events.OutcomeSucceeded {
			return events.MeansCompleted
		}
		return ""
	}
	means := events.Means(c.oneOf(n, string(events.MeansAccepted), string(events.MeansCompleted)))
	if outcome != "" && outcome != events.OutcomeSucceeded {
		c.fault(n, "means belongs to outcome succeeded")
	}
	return means
}

// Reconcile says how an unknown outcome may be found out.
type Reconcile struct {
	Query                bool // it declares a query
	NotFoundIsConclusive bool
	SettlingWindow       time.Duration
	ResubmitSameKey      bool
	Auto                 bool

	query *request
	rules []rule
}

// maxSettling bounds the time that a service may take to show what it did.
const maxSettling = 7 * 24 * time.Hour

func (c *compiler) reconcile(out *Contract, n *node, l *language) {
	if n == nil {
		out.resubmitRules = defaultResubmitRules(out.outcomes)
		return
	}
	s := c.section(n, "query", "rules", "not_found_is_conclusive", "settling_window", "resubmit_same_key", "resubmit_rules", "auto")
	r := &Reconcile{
		NotFoundIsConclusive: c.boolean(s.get("not_found_is_conclusive")),
		SettlingWindow:       c.duration(s.get("settling_window"), 0, maxSettling, 0),
		ResubmitSameKey:      c.boolean(s.get("resubmit_same_key")),
		Auto:                 c.boolean(s.get("auto")),
		rules:                c.rules(s.get("rules"), l, ruleQuery),
	}
	if q := s.get("query"); q != nil {
		r.Query = true
		r.query = c.httpRead(q, l, seeInQuery|seeInContent, out.Exposes)
		if len(r.rules) == 0 {
			s.need("rules")
		}
	}
	c.reconcilable(s, r)
	c.resubmission(out, s, r, l)
	out.Reconcile = r
}

// reconcilable refuses what has no query to stand on.
func (c *compiler) reconcilable(s section, r *Reconcile) {
	if r.query != nil {
		return
	}
	if rules := s.get("rules"); rules != nil {
		c.fault(rules, "rules read the answer of a query, which is missing")
	}
	if r.NotFoundIsConclusive {
		c.fault(s.get("not_found_is_conclusive"), "needs a query")
	}
	if r.Auto {
		c.fault(s.get("auto"), "needs a query")
	}
}

func (c *compiler) resubmission(out *Contract, s section, r *Reconcile, l *language) {
	own := s.get("resubmit_rules")
	if r.ResubmitSameKey && (out.Idempotency == nil || !out.Idempotency.coversResubmission) {
		c.fault(s.get("resubmit_same_key"), "needs idempotency with %s",
			strings.Join([]string{"scope", "retention", "concurrent: true", "mismatch_rejected: true"}, ", "))
	}
	if own == nil {
		out.resubmitRules = defaultResubmitRules(out.outcomes)
		return
	}
	if !r.ResubmitSameKey {
		c.fault(own, "needs resubmit_same_key: true")
	}
	out.resubmitRules = c.rules(own, l, ruleOutcome)
}

// defaultResubmitRules are the outcomes without those that say no_effect: that
// the service refuses the second request proves nothing about the first.
func defaultResubmitRules(outcomes []rule) []rule {
	var out []rule
	for _, r := range outcomes {
		if r.outcome != events.OutcomeNoEffect {
			out = append(out, r)
		}
	}
	return out
}
