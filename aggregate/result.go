package aggregate

import (
	"strings"

	"github.com/effectd/effectd/events"
)

// Result is what a send, a query or a resubmission proved. The zero Outcome
// proves nothing; Reason then says why.
type Result struct {
	Outcome     events.Outcome  `json:"outcome"`
	Means       events.Means    `json:"means,omitzero"`
	Reason      events.Reason   `json:"reason"`
	Evidence    events.Evidence `json:"evidence"`
	Cost        events.Amounts  `json:"cost,omitempty"` // measured, per unit; a unit that is absent was not measured
	CostInvalid bool            `json:"cost_invalid,omitzero"`
	ProviderRef string          `json:"provider_ref,omitzero"`
}

// Scrubbed replaces secret values wherever a service may have echoed them.
func (r Result) Scrubbed(secrets []string) Result {
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		quoted := string(events.CanonicalOf(secret))
		quoted = quoted[1 : len(quoted)-1] // as it stands inside a JSON string
		r.ProviderRef = strings.ReplaceAll(r.ProviderRef, secret, scrubbed)
		r.Evidence.Detail = strings.ReplaceAll(r.Evidence.Detail, secret, scrubbed)
		if len(r.Evidence.Named) > 0 {
			r.Evidence.Named = scrubJSON(r.Evidence.Named, quoted)
		}
	}
	return r
}

const scrubbed = "[secret]"

// scrubJSON replaces a value inside canonical JSON; if that would break the
// form, nothing of it is kept.
func scrubJSON(raw events.Raw, quoted string) events.Raw {
	out, err := events.Canonicalize([]byte(strings.ReplaceAll(string(raw), quoted, scrubbed)))
	if err != nil {
		return events.CanonicalOf(scrubbed)
	}
	return out
}

// maxWords bounds each text of the evidence of a result, in bytes.
const maxWords = 1 << 10

// bounded is the result with no more evidence than a record takes, whoever
// reported it: what is admitted can always be settled (SPEC 13, 14). What it
// proves stays.
func (r Result) bounded() Result {
	for _, text := range []*string{&r.Evidence.Detail, &r.Evidence.Reference, &r.Evidence.Rule, &r.Evidence.Source} {
		if len(*text) > maxWords {
			*text = strings.ToValidUTF8((*text)[:maxWords], "")
		}
	}
	if len(r.ProviderRef) > MaxEvidence { // a part of it would name something else
		r.ProviderRef = ""
	}
	if len(r.Evidence.Named) > MaxEvidence {
		r.Evidence.Named = events.CanonicalOf("too large to keep")
	}
	return r
}
