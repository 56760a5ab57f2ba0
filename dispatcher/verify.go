package dispatcher

import (
	"fmt"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/events"
)

// verify recomputes what an admission commits to, from the record itself: a
// dispatcher acts on nothing that it did not check.
func verify(s *aggregate.State, e *aggregate.Effect) error {
	p, a := e.Prepared, e.Admission
	receipt := a.Receipt
	receipt.ReceiptID = ""
	for _, check := range []struct {
		what string
		ok   bool
	}{
		{"payload_sha256", events.DigestBytes(p.Payload) == p.Binding.PayloadSHA256},
		{"context_sha256", events.DigestOf(&p.Context) == p.Binding.ContextSHA256},
		{"binding_digest", events.DigestOf(&p.Binding) == p.BindingDigest && a.Intent.BindingDigest == p.BindingDigest},
		{"permit", e.Permit != nil && e.Permit.EffectID == e.ID && e.Permit.BindingDigest == p.BindingDigest},
		{"permit_sha256", e.Permit != nil && events.DigestOf(e.Permit) == a.Intent.PermitSHA256},
		{"intent_sha256", events.DigestOf(&a.Intent) == a.IntentSHA256},
		{"receipt_id", "rc_"+events.DigestOf(&receipt) == events.Digest(a.Receipt.ReceiptID)},
		{"store_fingerprint", receipt.StoreFingerprint == s.Head().Fingerprint},
	} {
		if !check.ok {
			return fmt.Errorf("effect %s at %s: %s does not match the record", e.ID, a.Position, check.what)
		}
	}
	return nil
}
