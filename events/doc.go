// Package events is the vocabulary of the ledger: every event type as a closed
// sum, the entry that carries events decided together, the canonical form, the
// digests, and the hash chain over entries.
//
//	entry 1041 ──prev──▶ entry 1042 { events: [1042.0, 1042.1, …] } ──prev──▶ entry 1043
//
// The package is pure: it knows no clock, no randomness, no I/O, no NATS and no
// storage. Times and identifiers are arguments.
//
// Invariants:
//
//	E1  Encoding is canonical (RFC 8785): decode(encode(x)) == x and
//	    encode(decode(b)) == b for every stored body b.
//	E2  An unknown event type, an unknown member, or an unknown format version is
//	    an error, never skipped.
//	E3  Every digested body carries its format version in the member "v".
//	E4  Entry n+1 names the SHA-256 of the stored bytes of entry n; entry 1 names
//	    64 zeros.
//	E5  Input JSON that two readers could understand differently is refused: see
//	    [Canonicalize]. Messages about it carry names and places, never values.
//	E6  The fields of every event type stand in the order of their JSON names, so
//	    that encoding is canonical in one pass. Speed rests on it, truth does not.
package events
