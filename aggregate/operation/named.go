package operation

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/effectd/effectd/events"
)

// Bounds of what evidence keeps of an answer, in bytes.
const (
	maxRef     = 512     // of a provider's reference
	maxInvalid = 128     // of a cost that is none
	maxNamed   = 8 << 10 // of all named values, encoded
	minSecret  = 4       // shorter secrets are not looked for: they are everywhere
)

// naming collects the values that a rule names.
type naming struct {
	ProviderRef string              `json:"provider_ref,omitzero"`
	Cost        map[events.Unit]any `json:"cost,omitempty"`
}

func (n *naming) cost(unit events.Unit, value any) {
	if n.Cost == nil {
		n.Cost = map[events.Unit]any{}
	}
	n.Cost[unit] = value
}

// invalid keeps what the service said in place of a cost, as text.
func (n *naming) invalid(unit events.Unit, value ref.Val, scrub func(string) string) {
	said, err := textOf(value)
	if said = scrub(said); err != nil || len(said) > maxInvalid {
		n.cost(unit, nil)
		return
	}
	n.cost(unit, said)
}

// raw is canonical JSON of at most [maxNamed] bytes, nil when nothing is named.
func (n *naming) raw() events.Raw {
	if n.ProviderRef == "" && n.Cost == nil {
		return nil
	}
	out := events.CanonicalOf(n)
	if len(out) > maxNamed {
		return nil
	}
	return out
}

var errRef = errors.New("not a reference")

// refOf is a provider's reference; null is none. It is never shortened.
func refOf(v ref.Val, scrub func(string) string) (string, error) {
	if v == types.NullValue {
		return "", nil
	}
	out, err := textOf(v)
	if err != nil {
		return "", err
	}
	if len(out) > maxRef || strings.ToValidUTF8(out, "") != out {
		return "", errRef
	}
	return scrub(out), nil
}

// Scrub replaces the values of the contract's secrets in text that is going to
// be kept.
func (c *Contract) Scrub(text string, secret func(name string) (string, bool)) string {
	if secret == nil || text == "" || len(c.Secrets) == 0 {
		return text
	}
	type known struct{ name, value string }
	var all []known
	for _, name := range c.Secrets {
		if value, ok := secret(name); ok && len(value) >= minSecret {
			all = append(all, known{name, value})
		}
	}
	// The longest first: one secret may be part of another.
	slices.SortStableFunc(all, func(a, b known) int { return cmp.Compare(len(b.value), len(a.value)) })
	for _, k := range all {
		text = strings.ReplaceAll(text, k.value, "[secret "+k.name+"]")
	}
	return text
}
