package policy

import (
	"slices"
	"strings"
)

// Reason is what the named policies say of themselves, in this order: their
// annotations @reason("…"). It is empty if none has one.
func (p *Policy) Reason(ids []string) string {
	var texts []string
	for _, id := range ids {
		for _, n := range p.named {
			if text := string(n.policy.Annotations()["reason"]); string(n.id) == id && text != "" && !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
		}
	}
	return strings.Join(texts, "; ")
}
