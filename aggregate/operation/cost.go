package operation

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/effectd/effectd/events"
)

// ErrUnbounded: the contract's bound is negative, not an integer, not finite or
// not computable for the payload.
var ErrUnbounded = errors.New("cost is not bounded")

// costTerm is the expression of one unit.
type costTerm struct {
	unit    events.Unit
	program *program
}

// EffectsUnit counts admissions; every effect costs one, and no contract more.
const EffectsUnit events.Unit = "effects"

// costTerms compiles a mapping of units to expressions, sorted by unit.
func (c *compiler) costTerms(n *node, l *language, s sight) []costTerm {
	var out []costTerm
	for _, f := range c.mapFields(n, maxUnits) {
		switch {
		case events.Unit(f.name) == EffectsUnit:
			c.fault(f.value, "the unit effects is counted by the ledger itself")
		case !events.ValidToken(f.name):
			c.faultAt(f.line, f.column, f.value.key, "want 1 to 64 characters of a-z 0-9 - _")
		}
		if p := c.expression(f.value, l, s, givesAmount...); p != nil {
			out = append(out, costTerm{unit: events.Unit(f.name), program: p})
		}
	}
	slices.SortFunc(out, func(a, b costTerm) int { return strings.Compare(string(a.unit), string(b.unit)) })
	return out
}

func (c *compiler) costs(out *Contract, n *node, l *language) {
	out.cost = c.costTerms(n, l, seePayload)
	out.Units = make([]events.Unit, len(out.cost))
	for i, term := range out.cost {
		out.Units[i] = term.unit
	}
}

// Bound is the upper bound of what the effect costs, per unit. The error wraps
// [ErrUnbounded] and names the unit.
func (c *Contract) Bound(p Payload) (events.Amounts, error) {
	out := make(events.Amounts, len(c.cost))
	v := &scope{Input: Input{Payload: p}}
	for _, term := range c.cost {
		value, err := term.program.eval(v)
		if err != nil {
			return nil, fmt.Errorf("cost.%s: %w: not computable", term.unit, ErrUnbounded)
		}
		amount, ok := amountOf(value)
		if !ok {
			return nil, fmt.Errorf("cost.%s: %w: not an integer from 0 to 2^53-1", term.unit, ErrUnbounded)
		}
		out[term.unit] = amount
	}
	return out, nil
}
