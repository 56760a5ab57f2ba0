// Package ledger is the single writer of the log and the endpoints of its
// commands.
//
//	requests ──▶ queue ──▶ decide on a branch of state N ──▶ append entry N+1 ──▶ adopt the branch ──▶ replies
//	            (turns between      ▲                            │ conflict: read what others wrote, decide again
//	             principals)        │                            └ unknown: only the same bytes again, until resolved
//	                                └── meanwhile: decide the next turn on what N+1 leaves
//
// Invariants:
//
//	W1  A reply, a refusal too, goes out only after every entry it was decided on
//	    is acknowledged.
//	W2  One entry is in flight; while its fate is open nothing else is appended.
//	W3  The adopted state is exactly the fold of the log: a branch is adopted only
//	    with the acknowledgement of the entry that holds its events.
//	W4  A caller that stops waiting is told commit_unknown unless its command was
//	    provably never offered to the log.
//	W5  Ledger time never goes back, and no entry is written while the clock is not
//	    trusted.
//	W6  Once the log is not trusted, nothing is written any more.
//	W7  New work is taken only while the log has room for it and for all that the
//	    work taken before must still record.
package ledger
