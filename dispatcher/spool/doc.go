// Package spool keeps, on disk, the results that could not be appended to the
// log, until they can be. It is the only way in which a proven outcome survives
// both a ledger that is away and the end of the process; it is empty otherwise.
//
//	before a claim   Reserve ──▶ slot: one record fits, in the bound and on the disk
//	append failed    Put ── write, fsync ─▶ ID.tmp ── rename ─▶ ID.result ── fsync of the directory
//	at start         Open (drops *.tmp) ── All ──▶ records in the order of their claims, and the damaged
//	appended         Remove ── unlink, fsync of the directory
//
// Invariants:
//
//	S1  A record whose Put returned nil is given by All, equal, after any crash,
//	    until its Remove was called. One whose Put failed is given whole or not at
//	    all.
//	S2  A record whose Remove returned nil is never given again.
//	S3  A record is given only if its bytes are the canonical form of a record of
//	    that name with the right checksum. Anything else in the directory is
//	    reported by name, counted, and left as it is.
//	S4  While a slot is held, a Put within [MaxRecord] is not refused for space of
//	    the spool. Slots and records together never exceed the bound.
//	S5  One effect has one result: another record under its name is refused.
//	S6  Only *.tmp is ever dropped unread: no Put of it has returned nil.
//
// The directory holds nonces and evidence: it is created with mode 0700. One
// process at a time may have it open.
package spool
