// Package wire is the contract with users of a ledger: subjects, the JSON of
// requests and replies, the error codes, and what a well-formed request is
// (SPEC 6, 21). It is pure.
//
//	bytes ──Decode──▶ request ──▶ the ledger ──▶ reply or *Error
//	        └── invalid_payload, invalid_request: the field is named
//
// The verbs are served by the package endpoint; the Go client that speaks them
// is the package client of events.
//
// Invariants:
//
//	W1  What Decode accepts is well-formed: identifiers are bounded, tokens are
//	    tokens, amounts are integers in 0 to 2^53−1, raw members are canonical.
//	W2  An error names fields, never a value of the request.
//	W3  Two requests have one digest exactly if they were sent alike, where null
//	    is absent (SPEC 3, request_sha256).
package wire
