// Package anchor is what is known of the log outside of it: last sequence, entry
// hash and fingerprint, in a file of its own that no rebuild deletes (SPEC 16).
// It guards against what a damaged store does silently: truncate, skip, reuse
// numbers.
//
//	file: │ slot 0: checksum, mark │ slot 1: checksum, mark │   written in turns,
//	      0                     4096                     8192   one fdatasync each
//
//	Ensure(7) ─▶ round 1 ── write slot 0 ── sync ──▶ 7 is durable
//	Ensure(8) ─┐
//	Ensure(9) ─┴▶ round 2 ── waits ── write slot 1 ── sync ──▶ 8 and 9 are
//
// Invariants:
//
//	K1  An Ensure that returned nil is found after any crash, or a later mark is.
//	K2  A slot is written only while the other one holds the durable mark: a torn
//	    or failed write loses nothing that was durable.
//	K3  The mark never goes back, and never changes to another log, but by Replace.
//	K4  Whoever waits while a write runs is served by the next one, all by one
//	    sync; who gives up stops nobody else.
package anchor
