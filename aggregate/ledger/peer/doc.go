// Package peer lets a dispatcher in another process ask the one that writes: for
// claims, and with results (SPEC 6, 8).
//
//	dispatcher ─ Remote ─ effects.node.<ledger>.claim ──▶ Serve ─▶ ledger ─▶ EFFECTS
//	               ▲  ◀── claimed, seq, sha256 ───────────┘                     │
//	               └────────────── folds the log itself ◀───────────────────────┘
//
// Invariants:
//
//	R1  Serve decides nothing but claim, result and abandon, of its own ledger.
//	R2  A reply goes to an inbox or nowhere.
//	R3  A Remote tells a decision only once its own fold of the log has reached the
//	    entry that the reply names, with the digest that the reply names; and a won
//	    claim only if that fold shows it under the nonce that asked.
//	R4  A request without an answer that proves its fate is an error: the claim in it
//	    is not won.
//	R5  A nonce stands in the request of a result, and nowhere else.
package peer
