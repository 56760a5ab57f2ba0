package spool

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/effectd/effectd/events"
	"github.com/go-json-experiment/json"
)

// Record is one result that waits for the ledger.
type Record struct {
	V            int             `json:"v"`
	EffectID     events.EffectID `json:"effect_id"`
	IntentSHA256 events.Digest   `json:"intent_sha256"`
	Claim        events.Position `json:"claim"` // of the dispatched event
	Nonce        string          `json:"nonce"` // of the claim; the log has its digest alone
	Result       events.Raw      `json:"result"`
	// Checksum is the digest of the rest. Put sets it, and V.
	Checksum events.Digest `json:"checksum,omitzero"`
}

const (
	resultSuffix = ".result"
	tempSuffix   = ".tmp"
)

// seal completes a record and encodes it.
func seal(r Record) (Record, []byte, error) {
	if !validID(r.EffectID) {
		return r, nil, errors.New("effect_id: cannot name a file")
	}
	result, err := events.Canonicalize(r.Result)
	if err != nil {
		return r, nil, fmt.Errorf("result: %w", err)
	}
	r.V, r.Result, r.Checksum = events.Format, result, ""
	r.Checksum = events.DigestOf(r)
	body := events.CanonicalOf(r)
	if len(body) > MaxRecord {
		return r, nil, ErrTooLarge
	}
	return r, body, nil
}

// unseal decodes what seal encoded, and nothing else (S3). Its errors name the
// fault without the bytes.
func unseal(name string, body []byte) (Record, error) {
	var r Record
	if len(body) > MaxRecord {
		return r, ErrTooLarge
	}
	if err := json.Unmarshal(body, &r, json.RejectUnknownMembers(true)); err != nil {
		return Record{}, errors.New("not a record")
	}
	again, encoded, err := seal(r)
	switch {
	case err != nil:
		return Record{}, err
	case r.V != events.Format:
		return Record{}, fmt.Errorf("unknown version %d", r.V)
	case r.Checksum != again.Checksum:
		return Record{}, errors.New("checksum does not match")
	case !bytes.Equal(body, encoded):
		return Record{}, errors.New("not in canonical form")
	case name != nameOf(r.EffectID):
		return Record{}, errors.New("the record of another name")
	}
	return again, nil
}

func nameOf(id events.EffectID) string { return string(id) + resultSuffix }

// idOf is the effect that a file name stands for.
func idOf(name string) (events.EffectID, bool) {
	id, ok := strings.CutSuffix(name, resultSuffix)
	return events.EffectID(id), ok && validID(events.EffectID(id))
}

// validID reports whether an id is of the characters of a ULID.
func validID(id events.EffectID) bool {
	for i := range len(id) {
		if c := id[i]; (c < '0' || c > '9') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return id != "" && len(id) <= 64
}
