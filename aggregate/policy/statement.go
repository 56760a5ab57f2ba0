package policy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/effectd/effectd/events"
)

// What a [Statement] decides.
const (
	DecisionApprove = "approve"
	DecisionDeny    = "deny"
)

// Statement is what an approver signs about one effect (SPEC 11).
type Statement struct {
	V             int                  `json:"v"`
	LedgerID      events.LedgerID      `json:"ledger_id"`
	EffectID      events.EffectID      `json:"effect_id"`
	BindingDigest events.Digest        `json:"binding_digest"`
	Operation     events.OperationName `json:"operation"`
	Resource      string               `json:"resource"`
	MaxCost       events.Amounts       `json:"max_cost"`
	ExpiresAt     events.Instant       `json:"expires_at"`
	Decision      string               `json:"decision"`
	Approver      events.Actor         `json:"approver"`
	IssuedAt      events.Instant       `json:"issued_at"`
}

// Settlement is what an operator signs about the outcome of one effect (SPEC 9).
type Settlement struct {
	V              int             `json:"v"`
	LedgerID       events.LedgerID `json:"ledger_id"`
	EffectID       events.EffectID `json:"effect_id"`
	BindingDigest  events.Digest   `json:"binding_digest"`
	Outcome        events.Outcome  `json:"outcome"`
	EvidenceSHA256 events.Digest   `json:"evidence_sha256"`
	Operator       events.Actor    `json:"operator"`
	IssuedAt       events.Instant  `json:"issued_at"`
}

// Text is the canonical text: what is signed, and what [ParseStatement] reads.
func (s Statement) Text() string {
	if s.MaxCost == nil {
		s.MaxCost = events.Amounts{}
	}
	return string(events.CanonicalOf(s))
}

// SHA256 is the digest of the text.
func (s Statement) SHA256() events.Digest { return events.DigestBytes([]byte(s.Text())) }

// Text is the canonical text: what is signed, and what [ParseSettlement] reads.
func (s Settlement) Text() string { return string(events.CanonicalOf(s)) }

// SHA256 is the digest of the text.
func (s Settlement) SHA256() events.Digest { return events.DigestBytes([]byte(s.Text())) }

// ParseStatement reads exactly what [Statement.Text] writes.
func ParseStatement(text string) (Statement, error) {
	s, err := parse[Statement](text)
	if err == nil && s.Text() != text {
		err = errCanonical
	}
	return s, err
}

// ParseSettlement reads exactly what [Settlement.Text] writes.
func ParseSettlement(text string) (Settlement, error) {
	s, err := parse[Settlement](text)
	if err == nil && s.Text() != text {
		err = errCanonical
	}
	return s, err
}

var errCanonical = errors.New("not the canonical text of a statement")

// maxStatement bounds a statement, in bytes.
const maxStatement = 16 << 10

// parse is strict about members; its caller is about every byte (P5).
func parse[S any](text string) (S, error) {
	var s S
	if len(text) > maxStatement {
		return s, fmt.Errorf("longer than %d bytes", maxStatement)
	}
	if _, err := events.Canonicalize([]byte(text)); err != nil {
		return s, err
	}
	if err := json.Unmarshal([]byte(text), &s, json.RejectUnknownMembers(true)); err != nil {
		return s, errors.New("not a statement: a member is unknown or of the wrong type")
	}
	return s, nil
}

// Check compares the statement with the expected one, field by field. When it
// was issued is the signer's to say; with want.IssuedAt set, not later than that
// and the tolerance.
func (s Statement) Check(want Statement) error {
	var d difference
	d.field("v", s.V == want.V)
	d.field("ledger_id", s.LedgerID == want.LedgerID)
	d.field("effect_id", s.EffectID == want.EffectID)
	d.field("binding_digest", s.BindingDigest == want.BindingDigest)
	d.field("operation", s.Operation == want.Operation)
	d.field("resource", s.Resource == want.Resource)
	d.field("max_cost", sameAmounts(s.MaxCost, want.MaxCost))
	d.field("expires_at", s.ExpiresAt == want.ExpiresAt)
	d.field("decision", s.Decision == want.Decision && (s.Decision == DecisionApprove || s.Decision == DecisionDeny))
	d.field("approver", s.Approver == want.Approver)
	d.field("issued_at", issued(s.IssuedAt, want.IssuedAt))
	return d.err()
}

// Check compares the settlement with the expected one, as [Statement.Check].
func (s Settlement) Check(want Settlement) error {
	var d difference
	d.field("v", s.V == want.V)
	d.field("ledger_id", s.LedgerID == want.LedgerID)
	d.field("effect_id", s.EffectID == want.EffectID)
	d.field("binding_digest", s.BindingDigest == want.BindingDigest)
	d.field("outcome", s.Outcome == want.Outcome && s.Outcome != events.OutcomeUnknown)
	d.field("evidence_sha256", s.EvidenceSHA256 == want.EvidenceSHA256)
	d.field("operator", s.Operator == want.Operator)
	d.field("issued_at", issued(s.IssuedAt, want.IssuedAt))
	return d.err()
}

// tolerance between the signer's clock and ledger time, in nanoseconds.
const tolerance = events.Instant(60e9)

func issued(at, now events.Instant) bool {
	return at > 0 && (now.IsZero() || at <= now+tolerance)
}

func sameAmounts(a, b events.Amounts) bool {
	if len(a) != len(b) {
		return false
	}
	for unit, amount := range a {
		if other, ok := b[unit]; !ok || other != amount {
			return false
		}
	}
	return true
}

// difference collects the fields that are not as expected.
type difference []string

func (d *difference) field(name string, same bool) {
	if !same {
		*d = append(*d, name)
	}
}

func (d difference) err() error {
	if len(d) == 0 {
		return nil
	}
	return fmt.Errorf("not the statement about this effect: %s", strings.Join(d, ", "))
}
