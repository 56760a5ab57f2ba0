// Package projector folds the log into a Pebble store, which holds the live
// state and its indexes, and answers reads from it.
//
//	log ──Tail──▶ Apply: fold the entry ─▶ show the state, wake who waits ─▶ backlog
//	                                              │                            │ when rows are read, when it
//	                                              │                            ▼ is due, when it is closed
//	                            queries ◀── state and rows ◀── one batch { records, indexes, head }
//	                                        of one position
//
// What was folded is answered from at once, and stored later: a record that changed
// many times meanwhile is written once. Only a read of rows (a list, a history, an
// effect that has left the live state) has the backlog stored first.
//
// Invariants:
//
//	P1  The position moves with the data: records, indexes and the head, which
//	    names the position, are written in one batch, for all entries that are not
//	    stored yet. After a crash the store holds the fold of a prefix of the log.
//	P2  The projection is the fold of the log up to its position and nothing else:
//	    however entries were grouped, interrupted or applied anew, the rows are
//	    identical, which [Projection.Digest] shows.
//	P3  The projection never writes to the log, and no adapter can be reached from
//	    here: folding again does nothing to the world.
//	P4  Every answer carries its position, and all of it is of that position: rows
//	    are read when they are those of the state that was shown.
//	P5  An entry that does not follow is never applied. Reads go on.
//	P6  What is damaged is reported, with [ErrRebuild] when it is found on opening,
//	    and is never answered from. A store that fails in use is not touched any
//	    more: the state goes on in memory.
//	P7  An effect, task or run that the caller may not see answers exactly like one
//	    that does not exist.
//	P8  Who waits for an effect is woken by an entry that names it, and by no other.
//	    No row is written or read for that while the effect is live.
//	P9  What is folded and not stored is bounded; when there is no store any more it
//	    is given up.
//
// Nothing is synced entry by entry, and Pebble keeps no log of its own: a crash
// takes the backlog and what was not flushed, and it is folded again from the log.
//
// # Key space
//
// The first byte of a key is its table. A name inside a key stands behind its
// length (uvarint), so that no two names collide. Effect ids are ULIDs: within a
// prefix the order of ids is the order of creation.
//
//	V                                     → format version
//	h l t r c e (aggregate.Kind), id      → the record of the state, as it encodes it; h holds the position
//	C tenant, effect                      by creation    ┐
//	S tenant, state, effect               by state       │ live effects only;
//	O tenant, operation, effect           by operation   │ no value
//	T tenant, task, effect                by task        ┘
//	P effect, sequence, index             every position whose event names the effect; big-endian; no value
//	N tenant, run_id, causal_id           → effect
//	B effect                              → tenant, run_id, causal_id: N backwards
//	I intent_sha256                       → effect
//	K idempotency_key                     → effect
//
// P, N, B, I and K follow from events alone and stay for as long as the log, also
// when the effect has left the live state.
package projector
