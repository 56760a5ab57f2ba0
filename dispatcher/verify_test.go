package dispatcher

import (
	"strings"
	"testing"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/rehearsal"
	"github.com/effectd/effectd/events"
)

// Every commitment of an admission is recomputed: what was changed behind it is
// found, and named.
func TestVerify(t *testing.T) {
	w := rehearsal.New()
	good := w.State.Effect(w.Do(rehearsal.Submit(rehearsal.Producer, "charge", `{"account":"a","amount":100}`, "run", "1")).EffectID)
	if err := verify(w.State, good); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(e *aggregate.Effect, permit *events.Permit){
		"payload_sha256": func(e *aggregate.Effect, _ *events.Permit) {
			e.Prepared.Payload = events.Raw(`{"account":"a","amount":1}`)
		},
		"context_sha256": func(e *aggregate.Effect, _ *events.Permit) { e.Prepared.Context.Principal = "other" },
		"binding_digest": func(e *aggregate.Effect, _ *events.Permit) { e.Prepared.Binding.Resource = "account/b" },
		"permit":         func(_ *aggregate.Effect, p *events.Permit) { p.EffectID = "another" },
		"permit_sha256":  func(_ *aggregate.Effect, p *events.Permit) { p.ExpiresAt++ },
		"intent_sha256":  func(e *aggregate.Effect, _ *events.Permit) { e.Admission.Intent.Reservation.ReservationID = "another" },
		"receipt_id":     func(e *aggregate.Effect, _ *events.Permit) { e.Admission.Receipt.DurablePosition.Seq++ },
		"store_fingerprint": func(e *aggregate.Effect, _ *events.Permit) {
			r := &e.Admission.Receipt
			r.StoreFingerprint, r.ReceiptID = events.ZeroDigest, ""
			r.ReceiptID = events.ReceiptID("rc_" + string(events.DigestOf(*r)))
		},
	} {
		e, prepared, admission, permit := *good, *good.Prepared, *good.Admission, *good.Permit
		e.Prepared, e.Admission, e.Permit = &prepared, &admission, &permit
		change(&e, &permit)
		if err := verify(w.State, &e); err == nil || !strings.Contains(err.Error(), ": "+what+" does not match") {
			t.Errorf("%s: %v", what, err)
		}
	}
	e := *good
	if e.Permit = nil; verify(w.State, &e) == nil {
		t.Error("an admission without a permit is verified")
	}
}
