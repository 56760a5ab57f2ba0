// Package peer lets a dispatcher work for a ledger that another process writes.
//
//	dispatcher ─▶ Remote ── effects.node.<ledger>.claim, .abandon, .result ──▶ Service ─▶ the writer
//	                ▲                                                                       │
//	                └── the log, folded here ◀── entries ◀──────────────────────────────────┘
//
// The subjects are in the ledger's own account: no user can publish or read them.
//
// Invariants:
//
//	E1  A reply is believed only as far as the log says the same: a claim is won when
//	    the folded log holds it under the asker's own nonce.
//	E2  A request that is not answered proves nothing, and is an error.
//	E3  What another process asks for is decided by the law as if it were asked here.
//	E4  Only a process that has the ledger, and trusts it, answers.
package peer
