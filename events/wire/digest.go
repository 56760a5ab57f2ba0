package wire

import "github.com/effectd/effectd/events"

// Digest is request_sha256 (SPEC 3): what counts as the same request. Payload
// and precondition must be in canonical form, as [Decode] leaves them. Absent
// members are null; a member sent empty is not absent, which is why Decode
// refuses an empty expires_at and version 0.
func (r *PrepareRequest) Digest() events.Digest {
	body := struct {
		ExpiresAt     *string              `json:"expires_at"`
		MaxCost       *events.Amounts      `json:"max_cost"`
		Operation     events.OperationName `json:"operation"`
		PayloadSHA256 events.Digest        `json:"payload_sha256"`
		Precondition  events.Raw           `json:"precondition"`
		TaskID        events.TaskID        `json:"task_id"`
		V             int                  `json:"v"`
		Version       *int64               `json:"version"`
	}{
		Operation: r.Operation, PayloadSHA256: events.DigestBytes(r.Payload), Precondition: r.Precondition,
		TaskID: r.TaskID, V: events.Format,
	}
	if r.ExpiresAt != "" {
		body.ExpiresAt = &r.ExpiresAt
	}
	if r.MaxCost != nil {
		body.MaxCost = &r.MaxCost
	}
	if r.Version != 0 {
		body.Version = &r.Version
	}
	return events.DigestOf(&body)
}
